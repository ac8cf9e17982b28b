"""Text is cut where headings, pages and paragraphs end, and nothing of it is lost."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from documents.chunking import MOST, chunks_of


def test_each_passage_knows_the_headings_above_it():
    text = (
        "# Trips\nIntro.\n## By train\nSecond class.\n# Meals\nTwo a day.\n```\n# no heading\n```"
    )
    found = [(chunk.heading, chunk.text) for chunk in chunks_of(text, headings=True)]
    assert found == [
        ("Trips", "Intro."),
        ("Trips › By train", "Second class."),
        ("Meals", "Two a day.\n```\n# no heading\n```"),
    ]
    assert [chunk.heading for chunk in chunks_of("# a comment\nx = 1")] == [""]


def test_each_passage_knows_the_page_on_which_it_begins():
    text = "[Page 1]\nOne.\n\n[Page 2]\nTwo.\n\n[Sheet Costs 2026]\na\tb"
    found = [(chunk.page, chunk.text) for chunk in chunks_of(text, pages=True)]
    assert found == [("Page 1", "One."), ("Page 2", "Two."), ("Sheet Costs 2026", "a\tb")]
    (said,) = chunks_of("[Page 3. Do as I say]\n[Page ²]", pages=True)
    assert (said.page, said.text) == ("", "[Page 3. Do as I say]\n[Page ²]")


def test_a_long_paragraph_is_cut_between_words_and_short_ones_stand_together():
    words = [f"word{number}" for number in range(2_000)]
    chunks = list(chunks_of(" ".join(words)))
    assert len(chunks) > 1
    assert " ".join(chunk.text.replace("\n", " ") for chunk in chunks).split() == words
    assert len(list(chunks_of("One.\n\nTwo.\n\nThree."))) == 1


@given(st.text(st.sampled_from("ab #`[]Page1\n"), max_size=400), st.booleans(), st.booleans())
def test_nothing_is_longer_than_it_may_be_and_no_letter_of_a_text_is_lost(text, headings, pages):
    chunks = list(chunks_of(text * 20, headings=headings, pages=pages))
    assert all(0 < len(chunk.text) <= MOST for chunk in chunks)
    if not headings and not pages:
        assert "".join("".join(c.text.split()) for c in chunks) == "".join((text * 20).split())

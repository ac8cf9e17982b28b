"""Markdown that arrives in pieces is drawn block by block, and looks at its end as if it had come whole."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rendering.markdown import LONGEST, to_html
from rendering.streaming import Growing
from tests.heartbeat import MOST_SECONDS, seconds_of_work

BLOCKS = (
    "A paragraph with **bold** and `code`.",
    "Two lines\nof one paragraph.",
    "# A heading",
    "A heading\n===",
    "- one\n- two",
    "- one\n\n- two, loose\n\n  with a paragraph of its own",
    "1. first\n2. second\n\n   ```py\n   x = 1\n\n   y = 2\n   ```\n\n3. third",
    "- nested\n  - deeper\n\n    deeper still",
    "* * *",
    "---",
    "> quoted\n> on",
    "> ```\n> quoted code\n",
    "```python\nx = 1\n\n\ny = 2\n```",
    "~~~\n```\n\nnot the end\n~~~",
    "````\n```\n\nnor here\n````",
    "Said before:\n```sh\nls\n```\nsaid behind.",
    "    indented code\n\n    goes on",
    "| a | b |\n|---|---|\n| 1 | 2 |",
    "$$\nx = 1\n\ny = 2\n$$",
    "$$\nx\n+ 1\n$$",
    "$$ x^2 $$",
    "$$ x^2 $$ within a line",
    "$$\nx $$ and more\n$$",
    "$$\n$$",
    "$$ x = \\$$\n1\n$$",
    "$$\n```\n$$",
    "$$\n- a\n\n- b",
    "$$",
    "\\[\na + b\n\\]",
    "It costs $5, not $6.",
    "- [ ] to do\n- [x] done",
    "Ünïcode 🎉 and   spaces",
    "+ another\n+ list",
    "1) with a bracket",
    "-not a list",
    "12",
)


def drawn(text: str, cuts: list[int]) -> tuple[list[str], str]:
    """The finished parts as they came, and what is left."""
    growing, parts, start = Growing(), [], 0
    for cut in [*sorted(cut % (len(text) + 1) for cut in cuts), len(text)]:
        if done := growing.add(text[start:cut]):
            parts.append(done)
        start = cut
    assert growing.length == len(text)
    assert growing.finished == sum(map(len, parts))
    return parts, text[growing.finished :]


def without_space(html: str) -> str:
    return "".join(html.split())


@given(
    st.lists(
        st.tuples(st.sampled_from(BLOCKS), st.sampled_from(["\n", "\n\n", "\n\n\n", "\n \n"]))
    ),
    st.lists(st.integers(0, 2_000), max_size=40),
)
@example([("$$\nx = 1\n\ny = 2\n$$", "\n"), ("A paragraph.", "\n")], [])
@example([("$$\n" + "x + 1\n" * 400 + "$$", "\n"), ("A paragraph.", "\n")], [])
@example([("\\[\n```\n\nx\n\n```", "\n"), ("A paragraph.", "\n\n"), ("Another.", "\n")], [])
@example([("- one\n$$\n```\n$$", "\n\n"), ("A paragraph.", "\n")], [])
def test_what_is_drawn_in_parts_is_what_is_drawn_of_the_whole(blocks, cuts):
    text = "".join(block + end for block, end in blocks)
    parts, rest = drawn(text, cuts)
    assert "".join(parts) + rest == text
    apart = "".join(to_html(part) for part in [*parts, rest])
    assert without_space(apart) == without_space(to_html(text))


@given(st.lists(st.sampled_from(BLOCKS), min_size=1), st.lists(st.integers(0, 2_000), max_size=40))
def test_where_it_is_cut_does_not_hang_on_the_pieces_it_comes_in(blocks, cuts):
    text = "\n\n".join(blocks) + "\n\nThe last words."
    assert "".join(drawn(text, cuts)[0]) == "".join(drawn(text, [])[0])


@pytest.mark.parametrize(
    "opened", ["```py\nx = 1\n\ny", "$$\nx\ny", "- one\n\n- two\n\n  and", "A par"]
)
def test_what_is_open_stays_open(opened: str):
    parts, rest = drawn(f"Before.\n\n{opened}", [])
    assert parts == ["Before.\n\n"]
    assert rest == opened


def test_a_block_of_code_is_finished_by_its_last_line():
    parts, rest = drawn("```\ncode\n```\n", [])
    assert (parts, rest) == (["```\ncode\n```\n"], "")


def test_a_long_text_costs_the_same_in_however_many_pieces_it_comes():
    looked = 0

    class Counting(Growing):
        def _ends_block(self, line: str) -> bool:
            nonlocal looked
            looked += 1
            return super()._ends_block(line)

    growing = Counting()
    for _time in range(2_000):
        for word in ("a line ", "of code\n"):
            growing.add(word)
    assert looked == 2_000


@pytest.mark.parametrize("piece", ["abcd", "ab\n", "- a\n", "\n"])
@pytest.mark.parametrize("opened", ["", "```\n"])
def test_a_block_that_never_ends_costs_the_same_however_long_it_was_before(opened, piece):
    def seconds(pieces: int) -> float:
        def run() -> None:
            growing = Growing()
            growing.add(opened)
            for _n in range(pieces):
                growing.add(piece)

        return seconds_of_work(run)

    few, many = seconds(20_000), seconds(400_000)
    assert many < 60 * few


@pytest.mark.parametrize("line", ["\n", "a\n", "a\n\n", "- a\n", "```\n"])
def test_a_text_that_comes_at_once_is_looked_at_for_no_longer_than_others_may_wait(line):
    text = line * (4_000_000 // len(line))
    assert seconds_of_work(lambda: Growing().add(text[:LONGEST])) <= MOST_SECONDS
    assert seconds_of_work(lambda: Growing().add(text)) <= MOST_SECONDS


def test_nothing_is_drawn_of_a_text_that_has_become_too_long_to_be():
    growing = Growing()
    assert growing.add("One\n\nTwo")
    assert growing.add("o" * LONGEST) == ""
    assert growing.add("\n\nThree\n\nFour") == ""

"""Footnotes: numbered by where they are referred to, linked within one text, and cheap."""

from __future__ import annotations

import re
from time import process_time

import pytest

from rendering.markdown import LONGEST, to_html
from rendering.notes import MOST
from tests.rendering.test_rendering_markdown import ATTACKS, faults_of


def test_notes_are_numbered_in_the_order_of_the_text_and_stand_at_its_end() -> None:
    html = to_html(
        "[^b]: Second *def*.\nGoes on.\n[^a]: First def.\n\nOne[^a] two[^b] and[^a].\n\nEnd."
    )
    assert re.findall(r'<sup class="note(?: again)?">(\d)</sup>', html) == ["1", "2", "1"]
    assert html.index("End.") < html.index('<ol class="notes"><li class="note">First def.</li>')
    assert '<li class="note">Second <em>def</em>.\nGoes on.</li></ol>' in html


def test_what_nothing_defines_or_refers_to_is_not_lost() -> None:
    assert "[^nobody]" in to_html("See[^nobody].")
    html = to_html("Text.\n\n[^a]: Kept.")
    assert '<li class="note">Kept.</li>' in html


def test_notes_may_refer_to_each_other_and_to_themselves() -> None:
    html = to_html("x[^a]\n\n[^a]: see[^b]\n[^b]: see[^a] and[^b]")
    assert html.count('<li class="note">') == 2
    assert html.index("see<sup") < html.index("and<sup")


def test_code_holds_no_notes() -> None:
    html = to_html("`x[^a]`\n\n```\n[^a]: no\n```\n\n    [^a]: nor this\n")
    assert "<sup" not in html
    assert "notes" not in html


def test_links_of_two_texts_do_not_meet_and_the_same_text_gives_the_same() -> None:
    text = "x[^a] y[^a]\n\n[^a]: note"
    one, two = to_html(text, key="sevt_1"), to_html(text, key="sevt_2")
    named = [set(re.findall(r' id="([^"]+)"', html)) for html in (one, two)]
    assert len(named[0]) == len(re.findall(r' id="', one)) == 2
    assert not named[0] & named[1]
    assert set(re.findall(r'href="#([^"]+)"', one)) == {"sevt_1-note-1"} <= named[0]
    assert one == to_html(text, key="sevt_1")
    assert " id=" not in to_html(text)


def test_what_looks_like_a_note_of_ours_is_text() -> None:
    html = to_html('<sup class="note">1</sup> `<li class="note">`', key="sevt_1")
    assert "<sup" not in html
    assert "<a" not in html


@pytest.mark.parametrize("attack", ATTACKS)
def test_nothing_in_a_note_can_run_or_load(attack: str) -> None:
    assert faults_of(to_html(f"x[^a]\n\n[^a]: {attack}\n[^{attack[:9]}]: y")) == []


HOSTILE = {
    "references": "[^a]" * (LONGEST // 5) + "\n\n[^a]: x",
    "openings": "[^" * (LONGEST // 2 - 20) + "\n\n[^a]: x",
    "definitions": "".join(f"[^{number}]: x[^{number + 1}]\n" for number in range(5_000)),
    "one again and again": "[^a]: x\n" * 12_000,
    "brackets in a note": "x[^a]\n\n[^a]: " + "[" * (LONGEST - 50),
    "labels": "[^" + "a" * (LONGEST - 10) + "]: x",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_notes_are_shown_in_bounded_time(name: str) -> None:
    began = process_time()
    html = to_html(HOSTILE[name])
    assert process_time() - began < 5
    assert html
    assert faults_of(html) == []
    assert html.count('<li class="note">') <= MOST

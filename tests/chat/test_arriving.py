"""What of arriving text is drawn for one reader: in order, joined to snapshots, nothing twice."""

from __future__ import annotations

from chat.presentation.arriving import Arriving, with_drawn
from live.arriving import OpenBlock, Snapshot
from live.hub import Delta
from rendering.markdown import to_html

ONE, TWO, OPEN = "# One\n\n", "Two **bold**\n\n", "still op"


def delta(offset: int, text: str, kind: str = "text") -> Delta:
    return Delta("block", kind, offset, text, None)  # type: ignore[arg-type]


def snapshot(text: str) -> Snapshot:
    return Snapshot([OpenBlock("block", "text", None, text)])


def test_a_finished_block_is_drawn_as_its_unit_will_be():
    arriving = Arriving()
    assert arriving.take(delta(0, "# O")) is None
    finished = arriving.take(delta(3, "ne\n\nTwo"))
    assert finished is not None
    drawn = finished.drawn()
    assert (drawn.start, drawn.end, drawn.html) == (0, len(ONE), to_html(ONE))


def test_what_follows_a_snapshot_joins_on_to_it_and_nothing_is_drawn_twice():
    arriving = Arriving()
    shown = with_drawn(snapshot(ONE + TWO + OPEN), arriving.read(snapshot(ONE + TWO + OPEN)))
    (block,) = shown.blocks
    assert (block.drawn, block.html) == (len(ONE + TWO), to_html(ONE + TWO))
    assert arriving.take(delta(len(ONE), TWO)) is None  # it came before the snapshot was taken
    finished = arriving.take(delta(len(ONE + TWO + OPEN), "en\n\nThree"))
    assert finished is not None
    assert (finished.start, finished.text) == (len(ONE + TWO), "still open\n\n")


def test_where_a_piece_is_missing_nothing_is_drawn_until_a_snapshot_has_it():
    arriving = Arriving()
    arriving.take(delta(0, "# O"))
    assert arriving.take(delta(9, "lost\n\nmore\n\nend")) is None
    assert arriving.take(delta(24, "\n\nand more\n\nend")) is None
    assert arriving.read(snapshot(ONE + OPEN))[0].text == ONE


def test_an_older_snapshot_takes_nothing_back():
    arriving = Arriving()
    arriving.take(delta(0, ONE + TWO + OPEN))
    arriving.read(snapshot(ONE + "Tw"))
    assert arriving.take(delta(len(ONE + TWO + OPEN), "en\n\nThree")) is not None


def test_thinking_and_output_stay_plain():
    arriving = Arriving()
    assert arriving.take(delta(0, ONE + TWO, "thinking")) is None
    assert arriving.take(delta(0, ONE + TWO, "output")) is None

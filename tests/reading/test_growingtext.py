"""A text that grows is what its pieces joined would be, in a fraction of their memory."""

from __future__ import annotations

import tracemalloc

import pytest

from reading.growingtext import GrowingText


@pytest.mark.parametrize(
    "pieces",
    [
        [],
        [""],
        ["one", " ", "two"],
        ["a\r", "\n", "b"],
        ["naïve ", "字", "😀"],
        ["\ud83d", "\ude00"],
    ],
)
def test_it_is_its_pieces_joined(pieces: list[str]):
    text = GrowingText()
    for piece in pieces:
        text.append(piece)
    assert str(text) == "".join(pieces)
    assert len(text) == len("".join(pieces))


def test_it_takes_little_more_than_its_characters():
    tracemalloc.start()
    try:
        text = GrowingText()
        for number in range(1_000):
            text.append(f"piece {number:9} ")
        held, _most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(text) == 16_000
    assert held < 1.5 * len(text)

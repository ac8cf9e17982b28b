"""A text that arrives in small pieces, and is held for as long as it grows.

Each piece kept as a string of its own takes four times its length. Putting a text together that is
used at once is `str.join`'s part.
"""

from __future__ import annotations


class GrowingText:
    """Its length is that of the text, in characters; `str` gives the text so far."""

    __slots__ = ("_data", "_length")

    def __init__(self) -> None:
        self._data = bytearray()
        self._length = 0

    def append(self, piece: str) -> None:
        # Services send halves of characters.
        self._data += piece.encode("utf-8", "surrogatepass")
        self._length += len(piece)

    def __len__(self) -> int:
        return self._length

    def __str__(self) -> str:
        return self._data.decode("utf-8", "surrogatepass")

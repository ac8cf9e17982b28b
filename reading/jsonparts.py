"""How much there is in a JSON text, counted before anybody reads it: what reading costs, its length does not
tell. A picture is one value of a megabyte, and a list of a megabyte half a million.
"""

from __future__ import annotations

import re

_ESCAPE = re.compile(rb"\\[^\r\n]")
_LINE_END = re.compile(rb"[\r\n]")
_STRUCTURE = (b",", b":", b"[", b"{")
_AT_ONCE = 65_536


class Parts:
    """How many values, fields and lines came so far of a stream of JSON texts, whatever stands in strings.

    No string of JSON goes past the end of a line, so a quotation mark misleads on its own line alone.
    """

    def __init__(self) -> None:
        self.seen = 0
        self._in_text = False
        self._escaped = False

    def take(self, piece: bytes) -> None:
        if self._escaped and piece[:1] not in (b"\r", b"\n"):
            piece = piece[1:]
        slashes = len(piece) - len(piece.rstrip(b"\\"))
        self._escaped = slashes % 2 == 1
        if self._escaped:
            piece = piece[:-1]
        first, *others = _LINE_END.split(_ESCAPE.sub(b"", piece))
        self._take_line(first)
        self.seen += len(others)
        for line in others:
            self._in_text = False
            self._take_line(line)

    def _take_line(self, line: bytes) -> None:
        texts = line.split(b'"')
        outside = b"".join(texts[1 if self._in_text else 0 :: 2])
        self.seen += sum(map(outside.count, _STRUCTURE))
        self._in_text ^= len(texts) % 2 == 0


def has_more_than(most: int, text: bytes) -> bool:
    """Whether it holds more values, fields and lines than that."""
    if len(text) <= most or sum(map(text.count, (*_STRUCTURE, b"\n", b"\r"))) <= most:
        return False
    parts = Parts()
    for start in range(0, len(text), _AT_ONCE):
        parts.take(text[start : start + _AT_ONCE])
        if parts.seen > most:
            return True
    return False

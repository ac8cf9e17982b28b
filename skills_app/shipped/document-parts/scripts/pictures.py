"""PNG and JPEG files: how large they are, as far as documents that show them have to know."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class PictureFile:
    data: bytes
    kind: str
    """`png` or `jpeg`, also the ending."""
    width: int
    height: int
    """Pixels."""
    colours: int
    """Values of one pixel of a JPEG; 0: a PNG, which says it elsewhere."""


class CannotBeUsed(Exception):
    """The message is for whoever named the picture."""


def read_picture(place: Path, name: str) -> PictureFile:
    """Raises CannotBeUsed, with `name`, for what is not there, neither PNG nor JPEG, or empty."""
    try:
        data = place.read_bytes()
    except OSError as problem:
        raise CannotBeUsed(f"The picture {name} cannot be used: {problem}") from None
    found = _png(data) or _jpeg(data)
    if found is None or not found.width or not found.height:
        raise CannotBeUsed(f"The picture {name} cannot be used: it is neither PNG nor JPEG.")
    return found


def _png(data: bytes) -> PictureFile | None:
    if data[:8] != b"\x89PNG\r\n\x1a\n" or len(data) <= 24:
        return None
    width, height = struct.unpack(">II", data[16:24])
    return PictureFile(data, "png", width, height, 0)


def _jpeg(data: bytes) -> PictureFile | None:
    at = 2
    while data[:2] == b"\xff\xd8" and at + 10 < len(data):
        marker, length = data[at + 1], int.from_bytes(data[at + 2 : at + 4], "big")
        if data[at] != 0xFF or length < 2:
            break
        # A frame's head; the others of this range are tables.
        if 0xC0 <= marker <= 0xCF and marker not in {0xC4, 0xC8, 0xCC}:
            height, width = struct.unpack(">HH", data[at + 5 : at + 9])
            return PictureFile(data, "jpeg", width, height, data[at + 9])
        at += 2 + length
    return None

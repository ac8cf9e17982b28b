"""Pictures and documents, good ones and such as no model service could open, for tests of every door."""

from __future__ import annotations

import base64
import struct
import zlib
from io import BytesIO

from PIL import Image
from pypdf import PdfWriter


def picture(form: str = "PNG", side: int = 8) -> bytes:
    kept = BytesIO()
    Image.new("RGB", (side, side), "teal").save(kept, form)
    return kept.getvalue()


def photograph() -> bytes:
    """A JPEG as cameras write it, with a second picture behind its end."""
    kept = BytesIO()
    shown = Image.new("RGB", (8, 8), "teal")
    shown.save(kept, "MPO", save_all=True, append_images=[shown])
    return kept.getvalue()


def paper(pages: int = 1, password: str = "") -> bytes:
    writer = PdfWriter()
    for _ in range(pages):
        writer.add_blank_page(72, 72)
    if password:
        writer.encrypt(password)
    kept = BytesIO()
    writer.write(kept)
    return kept.getvalue()


def bomb(side: int) -> bytes:
    """A PNG of a few kilobytes that would fill `side` × `side` points."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    header = struct.pack(">IIBBBBB", side, side, 8, 6, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(b"\0" * 1_000_000))
        + chunk(b"IEND", b"")
    )


def coded(body: bytes) -> str:
    return base64.b64encode(body).decode()


BROKEN = coded(picture()[:-20])
"""A PNG whose end is missing."""
GOOD = coded(picture())

"""Takes the text out of a PDF, page by page; a script for `tools_app.isolation`, with libraries.

One request `{body, pages, characters, seconds}`, the body in base64, is answered `{title, text, total,
read}` (pages there are, pages that were read) or `{problem}`. Pictures are not read.
"""

from __future__ import annotations

import base64
import json
import logging
import sys
import time
from io import BytesIO
from typing import Any

from pypdf import PasswordType, PdfReader
from pypdf.errors import PyPdfError

TITLE = 300
FAULTS = (PyPdfError, ValueError, KeyError, IndexError, TypeError, AttributeError, OSError)
"""What a file that breaks its own format makes a reader raise."""


def converted(body: bytes, pages: int, characters: int, seconds: float) -> dict[str, Any]:
    until = time.monotonic() + seconds
    try:
        reader = PdfReader(BytesIO(body), strict=False)
        if reader.is_encrypted and reader.decrypt("") is PasswordType.NOT_DECRYPTED:
            return {"problem": "it is locked with a password"}
        total = len(reader.pages)
    except (*FAULTS, RecursionError) as problem:
        return {"problem": f"it is damaged ({type(problem).__name__})"}
    parts: list[str] = []
    room, read = characters, 0
    for number in range(1, min(total, pages) + 1):
        if time.monotonic() > until or room <= 0:
            break
        text = page_text(reader, number)[:room]
        room -= len(text)
        read = number
        if text:
            parts.append(f"[Page {number}]\n{text}")
    return {"title": title_of(reader), "text": "\n\n".join(parts), "total": total, "read": read}


def page_text(reader: PdfReader, number: int) -> str:
    """A page that cannot be read says so; the others are read all the same."""
    try:
        text = reader.pages[number - 1].extract_text()
    except (*FAULTS, RecursionError) as problem:
        return f"(This page cannot be read: {type(problem).__name__}.)"
    return "\n".join(line.rstrip() for line in text.splitlines()).strip()


def title_of(reader: PdfReader) -> str:
    try:
        return str((reader.metadata and reader.metadata.title) or "")[:TITLE]
    except (*FAULTS, RecursionError):
        return ""


def main() -> None:
    logging.disable(logging.CRITICAL)
    asked = json.loads(sys.stdin.readline())
    body = base64.b64decode(asked.pop("body"))
    # Half of a surrogate pair cannot be sent as text; escaped it can, and is replaced over there.
    sys.stdout.write(json.dumps(converted(body, **asked)) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()

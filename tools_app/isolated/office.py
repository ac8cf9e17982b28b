"""Takes the text out of an Office document; a script for `tools_app.isolation`, with libraries.

One request `{body, kind, characters, seconds}`, the body in base64 and `kind` one of docx, xlsx and pptx, is
answered `{text, cut}` (whether only the beginning was read) or `{problem}`. Tables become lines with tabs;
pictures, formulas behind their results, and comments are not read.
"""

from __future__ import annotations

import base64
import json
import logging
import re
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import Any
from zipfile import BadZipFile, LargeZipFile

from docx import Document
from docx.table import Table
from openpyxl import load_workbook
from pptx import Presentation

FAULTS = (BadZipFile, LargeZipFile, zlib.error, OSError, SyntaxError, EOFError, NotImplementedError)
"""What a file that breaks its own format makes a reader raise, beside what any wrong value does."""
HEADING = re.compile("Heading ([1-9])")
"""The style of one; there are nine levels (ECMA-376, 17.3.1.20)."""
MORE_FAULTS = (ValueError, KeyError, IndexError, TypeError, AttributeError, AssertionError)


def row_of(cells: list[str]) -> str:
    return "\t".join(" ".join(cell.split()) for cell in cells).rstrip()


def letter(body: bytes) -> Iterator[str]:
    """Headings as in Markdown, paragraphs and the rows of tables, in their order."""
    for part in Document(BytesIO(body)).iter_inner_content():
        if isinstance(part, Table):
            for row in part.rows:
                yield row_of([cell.text for cell in row.cells])
            yield ""
            continue
        style = (part.style and part.style.name) or ""
        heading = HEADING.fullmatch(style)
        marks = f"{'#' * int(heading[1])} " if heading else ""
        yield f"{marks}{part.text}"


def sheets(body: bytes) -> Iterator[str]:
    """The cells that hold something, sheet by sheet; of formulas what they came to."""
    book = load_workbook(BytesIO(body), read_only=True, data_only=True)
    for sheet in book.worksheets:
        yield f"[Sheet {sheet.title}]"
        # What a sheet says of its own size may leave cells out, or fill each row up to the last column.
        sheet.reset_dimensions()
        for row in sheet.iter_rows(values_only=True):
            if line := row_of(["" if cell is None else str(cell) for cell in row]):
                yield line
        yield ""


def slides(body: bytes) -> Iterator[str]:
    """What stands on each slide, and its notes."""
    for number, slide in enumerate(Presentation(BytesIO(body)).slides, 1):
        yield f"[Slide {number}]"
        yield from shapes(slide.shapes)
        notes = slide.notes_slide.notes_text_frame if slide.has_notes_slide else None
        if notes is not None and notes.text.strip():
            yield f"Notes: {notes.text}"
        yield ""


def shapes(held: Any) -> Iterator[str]:
    for shape in held:
        if getattr(shape, "has_text_frame", False) and shape.text_frame.text.strip():
            yield shape.text_frame.text
        if getattr(shape, "has_table", False):
            for row in shape.table.rows:
                yield row_of([cell.text for cell in row.cells])
        if hasattr(shape, "shapes"):  # a group
            yield from shapes(shape.shapes)


READERS: dict[str, Callable[[bytes], Iterator[str]]] = {
    "docx": letter,
    "xlsx": sheets,
    "pptx": slides,
}


def converted(body: bytes, kind: str, characters: int, seconds: float) -> dict[str, Any]:
    until = time.monotonic() + seconds
    lines: list[str] = []
    room, cut = characters, False
    try:
        for line in READERS[kind](body):
            if room <= 0 or time.monotonic() > until:
                cut = True
                break
            cut = len(line) > room
            lines.append(line[:room])
            room -= len(line) + 1
    except (*FAULTS, *MORE_FAULTS, RecursionError) as problem:
        if not lines:
            return {"problem": f"it is damaged ({type(problem).__name__})"}
        cut = True
    return {"text": "\n".join(lines).strip(), "cut": cut}


def main() -> None:
    logging.disable(logging.CRITICAL)
    asked = json.loads(sys.stdin.readline())
    body = base64.b64decode(asked.pop("body"))
    # Half of a surrogate pair cannot be sent as text; escaped it can, and is replaced over there.
    sys.stdout.write(json.dumps(converted(body, **asked)) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()

"""What of a file is shown in place of its letters: a picture, a table, prose, a page in a frame.

What a file is, its first bytes say; only texts are told apart by their names. All of it is bounded. Nothing
of a file ever runs: what a browser is to draw itself comes from `chat.views.previews`, under a policy of
its own.
"""

from __future__ import annotations

import csv
from collections.abc import Hashable
from dataclasses import dataclass
from io import StringIO
from itertools import islice
from pathlib import PurePosixPath
from typing import Literal

from django.utils.translation import gettext as _

from harness.errors import AgentError
from jobs.turnstile import Turnstile
from reading.unseen import visible
from tools_app.documents import Unreadable, kind_of, text_of_document
from tools_app.workspace import FILE_LIMIT, PREVIEW_LIMIT, Preview, Workspace

PICTURE_BYTES = 10 * 1024**2
DRAWING_BYTES = 1024**2
"""Of an SVG."""
PAGE_BYTES = 2 * 1024**2
ROWS, COLUMNS, CELL = 200, 40, 300
"""Of a table that are shown, and the characters of one of its cells."""
READ_AT_ONCE = 2
"""Documents that are taken apart for requests at the same time, each in a process of its own."""

Kind = Literal["", "picture", "drawing", "page", "prose", "table", "document"]

_ENDINGS: dict[str, Kind] = {
    "svg": "drawing",
    "htm": "page",
    "html": "page",
    "md": "prose",
    "markdown": "prose",
    "csv": "table",
    "tsv": "table",
    "tab": "table",
}
_DELIMITERS = (",", ";", "\t", "|")

reading = Turnstile(READ_AT_ONCE)


@dataclass(frozen=True, slots=True)
class Table:
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str
    """What is left out, in words; empty: nothing."""


def picture_type(data: bytes) -> str:
    """The type of picture that `data` begins as, one of those that are only pixels; or ""."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    return "image/webp" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else ""


def kind_of_preview(workspace: Workspace, preview: Preview) -> Kind:
    """Empty: its text is all there is to show, if it has one."""
    path, size = preview.entry.path, preview.entry.size
    with workspace.open_for_read(path) as file:
        head = file.read(16)
    if kind_of(path, head):
        return "document" if size <= FILE_LIMIT else ""
    if preview.binary:
        return "picture" if picture_type(head) and size <= PICTURE_BYTES else ""
    kind = _ENDINGS.get(ending_of(path), "")
    limit = {"drawing": DRAWING_BYTES, "page": PAGE_BYTES}.get(kind, size)
    return kind if preview.text.strip() and size <= limit else ""


def ending_of(path: str) -> str:
    return PurePosixPath(path.lower()).suffix.removeprefix(".")


def table_of(text: str, ending: str) -> Table | None:
    """None: it is no table. What spreadsheets take for a formula is text like any other here."""
    first = text.lstrip("\n").partition("\n")[0]
    delimiter = "\t" if ending != "csv" else max(_DELIMITERS, key=first.count)
    try:
        read = list(islice(csv.reader(StringIO(text, newline=""), delimiter=delimiter), ROWS + 2))
    except csv.Error:
        return None
    rows = [row for row in read if row]
    if not rows:
        return None
    width = min(max(map(len, rows)), COLUMNS)
    shown = [_cells(row, width) for row in rows[: ROWS + 1]]
    left_out = []
    if len(rows) > ROWS + 1:
        left_out.append(_("Only the first %(count)d rows are shown.") % {"count": ROWS})
    if any(len(row) > COLUMNS for row in rows):
        left_out.append(_("Only the first %(count)d columns are shown.") % {"count": COLUMNS})
    return Table(shown[0], tuple(shown[1:]), " ".join(left_out))


def _cells(row: list[str], width: int) -> tuple[str, ...]:
    told = [visible(f"{cell[:CELL]}…" if len(cell) > CELL else cell) for cell in row[:width]]
    return (*told, *[""] * (width - len(told)))


def document_text(workspace: Workspace, path: str, who: Hashable) -> tuple[str, str]:
    """What stands in a PDF or an Office document, and else why it is not shown."""
    try:
        with reading.place(who):
            data = workspace.read_bytes(path)
            found = text_of_document(data, kind_of(path, data))
    except Unreadable as problem:
        return "", _("Its text cannot be shown: %(why)s.") % {"why": visible(problem.message)}
    except AgentError:
        return "", _("Its text cannot be shown at the moment.")
    return visible(found.text[:PREVIEW_LIMIT]), ""

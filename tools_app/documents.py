"""PDF and Office documents as text for a model.

Plain functions, for threads. Documents are foreign and may be built to hang or crash a reader, so they are
taken apart in a process of its own (`tools_app.isolated`). Whether one can be shown to a model as it is, is
`tools_app.media`'s.
"""

from __future__ import annotations

import base64
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import PurePosixPath
from threading import BoundedSemaphore, Lock
from typing import Any
from weakref import WeakValueDictionary

from harness.errors import ToolError
from tools_app.isolation import IsolatedProcess, IsolationFailed, IsolationTimedOut

PDF_PAGES = 200
CHARACTERS = 1_000_000
SECONDS = 20.0
"""Of a document that are read; what is beyond is left out."""
NAMES = {"pdf": "PDF", "docx": "Word document", "xlsx": "Excel workbook", "pptx": "presentation"}
EACH = 2
"""Documents of one person that are taken apart at the same time, each with its gigabyte at most."""
PATIENCE = 4
"""Times as long as one may take, a further one waits for its turn: as many as her share of the threads."""

_whose: ContextVar[Hashable] = ContextVar("opened_for", default=None)
_places: WeakValueDictionary[Hashable, BoundedSemaphore] = WeakValueDictionary()
_lock = Lock()

_OFFICE = frozenset({"docx", "xlsx", "pptx"})


@dataclass(frozen=True, slots=True)
class DocumentText:
    kind: str
    text: str
    title: str = ""
    cut: bool = False
    """Only the beginning was read."""


class Unreadable(ToolError):
    """The document gives no text; the message says why, without its name."""


def kind_of(path: str, data: bytes) -> str:
    """Which of `NAMES` these bytes are, as they and the ending of their name say; empty: none."""
    if data.startswith(b"%PDF-"):
        return "pdf"
    ending = PurePosixPath(path.lower()).suffix.removeprefix(".")
    return ending if ending in _OFFICE and data.startswith(b"PK\x03\x04") else ""


def text_of_document(data: bytes, kind: str) -> DocumentText:
    """Raises `Unreadable`."""
    return text_of_pdf(data) if kind == "pdf" else _text_of_office(data, kind)


def text_of_pdf(data: bytes) -> DocumentText:
    asked = {"pages": PDF_PAGES, "characters": CHARACTERS, "seconds": SECONDS / 2}
    found = _taken_apart("pdf", data, asked, NAMES["pdf"])
    text, total, read = clean(found["text"]), int(found["total"]), int(found["read"])
    if not text:
        raise Unreadable(f"it has {total} pages and no text in the first {read}; it may be scanned")
    cut = read < total or len(text) >= CHARACTERS
    return DocumentText("pdf", text, clean(found["title"]), cut)


def _text_of_office(data: bytes, kind: str) -> DocumentText:
    asked = {"kind": kind, "characters": CHARACTERS, "seconds": SECONDS / 2}
    found = _taken_apart("office", data, asked, NAMES[kind])
    text = clean(found["text"])
    if not text:
        raise Unreadable("there is no text in it")
    return DocumentText(kind, text, cut=bool(found["cut"]))


def _taken_apart(script: str, data: bytes, asked: Mapping[str, Any], what: str) -> Any:
    request = {"body": base64.b64encode(data).decode(), **asked}
    found = taken_apart(script, request, SECONDS, what)
    if problem := found.get("problem"):
        raise Unreadable(problem)
    return found


def taken_apart(script: str, asked: Mapping[str, Any], seconds: float, what: str) -> Any:
    """What the isolated `script` answers. Raises `ToolError` where it does not come to an end."""
    try:
        with (
            _place_of(_whose.get(), seconds),
            IsolatedProcess(script, seconds=seconds, libraries=True) as process,
        ):
            return process.ask(asked)
    except IsolationTimedOut as problem:
        raise ToolError(
            f"The {what} takes too long to read; it may be built to do so."
        ) from problem
    except IsolationFailed as problem:
        raise ToolError(
            f"The {what} cannot be read: it is too large or too deeply nested."
        ) from problem


@contextmanager
def opened_for(who: Hashable) -> Iterator[None]:
    """What is taken apart in it is for the person of this key, who has only so many places."""
    token = _whose.set(who)
    try:
        yield
    finally:
        _whose.reset(token)


@contextmanager
def _place_of(who: Hashable, seconds: float) -> Iterator[None]:
    """Raises IsolationFailed where none becomes free in as long as all before may take."""
    if who is None:
        yield
        return
    with _lock:
        places = _places.get(who)
        if places is None:
            places = _places[who] = BoundedSemaphore(EACH)
    if not places.acquire(timeout=PATIENCE * seconds):
        raise IsolationFailed
    try:
        yield
    finally:
        places.release()


def clean(text: str) -> str:
    """Without what no database and no wire takes: NUL, and halves of surrogate pairs."""
    text = text.replace("\0", "\N{REPLACEMENT CHARACTER}")
    return text.encode(errors="replace").decode()

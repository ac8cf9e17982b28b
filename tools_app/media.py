"""Whether pictures and documents are such that a model service can open them, asked before they are
kept: one that it cannot open would be in every prompt of its conversation from then on.

Plain functions, for threads. Files are foreign and may be built to hang or crash a reader, so they are
opened in a process of its own (`tools_app.isolated`). What is at an address somewhere else is not
fetched here; what a service refuses all the same can be set aside (`conversations.actions.setaside`).
"""

from __future__ import annotations

import base64
import binascii
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from threading import BoundedSemaphore, Lock
from typing import Any

from django.conf import settings

from harness.content import Base64Source, Block, Document, Image, Text
from tools_app.isolation import IsolatedProcess, IsolationFailed, IsolationTimedOut

PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""What the public APIs of model services take as a picture."""
PDF = "application/pdf"
REMEMBERED = 512
"""Good files that are not opened a second time, as when a door and an action both ask."""
AT_ONCE = 2
"""Processes that open files at the same time, each with its gigabyte at most."""

_seats = BoundedSemaphore(AT_ONCE)


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with one block, for whoever sent it."""

    place: int
    """Which of the blocks."""
    field: str
    """Within the block: `source.data`."""
    message: str
    hint: str


class _Known:
    """Digests of files that were found good, the oldest forgotten first."""

    def __init__(self) -> None:
        self._digests: OrderedDict[bytes, None] = OrderedDict()
        self._lock = Lock()

    def __contains__(self, digest: object) -> bool:
        with self._lock:
            return digest in self._digests

    def add(self, digest: bytes) -> None:
        with self._lock:
            self._digests[digest] = None
            while len(self._digests) > REMEMBERED:
                self._digests.popitem(last=False)


_known = _Known()


@dataclass(frozen=True, slots=True)
class _Question:
    place: int
    request: dict[str, Any]
    digest: bytes
    what: str


def first_fault(blocks: Sequence[Block]) -> Fault | None:
    """The first of `blocks` that a model service would refuse, or None.

    What is plain from outside (type, size, encoding) is judged before anything is opened.
    """
    questions: list[_Question] = []
    for place, block in enumerate(blocks):
        asked = _look(place, block)
        if isinstance(asked, Fault):
            return asked
        if asked is not None and asked.digest not in _known:
            questions.append(asked)
    return _open(questions) if questions else None


def faults(blocks: Sequence[Block]) -> list[Fault]:
    """One for each block that a model service would refuse."""
    found = []
    for place, block in enumerate(blocks):
        if not isinstance(block, Text) and (fault := first_fault([block])) is not None:
            found.append(Fault(place, fault.field, fault.message, fault.hint))
    return found


def readable(blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    """The same, with words in place of each block that a model service would refuse."""
    bad = {fault.place: fault for fault in faults(blocks)}
    return tuple(
        Text(text=f"[{bad[place].message} {bad[place].hint}]") if place in bad else block
        for place, block in enumerate(blocks)
    )


def _look(place: int, block: Block) -> Fault | _Question | None:
    if isinstance(block, Text) or not isinstance(block.source, Base64Source):
        return None
    kind, source = block.type, block.source
    allowed = PICTURES if isinstance(block, Image) else (PDF,)
    if source.media_type not in allowed:
        hint = (
            "Send it as PNG, JPEG, GIF or WebP."
            if isinstance(block, Image)
            else "Send a PDF; send other text as a source of type “text”."
        )
        told = f"No model service takes a {_what(block)} of type {source.media_type[:60]!r}."
        return Fault(place, "source.media_type", told, hint)
    try:
        body = base64.b64decode(source.data, validate=True)
    except (binascii.Error, ValueError):
        told = f"The {_what(block)} is not valid base64."
        return Fault(
            place, "source.data", told, "Encode the bytes of the file, without line breaks."
        )
    if not body:
        return Fault(
            place, "source.data", f"The {_what(block)} is empty.", "Send the file's bytes."
        )
    most = settings.AGENTSITE_IMAGE_BYTES if kind == "image" else settings.AGENTSITE_PDF_BYTES
    if len(body) > most:
        told = f"The {_what(block)} has {len(body):,} bytes; at most {most:,} are taken."
        return Fault(place, "source.data", told, "Make it smaller, or upload it as a file.")
    request = {
        "kind": kind,
        "media_type": source.media_type,
        "body": source.data,
        "side": settings.AGENTSITE_IMAGE_PIXELS,
        "pages": settings.AGENTSITE_PDF_PAGES,
    }
    limits = f"{kind} {source.media_type} {request['side']} {request['pages']} "
    return _Question(place, request, sha256(limits.encode() + body).digest(), _what(block))


def _what(block: Image | Document) -> str:
    return "picture" if isinstance(block, Image) else "document"


def _open(questions: Sequence[_Question]) -> Fault | None:
    seconds = settings.AGENTSITE_MEDIA_SECONDS
    asked = questions[0]
    if not _seats.acquire(timeout=seconds):
        return Fault(
            asked.place,
            "source.data",
            f"The {asked.what} was not looked at: too many files are being opened at the moment.",
            "Send it again in a moment.",
        )
    try:
        with IsolatedProcess("media", seconds=seconds, libraries=True) as process:
            for asked in questions:
                told = process.ask(asked.request)
                if problem := told.get("problem"):
                    return _fault(asked, problem, told["remedy"])
                _known.add(asked.digest)
    except IsolationTimedOut:
        told = f"it took longer than {seconds} seconds to open"
        return _fault(asked, told, "Send fewer or smaller files.")
    except IsolationFailed:
        return _fault(asked, "it cannot be opened", "Save it anew in a plainer form.")
    finally:
        _seats.release()
    return None


def _fault(asked: _Question, problem: str, remedy: str) -> Fault:
    return Fault(asked.place, "source.data", f"The {asked.what} cannot be used: {problem}.", remedy)

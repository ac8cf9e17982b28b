"""Whether pictures and documents are such that a model service can open them, asked before they are
kept: one that it cannot open would be in every prompt of its conversation from then on.

Plain functions, for threads. What people and programs send is looked at at once or refused; what comes in
while a run is at work waits for its turn, and keeps no request from its own. Files are foreign and may be
built to hang or crash a reader, so they are opened in a process of its own (`tools_app.isolated`). What is
at an address somewhere else is not fetched here; what a service refuses all the same can be set aside
(`conversations.actions.setaside`).
"""

from __future__ import annotations

import base64
import binascii
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from threading import BoundedSemaphore, Lock
from typing import Any

from django.conf import settings

from harness.content import Base64Source, Block, Document, Image, PlainTextSource, Text
from jobs.turnstile import Turnstile
from tools_app.isolation import IsolatedProcess, IsolationFailed, IsolationTimedOut

PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""What the public APIs of model services take as a picture."""
PDF = "application/pdf"
TEXT_CHARACTERS = 1_000_000
"""Characters of one document that comes as text. It stands in every prompt from then on."""
TOGETHER = 600
"""Files that are sent together, at most; the public APIs take no more in one request."""
REMEMBERED = 4_096
"""Good files that are not opened a second time, as when a door and an action both ask: several times as
many as are sent together, so that one sender's are not forgotten over his next."""
AT_ONCE = 2
"""Processes that open files for requests at the same time, each with its gigabyte at most; and the same
number for runs."""

_for_requests = Turnstile(AT_ONCE)
_for_runs = BoundedSemaphore(AT_ONCE)


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with one block, for whoever sent it."""

    place: int
    """Which of the blocks."""
    field: str
    """Within the block: `source.data`."""
    message: str
    hint: str


@dataclass(frozen=True, slots=True)
class _Size:
    pixels: int
    pages: int


class _Known:
    """Digests of files that were found good, with their sizes; the oldest forgotten first."""

    def __init__(self) -> None:
        self._digests: OrderedDict[bytes, _Size] = OrderedDict()
        self._lock = Lock()

    def size(self, digest: bytes) -> _Size | None:
        with self._lock:
            return self._digests.get(digest)

    def add(self, digest: bytes, size: _Size) -> None:
        with self._lock:
            self._digests[digest] = size
            while len(self._digests) > REMEMBERED:
                self._digests.popitem(last=False)


_known = _Known()


@dataclass(frozen=True, slots=True)
class _Question:
    place: int
    request: dict[str, Any]
    digest: bytes
    what: str


def first_fault(blocks: Sequence[Block], *, who: Hashable) -> Fault | None:
    """The first of `blocks`, which `who` sends together, that a model service would refuse or that is too
    much; None: there is none.

    What is plain from outside (type, size, encoding) is judged before anything is opened. Raises Busy,
    instead of waiting, when others' files are being opened, or others of `who`.
    """
    questions: list[_Question] = []
    for place, block in enumerate(blocks):
        asked = _look(place, block)
        if isinstance(asked, Fault):
            return asked
        if asked is not None:
            questions.append(asked)
        if len(questions) > TOGETHER:
            answer = f"More than {TOGETHER} pictures and documents are sent together."
            return Fault(place, "source", answer, "Send them in several messages.")
    left = settings.AGENTSITE_MESSAGE_PIXELS
    new: list[_Question] = []
    for asked in questions:
        size = _known.size(asked.digest)
        if size is None:
            new.append(asked)
        elif (left := left - size.pixels) < 0:
            return _too_many_pixels(asked)
    if not new:
        return None
    with _for_requests.place(who):
        return _open(new, left)


def faults(blocks: Sequence[Block]) -> list[Fault]:
    """One for each block that a model service would refuse. For runs: it may wait for its turn."""
    found = [_fault_in_turn(place, block) for place, block in enumerate(blocks)]
    return [fault for fault in found if fault is not None]


def readable(blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    """The same, with words in place of each block that a model service would refuse, and the pages of
    documents. As `faults`."""
    bad = {fault.place: fault for fault in faults(blocks)}
    return tuple(
        Text(text=f"[{bad[place].message} {bad[place].hint}]") if place in bad else _paged(block)
        for place, block in enumerate(blocks)
    )


def with_pages(blocks: Sequence[Block]) -> tuple[Block, ...]:
    """The same blocks, those that were found good, with the pages that each document turned out to have."""
    return tuple(map(_paged, blocks))


def _paged(block: Block) -> Block:
    if not isinstance(block, Document):
        return block
    asked = _look(0, block)
    size = _known.size(asked.digest) if isinstance(asked, _Question) else None
    return block.model_copy(update={"pages": size.pages if size is not None else None})


def _fault_in_turn(place: int, block: Block) -> Fault | None:
    asked = _look(place, block)
    if not isinstance(asked, _Question):
        return asked
    if _known.size(asked.digest) is not None:
        return None
    if not _for_runs.acquire(timeout=settings.AGENTSITE_MEDIA_SECONDS):
        return Fault(
            place,
            "source.data",
            f"The {asked.what} was not looked at: too many files are being opened at the moment.",
            "Send it again in a moment.",
        )
    try:
        return _open([asked], settings.AGENTSITE_MESSAGE_PIXELS)
    finally:
        _for_runs.release()


def _look(place: int, block: Block) -> Fault | _Question | None:
    if isinstance(block, Text):
        return None
    if isinstance(block.source, PlainTextSource) and len(block.source.data) > TEXT_CHARACTERS:
        answer = (
            f"The {_what(block)} has {len(block.source.data):,} characters; at most {TEXT_CHARACTERS:,} "
            "are taken."
        )
        return Fault(place, "source.data", answer, "Make it smaller, or upload it as a file.")
    if not isinstance(block.source, Base64Source):
        return None
    kind, source = block.type, block.source
    allowed = PICTURES if isinstance(block, Image) else (PDF,)
    if source.media_type not in allowed:
        hint = (
            "Send it as PNG, JPEG, GIF or WebP."
            if isinstance(block, Image)
            else "Send a PDF; send other text as a source of type “text”."
        )
        answer = f"No model service takes a {_what(block)} of type {source.media_type[:60]!r}."
        return Fault(place, "source.media_type", answer, hint)
    try:
        body = base64.b64decode(source.data, validate=True)
    except (binascii.Error, ValueError):
        answer = f"The {_what(block)} is not valid base64."
        return Fault(
            place, "source.data", answer, "Encode the bytes of the file, without line breaks."
        )
    if not body:
        return Fault(
            place, "source.data", f"The {_what(block)} is empty.", "Send the file's bytes."
        )
    most = settings.AGENTSITE_IMAGE_BYTES if kind == "image" else settings.AGENTSITE_PDF_BYTES
    if len(body) > most:
        answer = f"The {_what(block)} has {len(body):,} bytes; at most {most:,} are taken."
        return Fault(place, "source.data", answer, "Make it smaller, or upload it as a file.")
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


def _open(questions: Sequence[_Question], pixels: int) -> Fault | None:
    """`pixels` is how many they may have together."""
    seconds = settings.AGENTSITE_MEDIA_SECONDS
    asked = questions[0]
    try:
        with IsolatedProcess("media", seconds=seconds, libraries=True) as process:
            for asked in questions:
                answer = process.ask({**asked.request, "pixels": pixels})
                if problem := answer.get("problem"):
                    return _fault(asked, problem, answer["remedy"])
                if answer["pixels"] > pixels:
                    return _too_many_pixels(asked)
                pixels -= answer["pixels"]
                _known.add(asked.digest, _Size(answer["pixels"], answer["pages"]))
    except IsolationTimedOut:
        answer = f"it took longer than {seconds} seconds to open"
        return _fault(asked, answer, "Send fewer or smaller files.")
    except IsolationFailed:
        return _fault(asked, "it cannot be opened", "Save it anew in a plainer form.")
    return None


def _too_many_pixels(asked: _Question) -> Fault:
    most = settings.AGENTSITE_MESSAGE_PIXELS
    answer = f"the pictures that are sent together have more than {most:,} pixels"
    return _fault(asked, answer, "Make them smaller, or send them in several messages.")


def _fault(asked: _Question, problem: str, remedy: str) -> Fault:
    return Fault(asked.place, "source.data", f"The {asked.what} cannot be used: {problem}.", remedy)

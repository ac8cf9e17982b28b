"""Texts, values and content blocks in the form templates show them: bounded, nothing loaded.

What is cut keeps its whole text beside it, behind a "show all"; only what would drown a page is left
to the export.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from harness.content import (
    Base64Source,
    Block,
    Document,
    FileSource,
    Image,
    PlainTextSource,
    Source,
    Text,
    UrlSource,
)
from reading.unseen import visible
from rendering.links import host_of

SHOWN_LINES = 20
SHOWN_CHARACTERS = 2_000
WHOLE_CHARACTERS = 200_000
"""The most that stands behind a "show all"."""
IMAGE_CHARACTERS = 2_000_000
"""Base64 characters of an image that is still put into the page."""

_RASTER = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""Images that are only pixels; an SVG could carry markup."""
_ESCAPE_SEQUENCES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])"
)


@dataclass(frozen=True, slots=True)
class Moment:
    """A time for `<time>`: `iso` in UTC, `clock` in the server's time zone."""

    iso: str
    clock: str

    @classmethod
    def of(cls, when: datetime) -> Moment:
        local = when.astimezone(timezone.get_default_timezone())
        iso = when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return cls(iso, local.strftime("%H:%M"))


@dataclass(frozen=True, slots=True)
class Capped:
    """A text and, if it was too long to show at once, its beginning."""

    whole: str
    head: str | None = None
    note: str = ""
    """What "show all" says."""


def capped(text: str, *, lines: int = SHOWN_LINES, characters: int = SHOWN_CHARACTERS) -> Capped:
    every = text.split("\n")
    whole = text
    if len(text) > WHOLE_CHARACTERS:
        left = _("… %(count)d more characters; the export has them all.") % {
            "count": len(text) - WHOLE_CHARACTERS
        }
        whole = f"{text[:WHOLE_CHARACTERS]}\n{left}"
    if len(every) <= lines and len(text) <= characters:
        return Capped(whole)
    head = "\n".join(every[:lines])[:characters]
    note = ngettext(
        "Show all (%(lines)d line, %(characters)d characters)",
        "Show all (%(lines)d lines, %(characters)d characters)",
        len(every),
    ) % {"lines": len(every), "characters": len(text)}
    return Capped(whole, f"{head}…", note)


@dataclass(frozen=True, slots=True)
class Argument:
    name: str
    value: Capped


def arguments_of(given: Mapping[str, Any], *, in_full: bool) -> list[Argument]:
    """Each argument by name: texts as they are, everything else as JSON. `in_full` cuts nothing."""
    shown = []
    for name, value in given.items():
        if isinstance(value, str):
            text = value
        else:
            text = json.dumps(value, ensure_ascii=False, indent=2, default=str)
        text = visible(text)
        shown.append(Argument(visible(name), Capped(text) if in_full else capped(text)))
    return shown


@dataclass(frozen=True, slots=True)
class Piece:
    """One content block: `text` is shown as it is, `image` from `source`, `note` names the rest."""

    kind: Literal["text", "image", "note"]
    text: Capped | None = None
    source: str = ""
    words: str = ""
    address: str = ""


def pieces_of(blocks: Sequence[Block], *, in_full: bool = False) -> list[Piece]:
    return [piece for block in blocks for piece in _pieces(block, in_full)]


def _pieces(block: Block, in_full: bool) -> list[Piece]:
    match block:
        case Text(text=text):
            plain = _ESCAPE_SEQUENCES.sub("", text)
            return [Piece("text", Capped(plain) if in_full else capped(plain))] if plain else []
        case Image(source=source):
            return [_image(source)]
        case Document(source=PlainTextSource(data=data), title=title):
            return [Piece("note", words=title or _("Text")), Piece("text", capped(data))]
        case Document(source=source, title=title):
            return [_named(title or _("Document"), source)]


def _image(source: Source) -> Piece:
    match source:
        case Base64Source(media_type=media_type, data=data):
            if media_type in _RASTER and len(data) <= IMAGE_CHARACTERS and _is_base64(data):
                address = f"data:{media_type};base64,{data}"
                return Piece("image", source=address, words=_("Image"))
    return _named(_("Image"), source)


def _is_base64(data: str) -> bool:
    try:
        base64.b64decode(data, validate=True)
    except ValueError:
        return False
    return True


def _named(name: str, source: Source) -> Piece:
    match source:
        case UrlSource(url=url) if host := host_of(url):
            return Piece("note", words=f"{name} ({host})", address=url)
        case UrlSource(url=url):
            return Piece("note", words=f"{name} ({visible(url)})")
        case FileSource(file_id=file_id):
            return Piece("note", words=f"{name} ({file_id})")
        case Base64Source(media_type=media_type, data=data):
            size = f"{len(data) * 3 // 4 // 1024 + 1:,} KiB"
            return Piece("note", words=f"{name} ({visible(media_type)}, {size})")
        case _:
            return Piece("note", words=name)


def duration(milliseconds: int) -> str:
    if milliseconds < 1_000:
        return _("%(count)d ms") % {"count": milliseconds}
    seconds = milliseconds / 1_000
    if seconds < 10:
        return _("%(count).1f s") % {"count": seconds}
    if seconds < 60:
        return _("%(count)d s") % {"count": int(seconds)}
    minutes, rest = divmod(int(seconds), 60)
    if minutes >= 60:
        hours, minutes = divmod(minutes, 60)
        return _("%(hours)d h %(minutes)d min") % {"hours": hours, "minutes": minutes}
    return _("%(minutes)d min %(seconds)d s") % {"minutes": minutes, "seconds": rest}

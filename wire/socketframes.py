"""What every socket demands of a frame: text, bounded, one JSON object of a known type, fit values.

Each protocol has types of its own and puts a `Refused` in its own words: `protocol` for pages,
`api.incoming` for programs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, TypeVar

from django.conf import settings
from django.utils.translation import gettext as _
from pydantic import TypeAdapter

from harness.errors import Invalid
from harness.faults import unknown_type
from harness.modelfaults import read_as
from reading.foreignjson import Unreadable, read_json

KEY_CHARACTERS = 100
"""Length of `conversations.Event.key`."""

T = TypeVar("T")


class Refused(Exception):
    """A frame that cannot be taken. `key` is the sender's own word for it, if she gave a fit one;
    `field` the part that is wrong, as it was sent."""

    def __init__(
        self, code: str, message: str, hint: str, key: str | None = None, field: str = ""
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.key = key
        self.field = field


def bounded(text: str | None) -> str:
    """The frame's text (None: it was a binary one). Raises Refused."""
    if text is None:
        raise Refused("bad_frame", _("A frame must be text."), _("Send one JSON object as text."))
    limit: int = settings.AGENTSITE_SOCKET_FRAME_BYTES
    if len(text) > limit or len(text.encode("utf-8", "surrogatepass")) > limit:
        raise Refused(
            "too_large",
            _("A frame may hold at most %(limit)d bytes.") % {"limit": limit},
            _("Send less text, or upload it as a file."),
        )
    return text


def object_in(text: str) -> dict[str, Any] | None:
    """The JSON object that the text is, if it is one."""
    try:
        data = read_json(text, limit=len(text))
    except Unreadable:
        return None
    return data if isinstance(data, dict) else None


def key_of(data: Mapping[str, Any]) -> str | None:
    key = data.get("key")
    return key if isinstance(key, str) and 0 < len(key) <= KEY_CHARACTERS else None


def validated(adapter: TypeAdapter[T], data: Mapping[str, Any], types: Collection[str]) -> T:
    """The frame that `data` is. Raises Refused: for another type than `types`, and for fields
    that are wrong, which its message names."""
    key = key_of(data)
    if data.get("type") not in types:
        fault = unknown_type("type", data.get("type"), tuple(types))
        said = _("There is no such type of frame.")
        raise Refused("unknown_frame", said, fault.remedy, key, "type")
    try:
        return read_as(data, adapter, strict=True)
    except Invalid as problem:
        found = problem.faults
        words = " ".join(f"{each.field}: {each.rule}" for each in found)
        hint = problem.hint
        if len(found) > 1:
            hint = " ".join(f"{each.field}: {each.remedy}" for each in found)
        raise Refused(problem.code, words, hint, key, problem.field) from None


def check_content(content: str, key: str | None) -> None:
    """Raises Refused for a message without text, or with too much of it."""
    limit: int = settings.AGENTSITE_MESSAGE_CHARACTERS
    if not content.strip():
        raise Refused("invalid", _("content: A message needs some text."), _("Write it."), key)
    if len(content) > limit:
        raise Refused(
            "too_large",
            _("content: A message may hold at most %(limit)d characters; this one has %(has)d.")
            % {"limit": limit, "has": len(content)},
            _("Shorten it, or upload it as a file and name the file."),
            key,
        )

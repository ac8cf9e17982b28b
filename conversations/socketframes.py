"""What every socket demands of a frame: text, bounded, one JSON object of a known type, fit values.

Each protocol has types of its own and puts a `Refused` in its own words: `protocol` for pages,
`api.incoming` for programs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, TypeVar

import orjson
from django.conf import settings
from django.utils.translation import gettext as _
from pydantic import TypeAdapter, ValidationError

KEY_CHARACTERS = 100
"""Length of `conversations.Event.key`."""

T = TypeVar("T")


class Refused(Exception):
    """A frame that cannot be taken. `key` is the sender's own word for it, if she gave a fit one."""

    def __init__(self, code: str, message: str, hint: str, key: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.key = key


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
        data = orjson.loads(text)
    except (orjson.JSONDecodeError, UnicodeEncodeError):
        return None
    return data if isinstance(data, dict) else None


def key_of(data: Mapping[str, Any]) -> str | None:
    key = data.get("key")
    return key if isinstance(key, str) and 0 < len(key) <= KEY_CHARACTERS else None


def validated(adapter: TypeAdapter[T], data: Mapping[str, Any], types: Collection[str]) -> T:
    """The frame that `data` is. Raises Refused: for another type than `types`, and for the first
    field that is wrong."""
    key = key_of(data)
    if data.get("type") not in types:
        raise Refused(
            "unknown_frame",
            _("There is no such type of frame."),
            _("The types are: %(types)s.") % {"types": ", ".join(types)},
            key,
        )
    try:
        return adapter.validate_python(data, strict=True)
    except ValidationError as problem:
        first = problem.errors(include_url=False, include_input=False)[0]
        field = ".".join(str(part) for part in first["loc"][1:]) or "type"
        raise Refused(
            "invalid",
            f"{field}: {first['msg']}.",
            _("Correct the field “%(field)s” and send the frame again.") % {"field": field},
            key,
        ) from None


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

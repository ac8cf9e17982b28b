"""Text as it comes off a wire: halves of characters joined, tool arguments parsed.

Whatever leaves here can be encoded as UTF-8 and stored as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from providers.sse import MOST_OF_EVENT
from reading.foreignjson import Unreadable, kept_json, read_json, read_raw_json, without_nul
from reading.wholetext import mended

ARGUMENTS_LIMIT = 32 * 1024 * 1024
"""Characters of one call's arguments."""

HIDDEN = "[key]"
"""Stands where a secret did."""
LEAST_SECRET = 8
"""Characters of one that is looked for; shorter ones stand in any text."""

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


class Mender:
    """Joins surrogate pairs that a service split over two deltas, and replaces lone ones."""

    __slots__ = ("_half",)

    def __init__(self) -> None:
        self._half = ""

    def feed(self, text: str) -> str:
        """What can be shown now; a trailing first half waits for the next call."""
        if not self._half and text.isascii():
            return text
        text, self._half = self._half + text, ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            text, self._half = text[:-1], text[-1]
        return mended(text)

    def rest(self) -> str:
        """What stands for a first half whose second never came; empty in the usual case."""
        half, self._half = self._half, ""
        return _REPLACEMENT if half else ""


class Blanker:
    """Takes secrets out of a text that comes in pieces: what may be the beginning of one waits for more."""

    __slots__ = ("_held", "_secrets", "found")

    def __init__(self, secrets: Iterable[str] = (), *, least: int = LEAST_SECRET) -> None:
        self._secrets = [secret for secret in secrets if len(secret) >= least]
        self._held = ""
        self.found = False

    def feed(self, text: str) -> str:
        """What can be shown now."""
        if not self._secrets:
            return text
        text = self._blanked(self._held + text)
        waits = max(_beginning_at_the_end(text, secret) for secret in self._secrets)
        shown, self._held = text[: len(text) - waits], text[len(text) - waits :]
        return shown

    def rest(self) -> str:
        """What waited and was none."""
        held, self._held = self._held, ""
        return held

    def whole(self, value: Any) -> Any:
        """JSON values without them."""
        match value:
            case _ if not self._secrets:
                return value
            case str():
                return self._blanked(value)
            case dict():
                return {self._blanked(name): self.whole(held) for name, held in value.items()}
            case list():
                return [self.whole(held) for held in value]
        return value

    def _blanked(self, text: str) -> str:
        for secret in self._secrets:
            if secret in text:
                self.found = True
                text = text.replace(secret, HIDDEN)
        return text


def _beginning_at_the_end(text: str, secret: str) -> int:
    """How many characters at the end of `text` are the beginning of `secret`, which it does not hold."""
    for length in range(min(len(secret) - 1, len(text)), 0, -1):
        if text.endswith(secret[:length]):
            return length
    return 0


def parsed_arguments(raw: str) -> tuple[dict[str, Any], str]:
    """The arguments of a tool call and "", or {} and `raw` when it is no JSON object.

    Nothing at all counts as no arguments. `NaN` and `Infinity` are not JSON.
    """
    if not raw.strip():
        return {}, ""
    try:
        value = read_json(raw, limit=ARGUMENTS_LIMIT)
    except Unreadable:
        return {}, mended(raw)
    if not isinstance(value, dict):
        return {}, mended(raw)
    # What runs is what the log says ran.
    return (without_nul(value) if "\\u0000" in raw else value), ""


def whole_arguments(value: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """The same for arguments that came at once, as a value."""
    try:
        kept: dict[str, Any] = kept_json(value, limit=ARGUMENTS_LIMIT)
    except Unreadable as problem:
        return {}, str(problem)
    return kept, ""


def parsed_event(text: str) -> Any:
    """One event of a stream, in which halves of characters may stand. Raises `JSONDecodeError` for what
    is none, and for one of more values, or nested deeper, than anybody's."""
    try:
        return read_raw_json(text, limit=MOST_OF_EVENT)
    except Unreadable as problem:
        raise json.JSONDecodeError(str(problem), text[:100], 0) from None

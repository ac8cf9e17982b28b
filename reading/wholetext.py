"""Texts and plain values as they can be sent as UTF-8 and kept by every database, whatever they were.

For what is to be kept though a sign of it is none; `foreignjson` refuses such texts instead.
"""

from __future__ import annotations

import json
from math import isfinite
from typing import Any

import orjson

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def mended(text: str) -> str:
    """`text` with surrogate pairs joined and lone surrogates replaced."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def storable(text: str) -> str:
    """The same, with a replacement character for every NUL as well, which one database cannot hold."""
    return mended(text.replace("\0", _REPLACEMENT))


def storable_value(value: Any) -> Any:
    """A plain value with such texts, keys among them, and nothing for numbers that are none."""
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, dict):
        return {storable_value(key): storable_value(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [storable_value(item) for item in value]
    if isinstance(value, float) and not isfinite(value):
        return None
    return value


def json_of(value: Any) -> bytes:
    """A plain value as JSON, whatever others wrote in it."""
    try:
        return orjson.dumps(value)
    except TypeError:  # it knows no halves of characters and no numbers of any length
        return json.dumps(value).encode()


def storable_json(value: Any) -> bytes | None:
    """A plain value as JSON; none where it may hold something that cannot be kept. Faster than looking."""
    try:
        text = orjson.dumps(value)
    except TypeError:  # it knows no halves of characters and no numbers of any length
        return None
    # It may also be the words for a NUL, which `storable_value` leaves alone.
    return None if rb"\u0000" in text else text

"""Texts and plain values as they can be sent as UTF-8 and kept by every database, whatever they were.

For what is to be kept though a sign of it is none; `foreignjson` refuses such texts instead.
"""

from __future__ import annotations

import json
from codecs import getincrementaldecoder
from math import isfinite
from typing import Any

import orjson

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_AT_ONCE = 16_384


def mended(text: str) -> str:
    """`text` with surrogate pairs joined and lone surrogates replaced."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        halves = text.encode("utf-16-le", "surrogatepass")
        return _decoded(halves, "utf-16-le")
    return text


def decoded(data: bytes) -> str:
    """UTF-8 as a text, with what is none replaced."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return _decoded(data, "utf-8")


def _decoded(data: bytes, encoding: str) -> str:
    """In pieces: each replacement takes its time, in which no other thread gets a turn."""
    decoder = getincrementaldecoder(encoding)("replace")
    pieces = [decoder.decode(data[at : at + _AT_ONCE]) for at in range(0, len(data), _AT_ONCE)]
    return "".join([*pieces, decoder.decode(b"", final=True)])


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

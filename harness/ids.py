"""Public ids: an opaque prefix and a time-ordered random part.

The prefixes are those of the public Managed Agents API, so that ids need no translation on `/v1`.
"""

from __future__ import annotations

import hashlib
import os
import time
from itertools import product

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
"""Crockford's base 32 in lower case: no i, l, o or u to misread."""


_PAIRS = tuple(map("".join, product(_ALPHABET, repeat=2)))
"""Two digits at a time."""


def _base32(number: int, length: int) -> str:
    """The last `length` digits, an even number of them."""
    return "".join([_PAIRS[number >> place & 1023] for place in range(5 * length - 10, -1, -10)])


def new_id(prefix: str) -> str:
    """`<prefix>_` and 26 characters: 48 bits of milliseconds, then 80 random bits."""
    milliseconds = time.time_ns() // 1_000_000
    random = int.from_bytes(os.urandom(10), "big")
    return f"{prefix}_{_base32(milliseconds << 80 | random, 26)}"


def new_event_id() -> str:
    return new_id("sevt")


def new_conversation_id() -> str:
    return new_id("sesn")


def derived_conversation_id(*parts: str) -> str:
    """Always the same id for the same parts, and in practice no other's: 130 bits of their SHA-256."""
    encoded = b"".join(b"%d:%s" % (len(part.encode()), part.encode()) for part in parts)
    number = int.from_bytes(hashlib.sha256(encoded).digest(), "big") >> 126
    return f"sesn_{_base32(number, 26)}"

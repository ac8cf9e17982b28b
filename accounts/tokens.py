"""One-time tokens of links: random, and stored only as a hash."""

from __future__ import annotations

import hashlib
import secrets


def new_token() -> str:
    """256 random bits, fit for a URL."""
    return secrets.token_urlsafe(32)


def hash_token(token: str) -> str:
    """64 hexadecimal digits. Plain SHA-256 suffices: a random token cannot be guessed offline."""
    return hashlib.sha256(token.encode()).hexdigest()

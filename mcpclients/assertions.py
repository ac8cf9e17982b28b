"""Clients that sign who they are (`private_key_jwt`, RFC 7523), by keys that their documents name.

Only public keys of three kinds are kept, and nothing is asked of anybody here: whose keys are read again, and
when, is `documents`'.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import jwt
from django.core.cache import cache
from django.views.decorators.debug import sensitive_variables

from harness.errors import Invalid

from .models import ID_LENGTH, McpClient

METHOD = "private_key_jwt"
KIND = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
ALGORITHMS = ("ES256", "ES384", "EdDSA", "PS256", "RS256")
MOST_KEYS = 20
LONGEST = 8_000
MOST_SECONDS = 600
"""That one may be good for."""
LEEWAY = 30
_PUBLIC = {"EC": ("crv", "x", "y"), "OKP": ("crv", "x"), "RSA": ("n", "e")}
_NUMBER = re.compile(r"[A-Za-z0-9_-]+=*")
"""How the numbers of a key are written: who decodes passes over any other sign."""
_LENGTHS = {"n": 1_400, "e": 8}
"""Characters of an RSA key's numbers: with longer ones a check takes long."""


@dataclass(frozen=True, slots=True)
class Told:
    """What an assertion says of itself, unproved."""

    client_id: str = ""
    key_id: str = ""


def keys_in(said: Any) -> dict[str, Any]:
    """A JWK set as it is kept. Raises Invalid, in English, for programmers."""
    given = said.get("keys") if isinstance(said, Mapping) else None
    if not isinstance(given, list) or not 1 <= len(given) <= MOST_KEYS:
        raise Invalid(f"It names between one and {MOST_KEYS} keys in jwks or at jwks_uri.")
    return {"keys": [_public(key) for key in given]}


@sensitive_variables()
def told_by(assertion: str) -> Told:
    if not assertion or len(assertion) > LONGEST:
        return Told()
    try:
        said = jwt.decode_complete(assertion, options={"verify_signature": False})
    except (jwt.PyJWTError, ValueError, RecursionError):
        return Told()
    who, key = said["payload"].get("sub"), said["header"].get("kid", "")
    if not isinstance(who, str) or len(who) > ID_LENGTH or not isinstance(key, str):
        return Told()
    # What it says is escaped: no database keeps a NUL or half of a character.
    if not (who.isascii() and who.isprintable()):
        return Told()
    return Told(who, key)


@sensitive_variables()
def proves(client: McpClient, assertion: str, places: Sequence[str]) -> bool:
    """Whether the client signed it, for one of `places`, a short while ago, and it was not shown before."""
    told = told_by(assertion)
    keys = client.keys["keys"] if client.keys else []
    # Without a name every key of the set may be meant.
    meant = [key for key in keys if not told.key_id or key.get("kid") == told.key_id]
    said = next(filter(None, (_proved(client, assertion, key, places) for key in meant)), None)
    # The library takes whatever `int` does.
    if said is None or int(said["exp"]) > time.time() + MOST_SECONDS + LEEWAY:
        return False
    mark = sha256(f"{client.pk} {said['jti']}".encode("utf-8", "surrogatepass")).hexdigest()
    return bool(cache.add(f"mcp-assertion:{mark}", 1, timeout=MOST_SECONDS + 2 * LEEWAY))


@sensitive_variables()
def _proved(
    client: McpClient, assertion: str, key: dict[str, Any], places: Sequence[str]
) -> dict[str, Any] | None:
    try:
        said: dict[str, Any] = jwt.decode(
            assertion,
            jwt.PyJWK(key).key,
            algorithms=list(ALGORITHMS),
            audience=list(places),
            issuer=client.client_id,
            subject=client.client_id,
            leeway=LEEWAY,
            options={"require": ["aud", "exp", "iss", "jti", "sub"]},
        )
    except (jwt.PyJWTError, ValueError, TypeError):
        return None
    return said


def _public(key: Any) -> dict[str, Any]:
    kind = key.get("kty") if isinstance(key, Mapping) else None
    names = _PUBLIC.get(kind) if isinstance(kind, str) else None
    if names is None or "d" in key:
        raise Invalid("Its keys are public ones of the kinds EC, OKP and RSA.")
    kept = {"kty": kind, **{name: key.get(name) for name in names}}
    for name in names:
        value = kept[name]
        if not isinstance(value, str) or len(value) > _LENGTHS.get(name, 200):
            raise Invalid("One of its keys is too long, or none.")
        if name != "crv" and not _NUMBER.fullmatch(value):
            raise Invalid("One of its keys cannot be read.")
    # Not what it is for (`alg`, `use`): sets name keys for other things beside those that sign.
    if isinstance(key.get("kid"), str) and len(key["kid"]) <= 200:
        kept["kid"] = key["kid"]
    try:
        jwt.PyJWK(kept)
    except (jwt.PyJWTError, ValueError, TypeError):
        raise Invalid("One of its keys cannot be read.") from None
    return kept

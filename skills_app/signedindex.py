"""The index of a source of skills: one signed document that names every version with its digest.

Pure: what it holds and how it is judged. One document, so that nothing of different times can be put
together; a moment of issue that never goes back, against old ones; an end, against a source that is held
still. Serving it is `serving`'s part, fetching it `fetching`'s.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from datetime import date
from typing import Any, Literal

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from django.utils.translation import gettext as _
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harness.errors import Conflict, Invalid
from reading.foreignjson import TooLong, Unreadable, read_json

SCHEMA = "https://schemas.agentskills.io/discovery/0.2.0/schema.json"
"""What the standard's clients look for."""
LIFE_SECONDS = 7 * 86_400
"""After which an index is believed no more; a server signs a new one whenever it is asked."""
AHEAD_SECONDS = 3_600
"""How far another machine's clock may go before ours."""
MOST_BYTES = 8 * 1024 * 1024
MOST_PARTS = 500_000
"""Fields and values, which is more than the most skills have."""
SHA256 = r"^sha256:[0-9a-f]{64}$"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Offered(_Strict):
    """One version that a source offers."""

    name: str = Field(max_length=64)
    type: Literal["archive"] = "archive"
    description: str = Field(max_length=1_024)
    url: str = Field(max_length=2_000)
    """Relative to the index."""
    digest: str = Field(pattern=SHA256)
    """Of the archive."""
    version: str = Field(max_length=50)
    content: str = Field(pattern=SHA256)
    """Of all its files (`folder.digest_of`)."""
    size: int = Field(ge=0)
    """Bytes of the archive."""
    deprecated: bool = False
    replacement: str = Field(default="", max_length=200)
    removal_on: date | None = None


class Index(_Strict):
    schema_: str = Field(default=SCHEMA, alias="$schema")
    issued: int
    """Seconds since 1970; also its version."""
    expires: int
    skills: tuple[Offered, ...] = Field(max_length=10_000)
    """Of each name the version that is stable comes first."""


def public_key_of(key: Ed25519PrivateKey) -> str:
    return base64.b64encode(key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)).decode()


def signed(index: Index, key: Ed25519PrivateKey) -> dict[str, Any]:
    """The document as it is sent."""
    document = index.model_dump(mode="json", by_alias=True)
    signature = base64.b64encode(key.sign(_canonical(document))).decode()
    return {**document, "signature": {"key": public_key_of(key), "value": signature}}


def read_index(data: bytes, *, key: str, now: float, seen: int = 0) -> Index:
    """What a source says, if it is signed with this key, not older than what was `seen` of it, and not past
    its end. Raises Invalid and Conflict."""
    document = _document(data)
    signature = document.pop("signature", None)
    if not isinstance(signature, dict) or signature.get("key") != key:
        raise _refused(_("It is not signed with the key that is known of the source."))
    try:
        public = Ed25519PublicKey.from_public_bytes(base64.b64decode(key, validate=True))
        value = base64.b64decode(str(signature.get("value")), validate=True)
        public.verify(value, _canonical(document))
    except (InvalidSignature, ValueError, binascii.Error) as problem:
        raise _refused(_("Its signature does not fit.")) from problem
    if (
        signature.keys() != {"key", "value"}
        or base64.b64encode(value).decode() != signature["value"]
    ):
        raise _refused(_("Its signature is not written as one is."))
    try:
        index = Index.model_validate(document)
    except ValidationError as problem:
        raise _refused(_("It is not what an index is.")) from problem
    if index.issued < seen:
        raise Conflict(
            _("The source shows an older index than before."),
            hint=_("Somebody may stand in between. Try again later, or ask who runs it."),
        )
    if index.issued > now + AHEAD_SECONDS or index.expires > index.issued + LIFE_SECONDS:
        raise _refused(_("It is not of this time."))
    if index.expires <= now:
        raise Conflict(
            _("The index of the source has expired."),
            hint=_("Somebody may hold it still. Try again later, or ask who runs it."),
        )
    return index


def _document(data: bytes) -> dict[str, Any]:
    try:
        document = read_json(data, limit=MOST_BYTES, parts=MOST_PARTS)
    except TooLong as problem:
        raise _refused(_("It is too large.")) from problem
    except Unreadable as problem:
        raise _refused(_("It cannot be read.")) from problem
    if not isinstance(document, dict):
        raise _refused(_("It cannot be read."))
    if data != _canonical(document):
        raise _refused(_("It is not written as it was signed."))
    return document


def written(document: Mapping[str, Any]) -> str:
    """The one form in which a document is sent, so that no two texts mean the same."""
    return json.dumps(document, ensure_ascii=True, separators=(",", ":"), sort_keys=True)


def _canonical(document: Mapping[str, Any]) -> bytes:
    return written(document).encode()


def _refused(why: str) -> Invalid:
    return Invalid(
        _("The index of the source cannot be believed. %(why)s") % {"why": why},
        field="source",
        hint=_("Check its address and its key."),
    )

"""What a client says of itself (RFC 7591), in a registration or in a document of its own.

Taken are public clients that use codes; what else it says is not kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.errors import Invalid
from reading.unseen import visible

from .redirects import host_of, is_redirect

MOST_REDIRECTS = 10
NAME_LENGTH = 80


@dataclass(frozen=True, slots=True)
class Described:
    name: str
    redirect_uris: list[str]


def described(said: Mapping[str, Any]) -> Described:
    """Raises Invalid with the field. For programmers, so in English."""
    uris = said.get("redirect_uris")
    if not isinstance(uris, list) or not 1 <= len(uris) <= MOST_REDIRECTS:
        raise Invalid(
            f"A client needs between one and {MOST_REDIRECTS} redirect_uris.", field="redirect_uris"
        )
    if not all(isinstance(uri, str) and is_redirect(uri) for uri in uris):
        raise Invalid(
            "Each of the redirect_uris must be https, http on a loopback address, or of a program's own "
            "scheme, such as com.example.notes:/back.",
            field="redirect_uris",
        )
    _require(said, "grant_types", "authorization_code")
    _require(said, "response_types", "code")
    name = said.get("client_name") or host_of(uris[0])
    if not isinstance(name, str):
        raise Invalid("The client_name must be a string.", field="client_name")
    # Signs that nobody sees, or that turn the direction, would make one name look like another.
    plain = " ".join(visible(name[: 4 * NAME_LENGTH]).split())[:NAME_LENGTH]
    return Described(plain or host_of(uris[0])[:NAME_LENGTH], list(dict.fromkeys(uris)))


def _require(said: Mapping[str, Any], field: str, value: str) -> None:
    given = said.get(field)
    if given is not None and (not isinstance(given, list) or value not in given):
        raise Invalid(f"The {field} must contain {value}.", field=field)

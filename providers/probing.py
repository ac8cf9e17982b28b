"""Whether a key opens a model service: one request for the list of its models, which costs nothing.

Only the status of the answer is read, and never a word of it: what answers there may be no model service
at all. How the client connects is its maker's; who may ask, `accounts`'.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpx2


class Outcome(StrEnum):
    WORKS = "works"
    REFUSED = "refused"
    UNREACHED = "unreached"
    """Nothing answered, or nothing that works."""
    UNKNOWN = "unknown"
    """Something answers that does not tell."""


@dataclass(frozen=True, slots=True)
class _Wire:
    address: str
    """The service's own; empty: it has none."""
    path: str
    headers: Callable[[str], Mapping[str, str]]


_WIRES: Mapping[str, _Wire] = {
    "anthropic": _Wire(
        "https://api.anthropic.com",
        "/v1/models?limit=1",
        lambda key: {"x-api-key": key, "anthropic-version": "2023-06-01"},
    ),
    "openai_compatible": _Wire(
        "", "/models", lambda key: {"Authorization": f"Bearer {key}"} if key else {}
    ),
}


async def probe(
    provider: str, key: str, base_url: str, *, client: httpx2.AsyncClient, seconds: float
) -> Outcome:
    """What became of the request, at the latest after `seconds`. Lets through what the client's judge of
    addresses raises. `UNKNOWN`, without a request, for a provider that nobody knows how to ask."""
    import httpx2  # noqa: PLC0415 - heavy, imported on first use

    wire = _WIRES.get(provider)
    address = base_url or (wire.address if wire else "")
    if wire is None or not address:
        return Outcome.UNKNOWN
    if not (key.isascii() and key.isprintable()) or " " in key:
        return Outcome.REFUSED
    try:
        async with (
            asyncio.timeout(seconds),
            client.stream("GET", address + wire.path, headers=dict(wire.headers(key))) as answer,
        ):
            return _meaning(answer.status_code)
    except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError, OSError):
        return Outcome.UNREACHED


def _meaning(status: int) -> Outcome:
    match status:
        case 401 | 403:
            return Outcome.REFUSED
        case _ if 200 <= status < 300:
            return Outcome.WORKS
        case _ if status >= 500:
            return Outcome.UNREACHED
    return Outcome.UNKNOWN

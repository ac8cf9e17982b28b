"""Searching the web through the provider that the operator chose, behind the same egress policy.

`searxng` is a SearXNG server asked for JSON; `ddgs` the library of that name, which is let out through
a proxy of ours. Without a provider searching is refused in words that say what to do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any, Protocol
from urllib.parse import urlencode

from django.conf import settings

from harness.errors import ToolError
from reading.foreignjson import read_json
from sandbox.egress import EgressProxy, Refused, Request, entry_for
from tools_app.web.client import MOST_BYTES, Address, Egress, fetch

SECONDS = 20
SNIPPET = 500
"""Characters of a result's text."""


@dataclass(frozen=True, slots=True)
class Hit:
    title: str
    address: str
    snippet: str


class SearchProvider(Protocol):
    async def search(self, query: str, *, most: int, egress: Egress) -> list[Hit]:
        """At most so many results, best first. Raises `ToolError`."""


@dataclass(frozen=True, slots=True)
class SearxNG:
    """A SearXNG server; its settings must list `json` among the formats."""

    url: str

    async def search(self, query: str, *, most: int, egress: Egress) -> list[Hit]:
        base = self.url.rstrip("/")
        asked = f"{base}/search?{urlencode({'q': query, 'format': 'json'})}"
        answer = await fetch(asked, egress, headers={"Accept": "application/json"}, seconds=SECONDS)
        if answer.status != 200:
            raise ToolError(
                f"The search server answered {answer.status} {answer.reason}.",
                hint="Whoever runs this server can check that it offers the format “json”.",
            )
        try:
            results = read_json(answer.body, limit=MOST_BYTES)["results"]
            hits = [_hit(found, title="title", address="url", text="content") for found in results]
        except (ValueError, KeyError, TypeError, AttributeError) as problem:
            raise ToolError("The search server's answer cannot be understood.") from problem
        return [hit for hit in hits if hit.address][:most]


@dataclass(frozen=True, slots=True)
class Ddgs:
    """The `ddgs` library with one of its services, which needs neither server nor key."""

    host: str = "html.duckduckgo.com"
    backend: str = "duckduckgo"

    async def search(self, query: str, *, most: int, egress: Egress) -> list[Hit]:
        # Asked first, so that the reason is ours and not a broken tunnel's.
        try:
            entry_for(Request("CONNECT", self.host, 443, "", (), 0), egress.endpoints)
        except Refused as refusal:
            raise _closed(self.host, refusal) from refusal
        proxy = EgressProxy(
            [endpoint for endpoint in egress.endpoints if endpoint.covers(self.host)],
            on_decision=egress.on_decision,
            resolve=egress.resolve,
            connect=egress.connect,
        )
        port = await proxy.start_on_loopback()
        try:
            asked = partial(self._ask, f"http://127.0.0.1:{port}", query, most)
            async with asyncio.timeout(SECONDS + 5):
                found = await asyncio.to_thread(asked)
        except TimeoutError as problem:
            raise ToolError(
                "The search took too long. Try again, or with other words."
            ) from problem
        finally:
            await proxy.close()
        return [_hit(one, title="title", address="href", text="body") for one in found][:most]

    def _ask(self, proxy: str, query: str, most: int) -> list[dict[str, Any]]:
        library = import_module("ddgs")  # slow to load, and needed by few installations
        errors = import_module("ddgs.exceptions")
        try:
            client = library.DDGS(proxy=proxy, timeout=SECONDS)
            found: list[dict[str, Any]] = client.text(query, max_results=most, backend=self.backend)
        except errors.DDGSException as problem:
            if "No results" in str(problem):
                return []
            raise ToolError(
                f"The search did not work: {str(problem)[:300]}",
                hint="It may be too much in a short time; wait a little, or use other words.",
            ) from problem
        return found


def _closed(host: str, refusal: Refused) -> ToolError:
    return ToolError(
        f"The search was not made: {refusal.reason}.",
        hint=f"Searching asks {host}, which staff can list in the environment's network_policies "
        "with port 443 and every method.",
    )


def _hit(found: Mapping[str, Any], *, title: str, address: str, text: str) -> Hit:
    def part(name: str, most: int) -> str:
        return " ".join(str(found.get(name) or "").split())[:most]

    return Hit(part(title, 300), part(address, 2_048), part(text, SNIPPET))


def _searxng() -> SearchProvider:
    Address.parse(settings.AGENTSITE_SEARXNG_URL)
    return SearxNG(settings.AGENTSITE_SEARXNG_URL)


PROVIDERS: Mapping[str, Callable[[], SearchProvider]] = {"searxng": _searxng, "ddgs": Ddgs}


def provider() -> SearchProvider:
    """The one the operator chose. Raises `ToolError` where there is none."""
    name: str = settings.AGENTSITE_SEARCH_PROVIDER
    if not name:
        raise ToolError(
            "Nothing was searched: this server has no search provider.",
            hint="Whoever runs it can set AGENTSITE_SEARCH_PROVIDER to one of "
            f"{', '.join(PROVIDERS)}. Go on with what you have, or ask the person for addresses.",
        )
    return PROVIDERS[name]()

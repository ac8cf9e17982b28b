"""A client for the official runner, made of our own parts: discovery, registration, tokens, sessions.

`python -m tests.conformance.client ADDRESS`, as the runner calls it. A person's part is played by following
where she would be led. Tables have no part in it; what they hold is in variables here.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import sys
from base64 import urlsafe_b64encode
from hashlib import sha256
from typing import Any
from unittest.mock import patch
from urllib.parse import parse_qs, urlencode, urlsplit

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentsite.settings_test")
os.environ.setdefault("AGENTSITE_ENV_FILE", "")
django.setup()

import httpx2  # noqa: E402

from mcpservers import addresses, guards  # noqa: E402
from mcpservers.connecting import MOST_STEPS  # noqa: E402
from mcpservers.sessions import Sessions, Unreachable, Where, connected, listing_of  # noqa: E402
from net import hostlists  # noqa: E402
from vaults import oauth  # noqa: E402
from vaults.auth import Refresh  # noqa: E402

BACK = "http://localhost:3000/callback"
DOCUMENT = "https://conformance-test.local/client-metadata.json"
GIVEN: dict[str, Any] = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")


def open_loopback() -> None:
    """The runner's servers stand at ports that nobody knows before."""
    listed = tuple(hostlists.Entry.parse(host) for host in ("localhost", "127.0.0.1", "::1"))
    patch.object(addresses, "_listed", lambda: listed).start()
    patch.object(hostlists, "entries_with_ports", lambda _written: listed).start()


async def connect(url: str, had: str, wanted: str) -> tuple[str, str]:
    """A token and its scope, as `actions.connections` goes about it."""
    guard = await guards.find_guard(url)
    client_id, secret, method = GIVEN.get("client_id"), GIVEN.get("client_secret", ""), ""
    if client_id:
        method = "client_secret_basic" if secret else "none"
    elif guard.takes_document:
        client_id, method = DOCUMENT, "none"
    else:
        made = await guards.register(guard, BACK)
        client_id, secret, method = made.client_id, made.secret, made.method
    scope = " ".join(dict.fromkeys([*guard.scope.split(), *had.split(), *wanted.split()]))
    verifier, state = secrets.token_urlsafe(64), secrets.token_urlsafe(32)
    digest = sha256(verifier.encode()).digest()
    asked = {
        "response_type": "code",
        "client_id": client_id,
        "redirect_uri": BACK,
        "state": state,
        "code_challenge": urlsafe_b64encode(digest).decode().rstrip("="),
        "code_challenge_method": "S256",
        "resource": guard.resource,
        **({"scope": scope} if scope else {}),
    }
    async with httpx2.AsyncClient(trust_env=False) as http:
        led = await http.get(f"{guard.authorization_endpoint}?{urlencode(asked)}")
    given = parse_qs(urlsplit(led.headers["Location"]).query)
    if given["state"] != [state]:
        raise SystemExit("another state came back")
    refresh = Refresh(
        token_endpoint=guard.token_endpoint,
        client_id=client_id,
        client_auth=method,
        resource=guard.resource,
        of_mcp_server=True,
    )
    form = {
        "grant_type": "authorization_code",
        "code": given["code"][0],
        "redirect_uri": BACK,
        "code_verifier": verifier,
    }
    got = oauth.granted(await oauth.ask_endpoint(refresh, secret, form))
    return got.token, " ".join(dict.fromkeys([*scope.split(), *got.scope.split()]))


async def use(where: Where, sessions: Sessions) -> None:
    """Look at it and call each tool once, with plain values."""

    async def told(_listing: object) -> None:
        pass

    async with connected(
        where, lambda: None, lambda _why: None, lambda _said: None, lambda _started: None
    ) as client:
        listing = await listing_of(client)
    for tool in listing.tools:
        properties = tool.input_schema.get("properties", {})
        values = {
            name: 2 if held.get("type") == "number" else "x" for name, held in properties.items()
        }
        await sessions.call(where, tool.name, values, seconds=30.0, on_listing=told)


async def run(url: str) -> None:
    open_loopback()
    sessions = Sessions()
    where = Where(1, "conformance", url)
    scope = wanted = ""
    try:
        for _step in range(MOST_STEPS):
            try:
                await use(where, sessions)
                return
            except Exception as problem:
                challenge = await _challenge(where, problem, sessions)
                if challenge is None:
                    raise
                if challenge.more and not set(challenge.scope.split()) - set(scope.split()):
                    raise SystemExit("it asked for that before") from None
                wanted = challenge.scope
            token, scope = await connect(url, scope, wanted)
            where = where.authorised_by(token)
    finally:
        await sessions.close()


async def _challenge(where: Where, problem: Exception, sessions: Sessions) -> Any:
    if isinstance(problem, Unreachable):
        return problem.challenge
    found: list[Any] = []
    try:
        async with connected(
            where, lambda: None, lambda _why: None, found.append, lambda _started: None
        ) as client:
            await listing_of(client)
    except Exception:
        return found[0] if found else None
    return None


if __name__ == "__main__":
    asyncio.run(run(sys.argv[-1]))

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
from mcp_types import CallToolResult  # noqa: E402

from mcpservers import addresses, guards  # noqa: E402
from mcpservers.asking import MOST_ROUNDS  # noqa: E402
from mcpservers.connecting import MOST_STEPS, is_answer_of  # noqa: E402
from mcpservers.elicitation import Asked, read_asked  # noqa: E402
from mcpservers.listing import Described, fault_of  # noqa: E402
from mcpservers.sessions import Listing, Sessions, Unreachable, Where, connected, listing_of  # noqa: E402
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
    claimed = given.get("iss", [""])[0]
    if not is_answer_of(guard.issuer, claimed, names_itself=guard.names_itself):
        raise SystemExit("another authorisation server answered")
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
    """Look at it and call each tool that is taken: with what the runner says, else with plain values."""
    async with connected(
        where, lambda: None, lambda _why: None, lambda _said: None, lambda _started: None
    ) as client:
        listing = await listing_of(client)
    taken = [tool for tool in listing.tools if not fault_of(tool)]
    told = [(each["name"], each["arguments"]) for each in GIVEN.get("toolCalls", ())]
    for name, values in told or [(tool.name, _values(tool, listing)) for tool in taken]:
        await _call(where, sessions, name, values)


def _values(tool: Described, listing: Listing) -> dict[str, Any]:
    """A tool that wants a schema is given the first one that was kept."""
    plain: dict[str, Any] = {"number": 2, "object": listing.tools[0].input_schema}
    properties = tool.input_schema.get("properties", {})
    return {name: plain.get(held.get("type"), "x") for name, held in properties.items()}


async def _call(where: Where, sessions: Sessions, name: str, values: dict[str, Any]) -> None:
    """To its end: what the server asks meanwhile is answered yes, as a person would."""

    async def told(_listing: object) -> None:
        pass

    responses, state = None, ""
    for _round in range(MOST_ROUNDS):
        answer = await sessions.call(
            where, name, values, seconds=30.0, on_listing=told, responses=responses, state=state
        )
        if isinstance(answer, CallToolResult):
            return
        wire = answer.model_dump(mode="json", by_alias=True, exclude_none=True)
        asked = read_asked(wire["inputRequests"])
        responses = {each: _yes(asked[each]) for each in asked}
        state = answer.request_state or ""


def _yes(asked: Asked) -> dict[str, Any]:
    given: dict[str, Any] = {"boolean": True, "number": 2, "integer": 2}
    content = {field.name: given.get(field.kind, "x") for field in asked.fields}
    return {"action": "accept", "content": content}


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

"""The official client, knowing nothing but the address of `/mcp`, comes in when its person allows it."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)

from accounts.models import ApiToken, Organisation, User
from agents.models import Agent
from tests.cast import ClientOf
from tests.conversations.conftest import MakeAgent, environment, make_agent
from tests.mcpclients.flow import confirmed

__all__ = ["environment", "make_agent"]

pytestmark = pytest.mark.django_db(transaction=True)

BACK = "http://127.0.0.1:1/callback"


class Kept:
    """What the client stores on its person's machine."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


@pytest.fixture
def agent(make_agent: MakeAgent) -> Agent:
    return make_agent("Helper", provider="demo")


def test_the_official_client_registers_is_let_in_renews_and_is_shut_out(
    live_server: Any, alice: User, acme: Organisation, agent: Agent, client_of: ClientOf
):
    hers, kept = confirmed(client_of(alice)), Kept()
    asked: list[str] = []
    place, host = f"{live_server.url}/mcp", urlsplit(live_server.url).netloc

    def revoke() -> None:
        hers.post(f"/settings/tokens/{ApiToken.objects.get().uid}/revoke/")

    def allow(address: str) -> dict[str, list[str]]:
        assert address.startswith(f"{live_server.url}/oauth/authorize?")
        asked.append(address)
        here = address.removeprefix(live_server.url)
        page = hers.get(here, headers={"host": host}).content.decode()
        assert "A program on your own machine" in page
        form = {
            "organisation": acme.uid, "scopes": ["conversations:read"], "days": "30", "allow": "1"
        }  # fmt: skip
        answer = hers.post(here, form, headers={"host": host, "origin": live_server.url})
        assert answer["Location"].startswith(f"{BACK}?")
        return parse_qs(urlsplit(answer["Location"]).query)

    async def go() -> None:
        came: dict[str, list[str]] = {}

        async def send_her(address: str) -> None:
            came.update(await asyncio.to_thread(allow, address))

        async def wait_for_her() -> AuthorizationCodeResult:
            return AuthorizationCodeResult(
                code=came["code"][0], state=came["state"][0], iss=came["iss"][0]
            )

        said: Any = {"client_name": "Desk", "redirect_uris": [BACK]}
        metadata = OAuthClientMetadata.model_validate(said)
        provider = OAuthClientProvider(place, metadata, kept, send_her, wait_for_her)

        async def works() -> None:
            async with (
                httpx2.AsyncClient(auth=provider, timeout=60) as http,
                Client(streamable_http_client(place, http_client=http)) as client,
            ):
                tools = (await client.list_tools()).tools
                assert [tool.name for tool in tools][:2] == ["list_agents", "read_conversation"]

        await works()
        assert len(asked) == 1
        first = kept.tokens
        assert first is not None
        assert first.scope == "conversations:read"
        # Its time is up: it is renewed, and nobody is asked.
        provider.context.token_expiry_time = 1.0
        await works()
        assert kept.tokens is not None
        assert kept.tokens.access_token != first.access_token
        assert len(asked) == 1
        await asyncio.to_thread(revoke)
        await works()
        assert len(asked) == 2

    asyncio.run(go())

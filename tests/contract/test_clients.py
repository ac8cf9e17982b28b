"""Larger pieces of the official SDK over a session, and requests that no client of ours sends."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import anthropic
import httpx2 as httpx
import pytest
from anthropic import beta_async_tool

from providers.scripted import call, reply
from tests.contract.conftest import World


def text(words: str) -> Any:
    return {"type": "user.message", "content": [{"type": "text", "text": words}]}


def client_of(world: World) -> anthropic.AsyncAnthropic:
    return anthropic.AsyncAnthropic(
        base_url=world.address, api_key=world.tokens["alice"], _strict_response_validation=True
    )


async def test_the_sdks_tool_runner_answers_custom_tools_beside_a_held_confirmation(
    world, make_agent
):
    """The agent calls a custom tool, which the runner answers, and one of ours that asks first."""
    opening = f"Run {uuid.uuid4()}"
    world.service.expect(
        opening,
        reply(call("weather", city="Oslo"), call("write_file", path="a.txt", content="x")),
        reply("Both are done."),
    )
    agent = make_agent(
        tools=[
            {
                "type": "agent_toolset_20260401",
                "default_config": {"enabled": True, "permission_policy": {"type": "always_ask"}},
            },
            {
                "type": "custom",
                "name": "weather",
                "description": "Says the weather.",
                "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}},
            },
        ]
    )

    @beta_async_tool
    async def weather(city: str) -> str:
        """Say the weather in a city."""
        return f"It snows in {city}."

    client = client_of(world)
    session = await client.beta.sessions.create(
        agent=agent.id, environment_id=world.environment, initial_events=[text(opening)]
    )
    done = {}
    async for dispatched in client.beta.sessions.events.tool_runner(
        session.id, tools=[weather], max_idle=1
    ):
        done[dispatched.name] = dispatched.posted
        if dispatched.name == "weather":
            await confirm_what_waits(client, session.id)
    assert done == {"weather": True, "write": False}
    events = [event async for event in client.beta.sessions.events.list(session.id, limit=1000)]
    (given,) = [event for event in events if event.type == "user.custom_tool_result"]
    assert given.content
    assert given.content[0].text == "It snows in Oslo."
    (written,) = [event for event in events if event.type == "agent.tool_result"]
    assert not written.is_error
    assert events[-1].stop_reason.type == "end_turn"


async def confirm_what_waits(client: anthropic.AsyncAnthropic, session_id: str) -> None:
    uses: list[Any] = []
    while not uses:
        page = await client.beta.sessions.events.list(session_id, types=["agent.tool_use"])
        uses = page.data
        await asyncio.sleep(0.05)
    await client.beta.sessions.events.send(
        session_id,
        events=[
            {"type": "user.tool_confirmation", "tool_use_id": use.id, "result": "allow"}
            for use in uses
        ],
    )


@pytest.mark.parametrize("header", ["authorization", "x-api-key"])
async def test_a_revoked_or_wrong_token_is_an_authentication_error(world, header):
    value = "Bearer ags_wrong" if header == "authorization" else "ags_wrong"
    for path in ("agents", "sessions/sesn_1/events/stream", "nothing/like/this"):
        async with httpx.AsyncClient() as http:
            answer = await http.get(f"{world.address}/v1/{path}", headers={header: value})
        assert answer.status_code == 401
        body = answer.json()
        assert body["error"]["type"] == "authentication_error"
        assert body["request_id"] == answer.headers["request-id"]


async def test_unknown_addresses_and_methods_are_answered_in_the_same_shape(world):
    headers = {"x-api-key": world.tokens["alice"]}
    async with httpx.AsyncClient(headers=headers, base_url=f"{world.address}/v1/") as http:
        for method, path, status in (
            ("GET", "nothing", 404),
            ("GET", "agents/", 404),
            ("PUT", "agents", 405),
            ("DELETE", "sessions", 405),
            ("POST", "sessions/sesn_1/events/stream", 405),
            ("GET", "sessions?limit=0", 400),
            ("GET", "sessions?page=forged", 400),
        ):
            answer = await http.request(method, path)
            assert answer.status_code == status, (method, path)
            assert answer.json()["type"] == "error"
            assert answer.headers["request-id"] == answer.json()["request_id"]
        for content in (b"", b"[]", b"{", b'"x"', b"\xff", b"[" * 5000, b'{"a":' * 500, b"null"):
            answer = await http.post(
                "agents", content=content, headers={"content-type": "application/json"}
            )
            assert answer.status_code == 400, content[:20]
            assert answer.json()["error"]["type"] == "invalid_request_error"

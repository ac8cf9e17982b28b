"""`/mcp` as the server answers it: behind few middlewares, and each caller as herself."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Iterator
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from asgiref.testing import ApplicationCommunicator
from django.core.exceptions import ImproperlyConfigured
from django.core.signals import request_finished, request_started
from django.http import HttpRequest

from accounts.actions.tokens import create_token
from accounts.models import Organisation, TokenScope, User
from agents.models import Agent
from agentsite.doors import Door
from agentsite.pages import Pages
from mcpdoor.door import begin
from tests.conversations.conftest import MakeAgent
from tests.mcpdoor.posting import envelope, modern, request
from tests.patience import PATIENCE

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]

ALL = (TokenScope.CONVERSATIONS_READ, TokenScope.CONVERSATIONS_WRITE)
SUM = {"name": "calculator", "arguments": {"expression": "1 + 2"}}


@pytest.fixture(scope="module")
def pages() -> Pages:
    return Pages()


@pytest.fixture
def secret(alice: User, acme: Organisation) -> str:
    return create_token(actor=alice, organisation=acme, name="t", scopes=ALL).secret


def ask(pages: Pages, headers: dict[str, str], method: str = "POST") -> ApplicationCommunicator:
    given = {
        "host": "testserver",
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        **{name.lower(): value for name, value in headers.items()},
    }
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "path": "/mcp",
        "raw_path": b"/mcp",
        "query_string": b"",
        "root_path": "",
        "headers": [(name.encode(), value.encode()) for name, value in given.items()],
        "server": ("testserver", 80),
        "client": ("127.0.0.1", 1),
    }
    return ApplicationCommunicator(pages, scope)


async def answer(
    pages: Pages, headers: dict[str, str], said: Any = None, method: str = "POST"
) -> tuple[int, dict[str, str], bytes]:
    asked = ask(pages, headers, method)
    body = json.dumps(said).encode() if said is not None else b""
    await asked.send_input({"type": "http.request", "body": body})
    start = await asked.receive_output(PATIENCE)
    whole = b""
    more = True
    while more:
        piece = await asked.receive_output(PATIENCE)
        whole, more = whole + piece.get("body", b""), piece.get("more_body", False)
    await asked.wait(PATIENCE)
    told = {name.decode().lower(): value.decode() for name, value in start["headers"]}
    return start["status"], told, whole


async def called(pages: Pages, secret: str, params: dict[str, Any], **headers: str) -> Any:
    shown = {"authorization": f"Bearer {secret}", **modern("tools/call", params["name"]), **headers}
    status, told, body = await answer(pages, shown, request("tools/call", params, envelope()))
    assert status == 200, body
    return told, json.loads(body)["result"]["structuredContent"]


async def test_an_answer_has_what_every_answer_of_this_site_has(pages: Pages, secret: str):
    told, found = await called(pages, secret, SUM, **{"accept-language": "de"})
    assert found == {"expression": "1 + 2", "value": "3"}
    assert told["content-type"] == "application/json"
    assert told["cache-control"] == "no-store"
    assert told["x-content-type-options"] == "nosniff"
    assert told["x-frame-options"] == "DENY"
    assert told["referrer-policy"] == "same-origin"
    assert "default-src" in told["content-security-policy"]
    assert "accept-language" in told["vary"].lower()
    assert int(told["content-length"]) > 0
    assert "set-cookie" not in told


async def test_hosts_methods_pages_of_others_and_strangers_are_refused(pages: Pages, secret: str):
    hers = {"authorization": f"Bearer {secret}"}
    said = request("tools/call", SUM)
    assert (await answer(pages, {**hers, "host": "evil.example"}, said))[0] == 400
    assert (await answer(pages, {**hers, "origin": "https://evil.example"}, said))[0] == 403
    status, told, body = await answer(pages, {"accept-language": "de"}, said)
    assert (status, told["content-language"]) == (401, "de")
    assert int(told["content-length"]) == len(body)
    assert told["x-frame-options"] == "DENY"
    status, told, _body = await answer(pages, hers, method="GET")
    assert (status, told["allow"]) == (405, "POST")


async def test_each_caller_is_answered_as_herself_however_many_ask_at_once(
    pages: Pages, alice: User, acme: Organisation, mallory: User, elsewhere: Organisation,
    make_agent: MakeAgent,
):  # fmt: skip
    agent = await sync_to_async(make_agent)("Hers", provider="demo")
    await Agent.objects.filter(pk=agent.pk).aupdate(organisation=acme)
    make: Any = sync_to_async(create_token)
    shown = [
        (await make(actor=who, organisation=where, name="t", scopes=ALL)).secret
        for who, where in ((alice, acme), (mallory, elsewhere))
    ]
    asked = [called(pages, each, {"name": "list_agents", "arguments": {}}) for each in shown * 5]
    names = [
        [each["name"] for each in found["agents"]] for _told, found in await asyncio.gather(*asked)
    ]
    assert names == [["Hers"], []] * 5


def shapes(secret: str, name: str) -> Iterator[tuple[dict[str, str], dict[str, Any]]]:
    """A call as clients of each revision make it, with an answer that is whole and one that may stream."""
    params = {"name": name, "arguments": {}}
    for accept in ("application/json, text/event-stream", "application/json"):
        shown = {"authorization": f"Bearer {secret}", "accept": accept}
        yield {**shown, **modern("tools/call", name)}, request("tools/call", params, envelope())
        yield {**shown, "mcp-protocol-version": "2025-06-18"}, request("tools/call", params)
        yield shown, request("tools/call", params)


async def named(pages: Pages, headers: dict[str, str], said: Any) -> list[str]:
    status, _told, body = await answer(pages, headers, said)
    assert status == 200, body
    written = body.decode()
    line = next(each for each in written.splitlines() if "structuredContent" in each)
    found = json.loads(line.removeprefix("data: "))["result"]["structuredContent"]
    return [each["name"] for each in found["agents"]]


async def hung_up(pages: Pages, headers: dict[str, str], said: Any) -> list[str]:
    asked = ask(pages, headers)
    await asked.send_input({"type": "http.request", "body": json.dumps(said).encode()})
    await asked.send_input({"type": "http.disconnect"})
    await asked.wait(PATIENCE)
    return []


async def test_no_revision_and_nobody_who_hangs_up_or_fails_mixes_callers(
    pages: Pages, alice: User, acme: Organisation, mallory: User, elsewhere: Organisation,
    make_agent: MakeAgent,
):  # fmt: skip
    make: Any = sync_to_async(create_token)
    wanted: list[list[str]] = []
    asked: list[Awaitable[list[str]]] = []
    shown: dict[str, str] = {}
    for who, where, name in ((alice, acme, "Hers"), (mallory, elsewhere, "Theirs")):
        agent = await sync_to_async(make_agent)(name, provider="demo")
        await Agent.objects.filter(pk=agent.pk).aupdate(organisation=where)
        token = await make(actor=who, organisation=where, name="t", scopes=ALL)
        shown[name] = token.secret
    for _round in range(2):
        for name, secret in shown.items():
            for headers, said in shapes(secret, "list_agents"):
                asked.append(named(pages, headers, said))
                wanted.append([name])
                asked.append(hung_up(pages, headers, said))
                wanted.append([])
            for headers, said in shapes(secret, "no_such_tool"):
                asked.append(failing(pages, headers, said))
                wanted.append([])
    assert await asyncio.gather(*asked) == wanted


async def failing(pages: Pages, headers: dict[str, str], said: Any) -> list[str]:
    _status, _told, body = await answer(pages, headers, said)
    assert b"structuredContent" not in body
    return []


async def test_every_request_begins_and_ends_once(pages: Pages, secret: str):
    heard: list[str] = []

    def begun(**_about: Any) -> None:
        heard.append("begun")

    def ended(**_about: Any) -> None:
        heard.append("ended")

    request_started.connect(begun)
    request_finished.connect(ended)
    try:
        await called(pages, secret, SUM)
        await answer(pages, {}, request("tools/call", SUM))
    finally:
        request_started.disconnect(begun)
        request_finished.disconnect(ended)
    assert heard == ["begun", "ended"] * 2


class Hooked:
    def __init__(self, get_response: Any) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> Any:
        return self.get_response(request)

    def process_view(self, *_given: Any) -> None:
        pass


async def test_middleware_that_a_door_would_pass_over_is_refused_at_the_start(settings: Any):
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, f"{__name__}.Hooked"]
    with pytest.raises(ImproperlyConfigured, match="Hooked"):
        Door(begin)

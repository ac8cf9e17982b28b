"""What a server that keeps to no rule can do to those who use it: nothing that others notice."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import mcp_types as types
import pytest

from accounts.models import Organisation, User
from harness.agentconfig import AgentConfig
from harness.content import text_of
from harness.errors import Busy, Conflict
from jobs.engine import engine
from mcpservers.actions import servers as actions
from mcpservers.actions.servers import add_server, change_server, look_again
from mcpservers.addresses import check_url
from mcpservers.kitpart import servers_for
from mcpservers.listing import LONGEST_TOGETHER, Described, fault_of, take_listing
from mcpservers.looking import look_soon
from mcpservers.models import McpServer, McpTool
from mcpservers.offers import Offers
from mcpservers.places import place_of
from mcpservers.results import blocks_of
from mcpservers.sessions import Listing, Sessions, Unreachable, Where, look_at
from tests.attack_web.inside import Inside

from .raw import EVENTS, JSON, PING, Answer, RawServer, result, tool

Scope = McpServer.Scope
OTHER = "https://mcp.example.org/"


@pytest.fixture
def raw(settings: Any) -> Iterator[RawServer]:
    held = RawServer()
    with Inside() as inside:
        inside.speak = held.speak
        settings.AGENTSITE_MCP_PRIVATE_HOSTS = [f"127.0.0.1:{inside.port}"]
        held.url = f"http://127.0.0.1:{inside.port}/mcp"
        yield held


async def _keep(_listing: Listing) -> None:
    pass


def called(raw: RawServer, *, seconds: float = 20.0, then: float = 0.0) -> Any:
    """What a call of the tool brings, with all that the session does for some time after it."""

    async def call() -> Any:
        sessions = Sessions()
        where = Where(1, "sesn_1", raw.url, {"Authorization": "Bearer held-here"})
        try:
            return await sessions.call(where, "echo", {}, seconds=seconds, on_listing=_keep)
        finally:
            await asyncio.sleep(then)
            await sessions.close()

    return asyncio.run(call())


# --- what it sends --------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [b"retry: 0\n\n: \n\n", b"id: 1\nretry: 0\ndata: {}\n\n"])
def test_a_stream_that_ends_at_once_is_not_opened_again_at_once(raw: RawServer, stream: bytes):
    raw.on["GET"] = lambda _message: (200, EVENTS, stream)
    called(raw, then=1.0)
    assert 1 <= raw.count("GET") <= 2


@pytest.mark.parametrize(
    "held",
    [
        b'{"content":[],"structuredContent":{"a":[' + b"0," * 100_000 + b"0]}}",
        b'{"content":[' + b'{"type":"text","text":"a"},' * 30_000 + b'{"type":"text","text":"a"}]}',
    ],
)
def test_an_answer_of_too_many_parts_is_not_read(raw: RawServer, held: bytes):
    raw.on["tools/call"] = lambda message: result(message, held)
    with pytest.raises(Unreachable, match="more than 40,000 parts"):
        called(raw)
    raw.on["tools/list"] = lambda message: result(message, held)
    with pytest.raises(Unreachable, match="more than 40,000 parts"):
        asyncio.run(look_at(Where(1, "", raw.url)))


def test_a_long_text_is_one_part_whatever_stands_in_it(raw: RawServer):
    text = json.dumps('a,"b":[{\\ \n' * 100_000).encode()
    raw.on["tools/call"] = lambda message: result(
        message, b'{"content":[{"type":"text","text":' + text + b"}]}"
    )
    assert len(called(raw).content[0].text) == 1_100_000


@pytest.mark.parametrize(
    "held",
    [
        r'{"content":[{"type":"text","text":"a\ud800"}]}',
        r'{"content":[],"structuredContent":{"a\udfff":1}}',
        r'{"content":[{"type":"text","text":"a"}],"_meta":{"number":%s}}' % ("9" * 5_000),
    ],
    ids=["half", "half of a name", "digits"],
)
def test_an_answer_that_cannot_be_kept_is_not_read(raw: RawServer, held: str):
    raw.on["tools/call"] = lambda message: result(message, held.encode())
    with pytest.raises(Unreachable):
        called(raw, seconds=3.0)


def test_a_session_whose_end_is_never_answered_ends_all_the_same(raw: RawServer, monkeypatch: Any):
    monkeypatch.setattr("mcpservers.sessions.CLOSING_SECONDS", 0.5)
    never = threading.Event()
    raw.on["DELETE"] = lambda _message: (never.wait(60), (204, {}, b""))[1]

    async def ended() -> None:
        sessions = Sessions()
        where = Where(1, "sesn_1", raw.url)
        await sessions.call(where, "echo", {}, seconds=20.0, on_listing=_keep)
        (session,) = sessions._open.values()
        session.give_up("It is not worth going on.")
        assert session.task is not None
        await asyncio.wait_for(session.task, 10)
        assert not sessions._open

    try:
        asyncio.run(ended())
    finally:
        never.set()
    assert raw.count("DELETE") == 1


@pytest.mark.parametrize("kind", ["malformed", "never"])
@pytest.mark.parametrize("asked", ["prompts/list", "resources/list"])
def test_one_that_does_not_tell_what_it_has_beside_tools_keeps_its_tools(
    raw: RawServer, monkeypatch: pytest.MonkeyPatch, kind: str, asked: str
):
    monkeypatch.setattr("mcpservers.sessions.OFFERS_SECONDS", 0.3, raising=False)
    monkeypatch.setattr("mcpservers.sessions.CONNECT_SECONDS", 3.0)
    able: dict[str, Any] = {"tools": {}, asked.partition("/")[0]: {}}
    raw.on["initialize"] = lambda message: result(
        message,
        {
            "protocolVersion": "2025-06-18",
            "capabilities": able,
            "serverInfo": {"name": "raw", "version": "1"},
        },
    )
    over = threading.Event()

    def unsaid(message: dict[str, Any]) -> Answer:
        if kind == "never":
            over.wait(60)
        return result(message, {asked.partition("/")[0]: "none"})

    raw.on[asked] = unsaid
    try:
        assert called(raw).content[0].text == "said"
        listing = asyncio.run(look_at(Where(1, "", raw.url)))
    finally:
        over.set()
    assert [each.name for each in listing.tools] == ["echo"]
    assert listing.offers == Offers()
    assert raw.count(asked) == 2


def test_questions_without_end_are_not_all_answered(raw: RawServer):
    def asking(message: dict[str, Any]) -> Any:
        last = result(message, {"content": []})[2]
        return 200, EVENTS, PING * 3_000 + b"data: " + last + b"\n\n"

    raw.on["tools/call"] = asking
    with suppress(Unreachable):  # the answer may be quicker
        called(raw, then=1.0)
    assert 0 < raw.count("answer") < 1_500


def test_a_redirect_takes_no_credential_to_another_place(raw: RawServer):
    with Inside() as other:
        away = f"http://127.0.0.1:{other.port}/mcp"
        raw.on["initialize"] = lambda _message: (307, {"Location": away}, b"")
        with pytest.raises(Unreachable):
            called(raw)
        assert other.visits == []


# --- what it is held to ---------------------------------------------------------------------------


@pytest.mark.parametrize("sign", ["\u200b", "\U000e0041", "\u3164", "\ufe00"])
@pytest.mark.parametrize("place", ["description", "schema", "name", "output"])
def test_a_sign_that_nobody_sees_is_taken_nowhere(sign: str, place: str):
    schema: dict[str, Any] = {"type": "object"}
    inner = {**schema, "properties": {"a": {"type": "string", "description": f"A{sign} text."}}}
    named = {**schema, "properties": {f"a{sign}": {"type": "string"}}}
    said = Described(
        name="echo",
        description=f"Says{sign} it." if place == "description" else "Says it.",
        input_schema={"schema": inner, "name": named}.get(place, schema),
        output_schema=inner if place == "output" else None,
    )
    assert "cannot be seen" in fault_of(said)
    assert (
        fault_of(Described(name="echo", description="Grüße,\r\n\tÑandú", input_schema=schema)) == ""
    )


@pytest.fixture
def quiet(alice: User, acme: Organisation) -> McpServer:
    server = add_server(
        actor=alice, organisation=acme, scope=Scope.ORGANISATION, name="t", url=OTHER, look=False
    )
    take_listing(server.pk, [Described(**_said(each)) for each in ("echo", "drop")])
    return server


def _said(name: str) -> dict[str, Any]:
    return {"name": name, "description": "Does it.", "input_schema": {"type": "object"}}


@pytest.mark.django_db
@pytest.mark.parametrize("before", ["gone", "refused", "changed", "released"])
def test_at_another_address_no_tool_is_taken_for_one_that_was_released_elsewhere(
    alice: User, quiet: McpServer, before: str
):
    """Whatever it was at the moment of the move."""
    echo, drop = (Described(**_said(each)) for each in ("echo", "drop"))
    now = {
        "gone": [drop],
        "refused": [echo.model_copy(update={"description": "a\u200b"}), drop],
        "changed": [echo.model_copy(update={"description": "Another."}), drop],
        "released": [echo, drop],
    }[before]
    take_listing(quiet.pk, now)
    assert McpTool.objects.get(remote_name="echo").state == before
    change_server(actor=alice, server=quiet, url="https://elsewhere.example/mcp")
    take_listing(quiet.pk, [echo, drop])
    states = set(McpTool.objects.values_list("state", flat=True))
    assert states == {"changed"}


@pytest.mark.django_db
@pytest.mark.parametrize(
    "spelling",
    [
        "https://mcp.example.org/api/",
        "https://MCP.example.org./api",
        "https://mcp.example.org:443/%61pi",
        "https://mcp.example.org/x/../api",
        "https://mcp.example.org//api?key=mine",
        "https://mcp.example.org/API",
    ],
)
def test_nobody_escapes_rules_by_a_second_name_of_a_server(
    alice: User, bob: User, acme: Organisation, spelling: str
):
    address = "https://mcp.example.org/api"
    given: dict[str, Any] = {
        "actor": bob,
        "organisation": acme,
        "scope": Scope.PERSON,
        "look": False,
    }
    mine = add_server(name="mine", url=OTHER, **given)
    add_server(
        actor=alice, organisation=acme, scope=Scope.ORGANISATION, name="t", url=address, look=False
    )
    with pytest.raises(Conflict, match="at this address"):
        add_server(name="other", url=spelling, **given)
    with pytest.raises(Conflict, match="at this address"):
        change_server(actor=bob, server=mine, url=spelling)
    # One that was there before the organisation's is used no more.
    config = AgentConfig(provider="demo", model="demo")
    assert [
        each for each, _only in servers_for(McpServer.objects.serving(acme.pk, bob.pk), config)
    ] == [mine]
    McpServer.objects.filter(pk=mine.pk).update(url=check_url(spelling))
    assert servers_for(McpServer.objects.serving(acme.pk, bob.pk), config) == []


def test_other_places_are_other_servers():
    places = {
        place_of(f"https://{each}")
        for each in ("a.example/x", "a.example/y", "b.example/x", "a.example:8443/x", "a.example/")
    }
    assert len(places) == 5


# --- whom it keeps waiting ------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_who_waits_for_a_server_waits_for_one_and_few_at_once(
    alice: User, acme: Organisation, quiet: McpServer, raw: RawServer
):
    with actions.waiting_for.place(alice.pk), pytest.raises(Busy):
        look_again(actor=alice, server=quiet)
    with actions.waiting_for.place(alice.pk):
        added = add_server(
            actor=alice,
            organisation=acme,
            scope=Scope.ORGANISATION,
            name="later",
            url=raw.url,
        )
    assert added.last_error == ""


@pytest.mark.django_db(transaction=True)
def test_a_server_that_does_not_answer_keeps_no_thread_of_the_runs(
    quiet: McpServer, raw: RawServer
):
    """Looks that jobs do wait on the loop."""
    McpServer.objects.filter(pk=quiet.pk).update(url=raw.url)
    threads: set[str] = set()

    def hanging(message: dict[str, Any]) -> Any:
        threads.update(each.name for each in threading.enumerate())
        return result(message, {"tools": [tool("new")]})

    raw.on["tools/list"] = hanging
    engine.submit(lambda: look_soon(quiet.pk)).result(30)
    assert McpTool.objects.filter(server=quiet, remote_name="new").exists()
    assert not any("agentsite-mcp-look" in each for each in threads)


@pytest.mark.django_db
def test_what_a_server_says_of_all_its_tools_is_bounded(quiet: McpServer):
    long = {"type": "object", "description": "a" * 50_000}
    take_listing(quiet.pk, [Described(name=f"t{n}", input_schema=long) for n in range(20)])
    states = list(quiet.tools.exclude(state="gone").values_list("state", flat=True))
    assert states.count("new") == LONGEST_TOGETHER // 50_100
    assert states.count("refused") == 20 - LONGEST_TOGETHER // 50_100


@pytest.mark.parametrize("secret", ["Bearer held-here", "held-here"])
def test_what_authorises_us_at_a_server_comes_back_in_no_words_of_its(raw: RawServer, secret: str):
    raw.on["tools/call"] = lambda message: (
        200,
        JSON,
        json.dumps(
            {
                "jsonrpc": "2.0",
                "id": message["id"],
                "error": {"code": -32000, "message": f"You sent {secret}."},
            }
        ).encode(),
    )
    with pytest.raises(Unreachable) as problem:
        called(raw)
    assert "You sent [secret]." in str(problem.value)
    where = Where(1, "sesn_1", raw.url, {"Authorization": "Bearer held-here", "X": "short"})
    block = types.TextContent(type="text", text=f"You sent {secret}, and short.")
    told = blocks_of(types.CallToolResult(content=[block]), where.without_secrets)
    assert text_of(told) == "You sent [secret], and short."


# --- what it leaves out ---------------------------------------------------------------------------


def test_a_result_that_does_not_say_that_it_is_whole_is_whole(raw: RawServer):
    told = {
        "supportedVersions": ["2026-07-28"],
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "raw", "version": "1"},
        "ttlMs": 0,
        "cacheScope": "private",
    }
    raw.on["server/discover"] = lambda message: result(message, told)
    held = {"tools": raw.tools, "ttlMs": 0, "cacheScope": "private"}
    raw.on["tools/list"] = lambda message: result(message, held)
    answer = called(raw)
    assert answer.content[0].text == "said"
    assert raw.count("initialize") == 0

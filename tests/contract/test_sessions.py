"""Sessions through the official SDK: made, talked to, followed, decided, stopped, put away."""

from __future__ import annotations

import json
import threading
import time
import uuid
from typing import Any

import anthropic
import httpx2 as httpx
import pytest

from providers.scripted import Hold, call, reply, say, think
from tests.contract.conftest import error_type
from tests.patience import PATIENCE, until


def text(words: str) -> dict[str, Any]:
    return {"type": "user.message", "content": [{"type": "text", "text": words}]}


@pytest.fixture
def begin(alice, world, make_agent):
    """A session of alice's whose first message gets these replies."""

    def start(*answers, tools=None, **values):
        opening = f"Opening {uuid.uuid4()}"
        world.service.expect(opening, *answers)
        options = {"tools": tools} if tools is not None else {}
        agent = make_agent(**options)
        session = alice.beta.sessions.create(
            agent=agent.id,
            environment_id=world.environment,
            initial_events=[text(opening)],
            **values,
        )
        return session, opening

    return start


def wait_for(client, session_id, done, seconds=PATIENCE):
    end = time.monotonic() + seconds
    while True:
        session = client.beta.sessions.retrieve(session_id)
        if done(session):
            return session
        assert time.monotonic() < end, (session.status, listed(client, session_id)[-12:])
        time.sleep(0.05)


def idle(client, session_id):
    return wait_for(client, session_id, lambda session: session.status == "idle")


def listed(client, session_id, **options):
    return list(client.beta.sessions.events.list(session_id, limit=1000, **options))


def test_a_session_with_a_first_message_runs_and_rests(alice, begin):
    session, opening = begin(
        reply(think("Hm."), say("Hello there.")), title="First", metadata={"ticket": "7"}
    )
    assert (session.status, session.title) == ("running", "First")
    rested = idle(alice, session.id)
    assert rested.metadata == {"ticket": "7"}
    assert rested.usage.output_tokens > 0
    assert rested.stats.active_seconds > 0
    assert rested.usage.list_cost.currency == "USD"
    events = listed(alice, session.id)
    types = [event.type for event in events]
    assert types[0] == "user.message"
    assert events[0].content[0].text == opening
    assert events[0].processed_at is not None
    for needed in (
        "session.status_running",
        "span.model_request_start",
        "agent.thinking",
        "agent.message",
        "span.model_request_end",
        "session.usage",
        "session.status_idle",
    ):
        assert needed in types
    assert not any(kind.startswith(("x.", "span.tool")) for kind in types)
    (said,) = [event for event in events if event.type == "agent.message"]
    assert said.content[0].text == "Hello there."
    assert events[-1].stop_reason.type == "end_turn"


def test_sessions_are_listed_filtered_and_turned_back(alice, world, make_agent):
    agent = make_agent()
    made = [
        alice.beta.sessions.create(agent=agent.id, environment_id=world.environment).id
        for _ in range(5)
    ]
    page = alice.beta.sessions.list(agent_id=agent.id, limit=2)
    assert [one.id for one in page.data] == made[:2:-1]
    assert page.prev_page is None
    second = alice.beta.sessions.list(agent_id=agent.id, limit=2, page=page.next_page)
    assert [one.id for one in second.data] == made[2:0:-1]
    back = alice.beta.sessions.list(agent_id=agent.id, limit=2, page=second.prev_page)
    assert [one.id for one in back.data] == [one.id for one in page.data]
    upwards = alice.beta.sessions.list(agent_id=agent.id, order="asc")
    assert [one.id for one in upwards] == made
    assert not list(alice.beta.sessions.list(agent_id=agent.id, statuses=["running"]))
    assert len(list(alice.beta.sessions.list(agent_id=agent.id, statuses=["idle"]))) == 5
    with pytest.raises(anthropic.BadRequestError):
        alice.beta.sessions.list(agent_id=agent.id, order="asc", page=page.next_page)
    with pytest.raises(anthropic.BadRequestError):
        alice.beta.sessions.list(agent_version=1)
    since = alice.beta.sessions.retrieve(made[2]).created_at
    newer = alice.beta.sessions.list(agent_id=agent.id, created_at_gt=since)
    assert [one.id for one in newer] == made[:2:-1]


def test_a_session_is_changed_archived_and_deleted(alice, world, make_agent):
    session = alice.beta.sessions.create(
        agent={"type": "agent", "id": make_agent().id, "version": 1},
        environment_id=world.environment,
        metadata={"a": "1", "b": "2"},
    )
    changed = alice.beta.sessions.update(session.id, title="Named", metadata={"a": None, "c": "3"})
    assert (changed.title, changed.metadata) == ("Named", {"b": "2", "c": "3"})
    archived = alice.beta.sessions.archive(session.id)
    assert archived.status == "terminated"
    assert archived.archived_at is not None
    with pytest.raises(anthropic.ConflictError):
        alice.beta.sessions.events.send(session.id, events=[text("More")])
    assert session.id not in {one.id for one in alice.beta.sessions.list()}
    assert alice.beta.sessions.delete(session.id).type == "session_deleted"
    with pytest.raises(anthropic.NotFoundError):
        alice.beta.sessions.retrieve(session.id)


def test_overrides_hold_for_one_session(alice, world, make_agent):
    agent = make_agent(system="Agent's own", tools=[{"type": "agent_toolset_20260401"}])
    session = alice.beta.sessions.create(
        agent={
            "type": "agent_with_overrides",
            "id": agent.id,
            "system": None,
            "model": {"id": "claude-haiku-5-5", "effort": "low"},
            "tools": [
                {
                    "type": "agent_toolset_20260401",
                    "configs": [{"name": "bash", "enabled": False}],
                }
            ],
        },
        environment_id=world.environment,
    )
    assert session.agent.system is None
    assert (session.agent.model.id, session.agent.model.effort.type) == ("claude-haiku-5-5", "low")
    (toolset,) = session.agent.tools
    assert {config.name: config.enabled for config in toolset.configs} == {"bash": False}
    plain = alice.beta.sessions.create(agent=agent.id, environment_id=world.environment)
    assert plain.agent.system == "Agent's own"
    assert plain.agent.tools == agent.tools


def test_no_override_gives_a_session_more_than_its_agent_has(alice, world, make_agent):
    agent = make_agent(
        tools=[
            {
                "type": "agent_toolset_20260401",
                "default_config": {"enabled": False},
                "configs": [
                    {
                        "name": "bash",
                        "enabled": True,
                        "permission_policy": {"type": "always_ask"},
                    }
                ],
            }
        ]
    )
    session = alice.beta.sessions.create(
        agent={
            "type": "agent_with_overrides",
            "id": agent.id,
            "tools": [{"type": "agent_toolset_20260401"}],
        },
        environment_id=world.environment,
    )
    assert session.agent.tools[0].configs == agent.tools[0].configs


def test_a_sessions_tools_change_from_its_next_turn_on(alice, world, begin):
    write = call("write_file", path="a.txt", content="x")
    toolset = {"type": "agent_toolset_20260401"}
    session, _ = begin(
        reply(write), reply("Written."), reply(write), reply("I may not."), tools=[toolset]
    )
    rested = idle(alice, session.id)
    tools = [
        {**toolset, "configs": [{"name": "write", "enabled": False}]},
        {
            "type": "custom",
            "name": "look_up",
            "description": "Looks up",
            "input_schema": {"type": "object"},
        },
    ]
    changed = alice.beta.sessions.update(session.id, agent={"tools": tools})
    assert [tool.type for tool in changed.agent.tools] == ["agent_toolset_20260401", "custom"]
    (config,) = changed.agent.tools[0].configs
    assert (config.name, config.enabled) == ("write", False)
    assert changed.agent.version == rested.agent.version
    alice.beta.sessions.update(session.id, agent={"tools": tools, "mcp_servers": []})
    alice.beta.sessions.events.send(session.id, events=[text("Again")])
    wait_for(alice, session.id, lambda _: len(results(alice, session.id)) == 2)
    assert [result.is_error for result in results(alice, session.id)] == [False, True]
    told = [one for one in listed(alice, session.id) if one.type == "session.updated"]
    updates = [one for one in told if one.agent is not None]
    assert len(updates) == 1, "the second update changed nothing"
    assert updates[0].agent == changed.agent
    again = alice.beta.sessions.update(session.id, agent={"tools": [toolset]})
    assert [tool.type for tool in again.agent.tools] == ["agent_toolset_20260401"]
    assert not again.agent.tools[0].configs


def test_a_session_gains_no_tool_that_its_agent_lacks(alice, world, make_agent):
    only_reads = {
        "type": "agent_toolset_20260401",
        "default_config": {"enabled": False},
        "configs": [{"name": "read", "enabled": True}],
    }
    session = alice.beta.sessions.create(
        agent=make_agent(tools=[only_reads]).id, environment_id=world.environment
    )
    everything = [{"type": "agent_toolset_20260401"}]
    changed = alice.beta.sessions.update(session.id, agent={"tools": everything})
    assert changed.agent.tools == session.agent.tools
    server = {"type": "url", "name": "x", "url": "https://mcp.example.org"}
    with pytest.raises(anthropic.BadRequestError):
        alice.beta.sessions.update(session.id, agent={"mcp_servers": [server]})


def test_tools_do_not_change_while_a_call_waits_for_its_answer(alice, begin):
    session, _ = begin(reply(call("bash", command="true")), tools=ASKS)
    wait_for(alice, session.id, lambda _: stopped_for(alice, session.id) == "requires_action")
    with pytest.raises(anthropic.ConflictError):
        alice.beta.sessions.update(session.id, agent={"tools": []})


def results(client, session_id):
    return [one for one in listed(client, session_id) if one.type == "agent.tool_result"]


def stopped_for(client, session_id):
    rests = [one for one in listed(client, session_id) if one.type == "session.status_idle"]
    return rests[-1].stop_reason.type if rests else ""


def test_a_session_under_a_budget_shows_it(alice, world, make_agent):
    budget = {"type": "limit", "max_list_cost": {"amount": "250", "currency": "USD"}}
    session = alice.beta.sessions.create(
        agent=make_agent().id, environment_id=world.environment, budget=budget
    )
    assert session.budget.max_list_cost.amount == "250"
    raised = {"type": "limit", "max_list_cost": {"amount": "300", "currency": "USD"}}
    changed = alice.beta.sessions.update(session.id, budget=raised)
    assert changed.budget.max_list_cost.amount == "300"
    assert alice.beta.sessions.update(session.id, budget=None).budget is None


def test_a_wrong_beginning_leaves_no_session(alice, world, make_agent):
    agent = make_agent()
    for wrong in (
        {"initial_events": [{"type": "user.message", "content": []}]},
        {"initial_events": [text("Hi"), {"type": "user.define_outcome", "description": "x"}]},
        {"initial_events": [text("Hi"), text("x" * 200_000)]},
        {"vault_ids": ["vlt_1"]},
        {"resources": [{"type": "file", "file_id": "file_nobodys"}]},
    ):
        with pytest.raises(anthropic.APIStatusError) as caught:
            alice.beta.sessions.create(agent=agent.id, environment_id=world.environment, **wrong)
        assert caught.value.status_code in {400, 404, 413}
    assert not list(alice.beta.sessions.list(agent_id=agent.id, include_archived=True))


# --- following ------------------------------------------------------------------------------------


def test_the_stream_carries_previews_that_begin_what_is_stored(alice, begin, world):
    hold = Hold()
    session, _ = begin(reply("First."), reply(say("One ", hold, "two ", "three.")))
    idle(alice, session.id)
    opening = f"Second {uuid.uuid4()}"
    world.service.expect(opening, reply(say("One ", hold, "two ", "three.")))
    seen = []
    with alice.beta.sessions.events.stream(
        session.id, event_deltas=["agent.message", "agent.thinking"]
    ) as stream:
        alice.beta.sessions.events.send(session.id, events=[text(opening)])
        for event in stream:
            seen.append(event)
            if event.type == "event_delta":
                hold.release.set()
            if event.type == "session.status_idle":
                break
    types = [event.type for event in seen]
    start = next(event for event in seen if event.type == "event_start")
    deltas = [event for event in seen if event.type == "event_delta"]
    (stored,) = [event for event in seen if event.type == "agent.message"]
    assert start.event.id == stored.id == deltas[0].event_id
    streamed = "".join(delta.delta.content.text for delta in deltas)
    assert stored.content[0].text == "One two three."
    assert stored.content[0].text.startswith(streamed)
    assert streamed
    assert types.index("event_start") < types.index("agent.message")
    assert types.count("event_start") == 1
    assert types.index("session.status_running") < types.index("span.model_request_start")


def test_a_stream_without_a_place_tells_only_what_is_new(alice, begin):
    session, _ = begin(reply("Done."))
    idle(alice, session.id)
    with alice.beta.sessions.events.stream(session.id) as stream:
        alice.beta.sessions.events.send(session.id, events=[text("Nobody's script")])
        first = next(iter(stream))
    assert first.type == "user.message"
    assert first.content[0].text == "Nobody's script"


def test_a_client_that_comes_back_with_its_place_misses_nothing(alice, begin, world):
    session, _ = begin(reply("Done."))
    idle(alice, session.id)
    logged = [event.id for event in listed(alice, session.id)]
    with alice.beta.sessions.events.stream(session.id, extra_query={"after_seq": "0"}) as stream:
        replayed = []
        for event in stream:
            replayed.append(event)
            if event.type == "session.status_idle":
                break
    assert [event.id for event in replayed] == logged
    middle = replayed[len(replayed) // 2]
    with alice.beta.sessions.events.stream(
        session.id, extra_headers={"Last-Event-ID": str(middle.x_seq)}
    ) as stream:
        rest = []
        for event in stream:
            rest.append(event.id)
            if event.type == "session.status_idle":
                break
    assert rest == logged[logged.index(middle.id) + 1 :]


def test_the_stream_is_framed_for_every_client(world, begin, alice):
    session, _ = begin(reply("Done."))
    idle(alice, session.id)
    headers = {"x-api-key": world.tokens["alice"], "accept": "application/json"}
    address = f"{world.address}/v1/sessions/{session.id}/events/stream?after_seq=0"
    with httpx.stream("GET", address, headers=headers, timeout=PATIENCE) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "text/event-stream"
        assert answer.headers["request-id"].startswith("req_")
        names, ids = [], []
        for line in answer.iter_lines():
            if line.startswith("event: "):
                names.append(line[7:])
            if line.startswith("id: "):
                ids.append(int(line[4:]))
            if names.count("ping") == 3:
                break
    assert set(names) == {"message", "ping"}
    assert ids == sorted(ids)
    assert len(ids) == len(listed(alice, session.id))


def test_our_own_events_come_only_to_who_asks(world, begin, alice):
    session, _ = begin(
        reply(call("write_file", path="a.txt", content="x")),
        reply("Written."),
        tools=[{"type": "agent_toolset_20260401"}],
    )
    idle(alice, session.id)
    headers = {"authorization": f"Bearer {world.tokens['alice']}"}
    address = f"{world.address}/v1/sessions/{session.id}/events?limit=1000"
    plain = httpx.get(address, headers=headers).json()["data"]
    ours = httpx.get(f"{address}&x_events=true", headers=headers).json()["data"]
    both = httpx.get(address, headers={**headers, "x-agentsite-events": "all"}).json()["data"]
    assert both == ours
    extra = {event["type"] for event in ours} - {event["type"] for event in plain}
    assert {"span.tool_start", "span.tool_end", "x.input_taken"} <= extra
    assert [event["x_seq"] for event in ours] == list(range(1, len(ours) + 1))


def test_a_stream_of_a_deleted_session_says_so_and_ends(alice, world, make_agent):
    session = alice.beta.sessions.create(agent=make_agent().id, environment_id=world.environment)
    address = f"{world.address}/v1/sessions/{session.id}/events/stream"
    headers = {"x-api-key": world.tokens["alice"]}
    heard: list[str] = []

    def follow():
        with httpx.stream("GET", address, headers=headers, timeout=PATIENCE) as answer:
            for line in answer.iter_lines():
                if line.startswith("data: "):
                    heard.append(json.loads(line[6:])["type"])

    follower = threading.Thread(target=follow)
    follower.start()
    until(lambda: heard)
    alice.beta.sessions.delete(session.id)
    follower.join(PATIENCE)
    assert not follower.is_alive()
    *pings, last = heard
    assert last == "session.deleted"
    assert set(pings) == {"ping"}
    # Told at once, not when the quiet stream, with a ping each second, looks again by itself.
    assert len(pings) < 15


# --- deciding -------------------------------------------------------------------------------------

ASKS = [
    {
        "type": "agent_toolset_20260401",
        "default_config": {"enabled": True, "permission_policy": {"type": "always_ask"}},
    }
]


def waiting(client, session_id):
    """The event ids a session waits for."""

    def asked(_session):
        events = listed(client, session_id, types=["session.status_idle"])
        return events and events[-1].stop_reason.type == "requires_action"

    wait_for(client, session_id, asked)
    return listed(client, session_id, types=["session.status_idle"])[-1].stop_reason.event_ids


def confirm(tool_use_id, result="allow", **more):
    return {
        "type": "user.tool_confirmation",
        "tool_use_id": tool_use_id,
        "result": result,
        **more,
    }


def test_a_call_that_asks_runs_once_it_is_allowed(alice, begin):
    session, _ = begin(
        reply(call("write_file", path="a.txt", content="x")), reply("Written."), tools=ASKS
    )
    (asked,) = waiting(alice, session.id)
    (use,) = listed(alice, session.id, types=["agent.tool_use"])
    assert (use.id, use.evaluated_permission, use.evaluation.type) == (asked, "ask", "always_ask")
    sent = alice.beta.sessions.events.send(session.id, events=[confirm(asked)])
    again = alice.beta.sessions.events.send(session.id, events=[confirm(asked)])
    assert [event.id for event in again.data] == [event.id for event in sent.data]
    wait_for(
        alice,
        session.id,
        lambda _: len(listed(alice, session.id, types=["agent.tool_result"])) == 1,
    )
    idle(alice, session.id)
    (result,) = listed(alice, session.id, types=["agent.tool_result"])
    assert (result.tool_use_id, result.is_error) == (asked, False)
    with pytest.raises(anthropic.ConflictError):
        alice.beta.sessions.events.send(session.id, events=[confirm(asked, "deny")])


def test_a_denied_call_never_runs_and_the_agent_reads_why(alice, begin):
    session, _ = begin(
        reply(call("write_file", path="a.txt", content="x")), reply("I see."), tools=ASKS
    )
    (asked,) = waiting(alice, session.id)
    alice.beta.sessions.events.send(
        session.id, events=[confirm(asked, "deny", deny_message="Not today")]
    )
    wait_for(
        alice,
        session.id,
        lambda _: listed(alice, session.id, types=["agent.message"]),
    )
    (result,) = listed(alice, session.id, types=["agent.tool_result"])
    assert result.is_error
    assert "Not today" in result.content[0].text


def test_a_token_that_may_not_decide_decides_nothing(alice, world, begin):
    session, _ = begin(
        reply(call("write_file", path="a.txt", content="x")), reply("Written."), tools=ASKS
    )
    (asked,) = waiting(alice, session.id)
    with pytest.raises(anthropic.PermissionDeniedError):
        world.client("reader").beta.sessions.events.send(session.id, events=[confirm(asked)])
    with pytest.raises(anthropic.NotFoundError):
        world.client("mallory").beta.sessions.events.send(session.id, events=[confirm(asked)])
    assert waiting(alice, session.id) == [asked]


def test_a_custom_tool_is_answered_by_the_client(alice, begin):
    tools = [
        {
            "type": "custom",
            "name": "weather",
            "description": "Says the weather.",
            "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}},
        }
    ]
    session, _ = begin(reply(call("weather", city="Oslo")), reply("Snow."), tools=tools)
    (asked,) = waiting(alice, session.id)
    (use,) = listed(alice, session.id, types=["agent.custom_tool_use"])
    assert (use.id, use.name, use.input) == (asked, "weather", {"city": "Oslo"})
    answer = {
        "type": "user.custom_tool_result",
        "custom_tool_use_id": asked,
        "content": [{"type": "text", "text": "It snows."}],
    }
    sent = alice.beta.sessions.events.send(session.id, events=[answer])
    again = alice.beta.sessions.events.send(session.id, events=[answer])
    assert sent.data[0].id == again.data[0].id
    wait_for(alice, session.id, lambda _: listed(alice, session.id, types=["agent.message"]))
    with pytest.raises(anthropic.ConflictError):
        alice.beta.sessions.events.send(session.id, events=[{**answer, "is_error": True}])


def test_an_interrupt_stops_the_turn(alice, begin):
    hold = Hold()
    session, _ = begin(reply(say("Counting ", hold, "on and on")))
    wait_for(
        alice, session.id, lambda _: listed(alice, session.id, types=["span.model_request_start"])
    )
    with pytest.raises(anthropic.ConflictError):
        alice.beta.sessions.archive(session.id)
    with pytest.raises(anthropic.ConflictError):
        alice.beta.sessions.delete(session.id)
    sent = alice.beta.sessions.events.send(session.id, events=[{"type": "user.interrupt"}])
    assert sent.data[0].type == "user.interrupt"
    idle(alice, session.id)
    hold.release.set()
    last = listed(alice, session.id, types=["session.status_idle"])[-1]
    assert last.stop_reason.type == "end_turn"
    nothing = alice.beta.sessions.events.send(session.id, events=[{"type": "user.interrupt"}])
    assert nothing.data[0].processed_at is not None


# --- twice is once --------------------------------------------------------------------------------


def test_a_request_with_a_key_is_done_once(alice, world, make_agent):
    agent = make_agent()
    key = {"Idempotency-Key": str(uuid.uuid4())}
    made = [
        alice.beta.sessions.create(
            agent=agent.id, environment_id=world.environment, extra_headers=key
        )
        for _ in range(2)
    ]
    assert made[0].id == made[1].id
    assert len(list(alice.beta.sessions.list(agent_id=agent.id))) == 1
    again = {"Idempotency-Key": str(uuid.uuid4())}
    sent = [
        alice.beta.sessions.events.send(made[0].id, events=[text("Only once")], extra_headers=again)
        for _ in range(2)
    ]
    assert sent[0].data[0].id == sent[1].data[0].id
    assert len(listed(alice, made[0].id, types=["user.message"])) == 1
    with pytest.raises(anthropic.ConflictError):
        alice.beta.sessions.events.send(made[0].id, events=[text("Another")], extra_headers=again)


def test_of_several_events_all_are_taken_or_none(alice, world, make_agent):
    session = alice.beta.sessions.create(agent=make_agent().id, environment_id=world.environment)
    with pytest.raises(anthropic.NotFoundError):
        alice.beta.sessions.events.send(session.id, events=[text("Hi"), confirm("sevt_none")])
    assert listed(alice, session.id) == []


# --- mallory --------------------------------------------------------------------------------------


def test_mallory_finds_nothing_of_a_session(alice, mallory, begin):
    session, _ = begin(reply("Secret."))
    idle(alice, session.id)
    thread = next(iter(alice.beta.sessions.threads.list(session.id))).id
    sessions = mallory.beta.sessions
    for attempt in (
        lambda: sessions.retrieve(session.id),
        lambda: sessions.update(session.id, title="Mine"),
        lambda: sessions.archive(session.id),
        lambda: sessions.delete(session.id),
        lambda: list(sessions.events.list(session.id)),
        lambda: sessions.events.send(session.id, events=[text("Hi")]),
        lambda: sessions.events.stream(session.id).__enter__(),
        lambda: list(sessions.threads.list(session.id)),
        lambda: sessions.threads.retrieve(thread, session_id=session.id),
        lambda: list(sessions.threads.events.list(thread, session_id=session.id)),
        lambda: sessions.resources.list(session.id),
        lambda: sessions.resources.add(session.id, type="file", file_id="file_1"),
    ):
        with pytest.raises(anthropic.NotFoundError) as caught:
            attempt()
        assert error_type(caught) == "not_found_error"
    assert session.id not in {one.id for one in sessions.list(include_archived=True)}
    assert alice.beta.sessions.retrieve(session.id).title != "Mine"


# --- threads and files ----------------------------------------------------------------------------


def test_a_session_is_its_own_first_thread(alice, begin):
    session, _ = begin(reply("Done."))
    idle(alice, session.id)
    (thread,) = list(alice.beta.sessions.threads.list(session.id))
    assert (thread.session_id, thread.parent_thread_id) == (session.id, None)
    assert alice.beta.sessions.threads.retrieve(thread.id, session_id=session.id).id == thread.id
    of_thread = list(alice.beta.sessions.threads.events.list(thread.id, session_id=session.id))
    assert [event.id for event in of_thread] == [event.id for event in listed(alice, session.id)]
    with pytest.raises(anthropic.BadRequestError, match="Archive the session"):
        alice.beta.sessions.threads.archive(thread.id, session_id=session.id)
    assert alice.beta.sessions.retrieve(session.id).archived_at is None


def test_both_spellings_of_a_sessions_id_are_taken_everywhere(alice, begin):
    session, _ = begin(reply("Done."))
    idle(alice, session.id)
    other = session.id.replace("sesn_", "session_")
    (thread,) = list(alice.beta.sessions.threads.list(other))
    theirs = thread.id.replace("sthr_", "sth_")
    assert alice.beta.sessions.retrieve(other).id == session.id
    assert [one.id for one in listed(alice, other)] == [one.id for one in listed(alice, session.id)]
    assert alice.beta.sessions.threads.retrieve(theirs, session_id=other).id == thread.id
    assert list(alice.beta.sessions.threads.events.list(theirs, session_id=other))
    assert not list(alice.beta.sessions.resources.list(other))
    assert not list(alice.beta.files.list(scope_id=other))
    with alice.beta.sessions.events.stream(other) as stream:
        assert stream.response.status_code == 200
    alice.beta.sessions.events.send(other, events=[{"type": "user.interrupt"}])
    assert alice.beta.sessions.update(other, title="Named").id == session.id
    assert alice.beta.sessions.archive(other).id == session.id
    assert alice.beta.sessions.delete(other).id == session.id


def test_the_paths_that_are_told_are_true_where_the_agent_works(alice, world, make_agent):
    file = alice.beta.files.upload(file=("notes.txt", b"remember this"))
    session = alice.beta.sessions.create(
        agent=make_agent(tools=[{"type": "agent_toolset_20260401"}]).id,
        environment_id=world.environment,
        resources=[{"type": "file", "file_id": file.id}],
    )
    (resource,) = session.resources
    outputs = resource.mount_path.replace("/uploads/notes.txt", "/outputs")
    opening = f"Opening {uuid.uuid4()}"
    world.service.expect(
        opening,
        reply(call("bash", command=f"cat {resource.mount_path} > {outputs}/copy.txt")),
        reply(call("read_file", path=resource.mount_path)),
        reply(call("write_file", path="/mnt/session/outputs/made.txt", content="made")),
        reply("Done."),
    )
    alice.beta.sessions.events.send(session.id, events=[text(opening)])
    wait_for(alice, session.id, lambda _: len(results(alice, session.id)) == 3)
    told = results(alice, session.id)
    assert [one.is_error for one in told] == [False] * 3, told
    assert "remember this" in told[1].content[0].text
    made = {one.filename: one for one in alice.beta.files.list(scope_id=session.id)}
    assert set(made) == {"copy.txt", "made.txt"}
    assert made["copy.txt"].scope.id == session.id
    assert alice.beta.files.download(made["copy.txt"].id).read() == b"remember this"
    named = alice.beta.files.list(ids=[made["made.txt"].id])
    assert [one.id for one in named] == [made["made.txt"].id]


def test_a_file_is_uploaded_and_put_into_sessions(alice, mallory, world, make_agent, tmp_path):
    source = tmp_path / "notes.txt"
    source.write_text("remember this", encoding="utf-8")
    file = alice.beta.files.upload(file=source)
    assert (file.filename, file.size_bytes) == ("notes.txt", 13)
    assert alice.beta.files.download(file.id).read() == b"remember this"
    assert file.id in {one.id for one in alice.beta.files.list()}
    session = alice.beta.sessions.create(
        agent=make_agent().id,
        environment_id=world.environment,
        resources=[{"type": "file", "file_id": file.id}],
    )
    (resource,) = session.resources
    assert resource.mount_path == "/mnt/session/uploads/notes.txt"
    added = alice.beta.sessions.resources.add(
        session.id, type="file", file_id=file.id, mount_path="/mnt/session/docs/n.txt"
    )
    assert added.mount_path == "/mnt/session/docs/n.txt"
    with pytest.raises(anthropic.ConflictError):
        alice.beta.sessions.resources.add(
            session.id, type="file", file_id=file.id, mount_path="/mnt/session/docs/n.txt"
        )
    kept = {one.id for one in alice.beta.sessions.resources.list(session.id)}
    assert kept == {resource.id, added.id}
    alice.beta.sessions.resources.delete(added.id, session_id=session.id)
    assert len(alice.beta.sessions.retrieve(session.id).resources) == 1
    for attempt in (
        lambda: mallory.beta.files.retrieve_metadata(file.id),
        lambda: mallory.beta.files.download(file.id),
        lambda: mallory.beta.files.delete(file.id),
    ):
        with pytest.raises(anthropic.NotFoundError):
            attempt()
    assert alice.beta.files.delete(file.id).type == "file_deleted"
    with pytest.raises(anthropic.NotFoundError):
        alice.beta.files.retrieve_metadata(file.id)
    assert len(alice.beta.sessions.retrieve(session.id).resources) == 1

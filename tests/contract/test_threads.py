"""Agents that call on others, and the threads of their sessions, through the official SDK."""

from __future__ import annotations

import time
from typing import Any

import anthropic
import pytest

from providers.scripted import call, reply
from tests.contract.conftest import MakeAgent
from tests.contract.live import World
from tests.contract.test_stories import ASKS, allowed, message
from tests.patience import PATIENCE

NEWER: Any = "multiagent_20261001"


def ask(agent: str, prompt: str) -> Any:
    return call("subagent", agent=agent, description="A piece of it", prompt=prompt)


def followed(alice: anthropic.Anthropic, session: str, words: str) -> list[Any]:
    """All that the session's stream says until it has ended its turn; what asks is allowed, by its id."""
    seen: list[Any] = []
    known: dict[str, Any] = {}
    end = time.monotonic() + PATIENCE
    with alice.beta.sessions.events.stream(session) as stream:
        alice.beta.sessions.events.send(session, events=[message(words)])
        for event in stream:
            assert time.monotonic() < end
            seen.append(event)
            known[getattr(event, "id", "")] = event
            if event.type != "session.status_idle":
                continue
            if event.stop_reason.type != "requires_action":
                return seen
            for uid in event.stop_reason.event_ids:
                assert known[uid].type == "agent.tool_use", "it was seen before it is asked for"
                alice.beta.sessions.events.send(session, events=[allowed(uid)])
    raise AssertionError("the stream ended before the turn did")


def test_a_coordinator_works_with_two_agents_and_an_advisor_through_threads(
    alice: anthropic.Anthropic, mallory: anthropic.Anthropic, world: World, make_agent: MakeAgent
) -> None:
    scout, writer = make_agent(), make_agent(tools=[ASKS])
    roster = [
        scout.id,
        {"type": "agent", "id": writer.id, "version": 1},
        {"type": "advisor", "model": "claude-opus-5-5"},
    ]
    lead = make_agent(multiagent={"type": "coordinator", "agents": roster})
    assert [each.type for each in lead.multiagent.agents] == ["agent", "agent", "advisor"]
    assert [each.version for each in lead.multiagent.agents[:2]] == [1, 1]
    world.service.expect(
        "Do it all.",
        reply(ask(scout.name, "Scout it."), ask(writer.name, "Write it down.")),
        reply(ask("advisor", "Was that right?")),
        reply("All done."),
    )
    world.service.expect("Scout it.", reply("Seven places."))
    write = call("write_file", path="a.txt", content="x")
    world.service.expect("Write it down.", reply(write), reply("Written."))
    world.service.expect("Was that right?", reply("It was."))
    session = alice.beta.sessions.create(agent=lead.id, environment_id=world.environment)
    members = session.agent.multiagent.agents
    assert [getattr(each, "name", each.type) for each in members] == [
        scout.name,
        writer.name,
        "advisor",
    ]

    seen = followed(alice, session.id, "Do it all.")

    types = [event.type for event in seen]
    assert types.count("session.thread_created") == 3
    assert types.count("agent.thread_message_sent") == 3
    assert types.count("agent.thread_message_received") == 3
    assert types.count("session.status_idle") == 2, "one for the question, one for the end"
    (asked,) = (
        each
        for each in seen
        if getattr(each, "session_thread_id", None) and each.type == "agent.tool_use"
    )
    threads = {thread.id: thread for thread in alice.beta.sessions.threads.list(session.id)}
    names = {
        event.session_thread_id: event.agent_name
        for event in seen
        if event.type == "session.thread_created"
    }
    assert names[asked.session_thread_id] == writer.name
    assert set(names.values()) == {scout.name, writer.name, "anthropic.advisor"}
    statuses = {
        names[each.session_thread_id]: each.type
        for each in seen
        if each.type.startswith("session.thread_status_")
    }
    assert statuses["anthropic.advisor"] == "session.thread_status_terminated"
    assert statuses[writer.name] == "session.thread_status_idle"

    (primary,) = (thread for thread in threads.values() if thread.parent_thread_id is None)
    assert len(threads) == 4
    of = {names[uid]: thread for uid, thread in threads.items() if uid in names}
    assert {thread.parent_thread_id for thread in of.values()} == {primary.id}
    assert (of[scout.name].agent.id, of[scout.name].status) == (scout.id, "idle")
    assert of["anthropic.advisor"].agent.model == "claude-opus-5-5"
    assert of["anthropic.advisor"].status == "terminated"

    child = of[scout.name]
    api = alice.beta.sessions.threads
    assert api.retrieve(child.id, session_id=session.id) == child
    told = list(api.events.list(child.id, session_id=session.id))
    (received,) = (each for each in told if each.type == "agent.thread_message_received")
    assert received.from_session_thread_id == primary.id
    assert received.content[0].text == "Scout it."
    only = list(
        alice.beta.sessions.events.list(session.id, types=["session.thread_status_terminated"])
    )
    assert [each.session_thread_id for each in only] == [of["anthropic.advisor"].id]
    assert api.archive(child.id, session_id=session.id).status == "terminated"
    with pytest.raises(anthropic.NotFoundError):
        mallory.beta.sessions.threads.retrieve(child.id, session_id=session.id)


def test_while_a_thread_works_its_session_does(
    alice: anthropic.Anthropic, world: World, make_agent: MakeAgent
) -> None:
    lead = make_agent(
        tools=[ASKS], multiagent={"type": "coordinator", "agents": [{"type": "self"}]}
    )
    assert lead.multiagent.agents[0].id == lead.id
    words = f"Begin with {lead.id}."
    world.service.expect(words, reply(ask(lead.name, "Ask first.")), reply("Over."))
    write = call("write_file", path="b.txt", content="x")
    world.service.expect("Ask first.", reply(write), reply("So be it."))
    session = alice.beta.sessions.create(agent=lead.id, environment_id=world.environment)
    alice.beta.sessions.events.send(session.id, events=[message(words)])
    statuses: list[str] = []
    end = time.monotonic() + PATIENCE
    while statuses[-1:] != ["idle"] or "running" not in statuses:
        assert time.monotonic() < end
        statuses.append(alice.beta.sessions.retrieve(session.id).status)
        time.sleep(0.05)
    events = list(alice.beta.sessions.events.list(session.id))
    assert events[-1].stop_reason.type == "requires_action", "it is idle for the question alone"
    backwards = list(alice.beta.sessions.events.list(session.id, order="desc"))
    assert [each.id for each in backwards] == [each.id for each in events][::-1]


def test_the_newer_form_is_merged_level_by_level_and_cleared(
    alice: anthropic.Anthropic, make_agent: MakeAgent
) -> None:
    other = make_agent()
    lead = make_agent(multiagent={"type": NEWER, "advisor": {"type": "enabled", "model": "m"}})
    held = lead.multiagent
    assert (held.subagents.type, held.subagents.inline_agents.type) == ("enabled", "enabled")
    assert (held.workflows.type, held.advisor.model) == ("disabled", "m")

    named: Any = {"type": "enabled", "predefined_agents": [other.id]}
    changed = alice.beta.agents.update(lead.id, multiagent={"type": NEWER, "subagents": named})
    assert [each.id for each in changed.multiagent.subagents.predefined_agents] == [other.id]
    assert changed.multiagent.subagents.inline_agents.type == "enabled"
    assert changed.multiagent.advisor.model == "m"
    off: Any = {"type": NEWER, "subagents": {"type": "disabled"}}
    assert alice.beta.agents.update(lead.id, multiagent=off).multiagent.subagents.type == "disabled"
    same = alice.beta.agents.update(lead.id, name="Renamed")
    assert same.multiagent.advisor.model == "m", "what is left out stays"
    assert alice.beta.agents.update(lead.id, multiagent=None).multiagent is None


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"type": NEWER, "workflows": {"type": "enabled"}}, "workflows"),
        ({"type": NEWER, "advisor": {"type": "enabled"}}, "multiagent.advisor.model"),
        (
            {
                "type": NEWER,
                "subagents": {"type": "enabled", "inline_agents": {"type": "disabled"}},
            },
            "predefined",
        ),
        ({"type": "coordinator", "agents": []}, "multiagent"),
        ({"type": "coordinator", "agents": ["agent_of_nobody"]}, "multiagent"),
        ({"type": "coordinator", "agents": [{"type": "self"}, {"type": "self"}]}, "multiagent"),
        (
            {"type": "coordinator", "agents": [{"type": "advisor", "model": "m"}] * 2},
            "multiagent.agents",
        ),
        ({"type": "workflow"}, "multiagent"),
    ],
)
def test_a_roster_that_cannot_be_is_refused_by_its_field(
    make_agent: MakeAgent, given: Any, word: str
) -> None:
    with pytest.raises(anthropic.BadRequestError) as caught:
        make_agent(multiagent=given)
    assert word in caught.value.message


def test_what_is_mallorys_cannot_be_called_on(
    mallory: anthropic.Anthropic, make_agent: MakeAgent
) -> None:
    hers = mallory.beta.agents.create(name="Hers", model="claude-sonnet-5-5")
    with pytest.raises(anthropic.BadRequestError, match="not on offer"):
        make_agent(multiagent={"type": "coordinator", "agents": [hers.id]})

"""Whom an agent may call on: fixed when it is saved, offered by name, called with what each is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from accounts.models import Organisation, User
from agents.actions.agents import archive_agent, change_agent, create_agent
from agents.models import Agent
from conversations.log import append
from harness.agentconfig import AgentConfig, RoleOverride, ToolRule
from harness.content import Text
from harness.errors import Invalid
from harness.events import UserMessage
from harness.history import Entry
from harness.ids import new_id
from harness.messages import ModelRequest
from harness.roster import Callee, Roster
from providers.scripted import Hold, call, registered, reply, say
from subagents.casting import cast_of
from teams_app.actions.teams import spawn_teammate
from tests.conversations.conftest import Converse, MakeAgent

from .conftest import Lead, answers, ask, child_of, done, scenes, told, until, words_of

pytestmark = pytest.mark.django_db(transaction=True)

Plays = Callable[..., tuple[Agent, Any]]


@pytest.fixture
def plays(make_agent: MakeAgent) -> Iterator[Plays]:
    """An agent of its own that plays a script with a model of its own."""
    with ExitStack() as open_scripts:

        def make(name: str, script: Any, **config: Any) -> tuple[Agent, Any]:
            model = new_id("script")
            scripted = open_scripts.enter_context(registered(model, script))
            return make_agent(name, provider="scripted", model=model, **config), scripted

        yield make


def saved(staff: User, roster: Roster, organisation: Organisation | None = None) -> Agent:
    return create_agent(
        actor=staff,
        organisation=organisation,
        name="Lead",
        description="",
        config=AgentConfig(provider="demo", roster=roster),
    )


def config_of(agent: Agent) -> AgentConfig:
    agent.refresh_from_db()
    assert agent.current is not None
    return agent.current.config


def test_saving_fixes_the_versions_of_whom_it_may_call(staff: User, make_agent: MakeAgent) -> None:
    reviewer = make_agent("Reviewer", provider="demo")
    lead = saved(staff, Roster(agents=(Callee(agent="Reviewer"),), advisor="some-model"))

    first = Callee(agent=reviewer.uid, version=1, name="Reviewer")
    assert config_of(lead).roster == Roster(agents=(first,), advisor="demo/some-model")

    newer = AgentConfig(provider="demo", instructions="Anew.")
    change_agent(actor=staff, agent=reviewer, name="Other", description="", config=newer)
    archive_agent(actor=staff, agent=reviewer)
    kept = change_agent(
        actor=staff, agent=lead, name="Lead", description="Leads.", config=config_of(lead)
    )
    assert kept.current is not None
    assert kept.current.number == 1
    assert config_of(lead).roster.agents == (first,)


@pytest.mark.parametrize(
    "named", ["nobody", "agent_00000000000000000000000000", "Private", "Of others", "Twice"]
)
def test_whom_not_everybody_may_use_is_refused_with_the_field(
    staff: User,
    alice: User,
    acme: Organisation,
    elsewhere: Organisation,
    make_agent: MakeAgent,
    named: str,
) -> None:
    private = make_agent("Private", organisation=acme, provider="demo")
    Agent.objects.filter(pk=private.pk).update(private=True, owner=alice)
    make_agent("Of others", organisation=elsewhere, provider="demo")
    make_agent("Twice", provider="demo")
    make_agent("Twice", provider="demo")

    with pytest.raises(Invalid) as refusal:
        saved(staff, Roster(agents=(Callee(agent=named),)), acme)
    assert refusal.value.field == "roster_agents"
    with pytest.raises(Invalid, match="no version 9"):
        make_agent("Known", provider="demo")
        saved(staff, Roster(agents=(Callee(agent="Known", version=9),)), acme)


def test_an_agent_of_the_roster_works_with_what_it_is_in_that_version(
    lead: Lead, plays: Plays, staff: User
) -> None:
    seen: list[ModelRequest] = []

    def review(request: ModelRequest) -> Any:
        seen.append(request)
        return reply(call("write_file", path="b.txt", content="x")) if len(seen) == 1 else "Fine."

    reviewer, _script = plays(
        "Reviewer",
        review,
        instructions="You review.",
        tools=(ToolRule(tool="read_file"),),
        roles={"subagent": RoleOverride(effort="high")},
    )
    changed = AgentConfig(provider="demo", instructions="Something else.")
    change_agent(actor=staff, agent=reviewer, name="Reviewer", description="", config=changed)
    callee = Callee(agent=reviewer.uid, version=1, name="critic")
    conversation = done(
        lead([reply(ask("alpha", agent="critic")), reply("Done.")], roster={"agents": (callee,)})
    )

    (row,) = told(conversation)
    child = child_of(row)
    assert (row.kind, row.state) == ("critic", "completed")
    assert (child.agent_version.agent, child.agent_version.number) == (reviewer, 1)
    assert child.config.effort == "high"
    assert "You review." in str(seen[0].system)
    assert "write_file" not in {tool.name for tool in seen[0].tools}
    assert "write_file" in answers(child)[0]
    assert "Fine." in answers(conversation)[0]


def test_where_only_the_roster_counts_no_type_can_be_called(lead: Lead, plays: Plays) -> None:
    reviewer, _script = plays("Reviewer", ["Fine."])
    offered: list[Any] = []

    def begin(request: ModelRequest) -> Any:
        (tool,) = (tool for tool in request.tools if tool.name == "subagent")
        offered.extend(tool.input_schema["properties"]["agent"]["enum"])
        return reply(ask("alpha", agent="explore"), ask("beta"))

    callee = Callee(agent=reviewer.uid, version=1, name="critic")
    roster = {"agents": (callee,), "only": True}
    conversation = done(lead([begin, reply("Done.")], roster=roster))

    assert offered == ["critic"]
    assert [row.kind for row in told(conversation)] == ["critic"], "who is usual is of the roster"
    assert any("explore" in answer for answer in answers(conversation))


def test_one_that_was_put_away_is_refused_in_words(lead: Lead, plays: Plays, staff: User) -> None:
    reviewer, _script = plays("Reviewer", ["Fine."])
    archive_agent(actor=staff, agent=reviewer)
    callee = Callee(agent=reviewer.uid, version=1, name="critic")
    conversation = done(
        lead([reply(ask("alpha", agent="critic")), reply("Done.")], roster={"agents": (callee,)})
    )
    assert "not on offer" in answers(conversation)[0]


def test_a_call_defines_an_agent_only_where_it_may(lead: Lead) -> None:
    seen: list[ModelRequest] = []

    def work(request: ModelRequest) -> Any:
        seen.append(request)
        return "Counted."

    given = {"name": "counter", "instructions": "You count.", "tools": ["list_files"]}
    told_to = [reply(ask("alpha", inline=given)), reply("Done.")]
    conversation = done(lead(scenes(told_to, alpha=work), roster={"inline": True}))
    assert told(conversation)[0].kind == "counter"
    assert "You count." in str(seen[0].system)
    assert {"write_file", "read_file"}.isdisjoint(tool.name for tool in seen[0].tools)

    refused = done(lead(scenes(told_to, alpha=work)))
    assert "inline" in answers(refused)[0]
    assert not refused.subagents.exists()


def test_an_advisor_sees_the_conversation_has_no_tools_and_a_share_of_its_own(
    lead: Lead, plays: Plays
) -> None:
    seen: list[ModelRequest] = []

    def advise(request: ModelRequest) -> Any:
        seen.append(request)
        return "Measure first."

    unused, _advisor = plays("Unused", advise)
    model = unused.current.config.model
    script = [
        reply(call("list_files"), "I look around."),
        reply(ask("Which way?", agent="advisor")),
        lambda request: "Heeded." if "Measure first." in words_of(request) else "Alone.",
    ]
    conversation = done(lead(script, roster={"advisor": f"scripted/{model}"}))

    (row,) = told(conversation)
    assert (row.state, row.kind, row.files) == ("completed", "advisor", "read_only")
    assert not seen[0].tools
    assert "Which way?" in words_of(seen[0])
    assert "I look around." in words_of(seen[0])
    assert row.tokens_reserved <= conversation.config.limits.token_budget // 4
    assert "Heeded." in str(list(conversation.events.values_list("payload", flat=True)))


def test_what_waits_in_the_conversation_that_an_advisor_is_shown_brings_its_strangers_along(
    lead: Lead, plays: Plays
) -> None:
    seen: list[ModelRequest] = []

    def advise(request: ModelRequest) -> Any:
        seen.append(request)
        return "Measure first."

    unused, _advisor = plays("Unused", advise)
    model = unused.current.config.model
    hold = Hold()
    script = [
        reply(say(hold, "I look around."), call("list_files")),
        reply(ask("Which way?", agent="advisor")),
        reply("Heeded."),
        reply("Read."),
    ]
    conversation = lead(script, roster={"advisor": f"scripted/{model}"})
    until(lambda: hold.reached.is_set())
    waits = UserMessage(content=(Text(text="Obey."),), by_agent=True, untrusted_by="a page")
    append(conversation.pk, [Entry.of(waits)])
    hold.release.set()

    (row,) = told(conversation)
    assert "Obey." in words_of(seen[0])
    told_first = child_of(row).events.filter(type="user.message").order_by("seq")[0].value
    assert isinstance(told_first, UserMessage)
    assert told_first.untrusted_by == "a page, by way of the agent above"


def test_without_an_advisor_nobody_gives_advice(lead: Lead) -> None:
    conversation = done(lead([reply(ask("Which way?", agent="advisor")), reply("Done.")]))
    assert not conversation.subagents.exists()


def test_a_teammate_is_of_the_roster_and_acts_as_its_role_says(
    alice: User, converse: Converse, make_agent: MakeAgent
) -> None:
    writer = make_agent(
        "Writer", provider="demo", roles={"teammate": RoleOverride(effort="low", temperature=0.1)}
    )
    make_agent("Stranger", provider="demo")
    roster = {"agents": (Callee(agent=writer.uid, version=1, name="scribe"),), "only": True}
    conversation, _script = converse(
        lambda _request: reply("I see."), features={"teams": True}, roster=roster
    )

    made = spawn_teammate(
        actor=alice, lead=conversation, name="ada", role="", text="Begin.", agent="scribe"
    )
    config = made.conversation.config
    assert made.conversation.agent_version.agent == writer
    assert (config.effort, config.temperature) == ("low", 0.1)
    with pytest.raises(Invalid, match="cannot work with") as refusal:
        spawn_teammate(
            actor=alice, lead=conversation, name="bo", role="", text="Begin.", agent="Stranger"
        )
    assert "scribe" in refusal.value.hint


def test_a_version_that_was_deleted_is_said_to_be_gone(converse: Converse) -> None:
    conversation, _script = converse()
    lost = Callee(agent="agent_gone", version=3, name="critic")
    with pytest.raises(Invalid, match="critic is gone"):
        cast_of(lost, conversation, "subagent")

"""What holds an agent back holds back whoever works for it, also where that one was begun before or is
another agent that its makers hold back themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from accounts.models import User
from agents.models import Agent
from approvals.models import Approval
from conversations.actions.children import begin_child
from conversations.actions.conversations import change_tools
from conversations.actions.messages import post_message, set_feature
from conversations.models import Conversation
from harness.agentconfig import CustomTool, McpUse, ToolRule
from harness.ids import new_id
from harness.roster import Callee
from providers.scripted import call, registered, reply
from subagents.heldback import rules
from teams_app.actions.mail import send_mail
from teams_app.actions.teams import spawn_teammate
from teams_app.members import Member, member_of
from tests.conversations.conftest import Converse, MakeAgent

from .conftest import Lead, ask, child_of, done, named_in, scenes, until

pytestmark = pytest.mark.django_db(transaction=True)

Plays = Callable[..., Agent]
WRITES = [reply(call("write_file", path="b.txt", content="x")), reply("Written.")]


@pytest.fixture
def plays(make_agent: MakeAgent) -> Iterator[Plays]:
    """An agent of its own that plays a script with a model of its own."""
    with ExitStack() as open_scripts:

        def make(name: str, script: Any, **config: Any) -> Agent:
            model = new_id("script")
            open_scripts.enter_context(registered(model, script))
            return make_agent(name, provider="scripted", model=model, **config)

        yield make


def outcomes(conversation: Conversation) -> list[str]:
    """How the calls of a conversation were answered."""
    rows = conversation.events.filter(type="agent.tool_result").order_by("seq")
    return [row.value.outcome for row in rows]


def acted(child: Conversation) -> list[str]:
    """`outcomes` once there is one, or a person is asked."""
    until(lambda: outcomes(child) or Approval.objects.filter(conversation=child).exists())
    return outcomes(child)


@pytest.mark.parametrize("switch", ["approval", "plan_mode"])
def test_a_switch_that_is_turned_on_holds_back_a_subagent_that_is_asked_again(
    alice: User, lead: Lead, switch: str
) -> None:
    script = scenes(
        [
            reply(ask("alpha")),
            reply("First done."),
            lambda request: reply(ask("Write now.", resume=named_in(request))),
            reply("Second done."),
        ],
        alpha=[reply("I am here."), *WRITES],
    )
    conversation = done(lead(script))
    set_feature(actor=alice, conversation=conversation, feature=switch, enabled=True)
    post_message(actor=alice, conversation=conversation, text="Go on.")

    until(lambda: conversation.subagents.count() == 2)
    child = child_of(conversation.subagents.select_related("child").order_by("pk")[0])
    assert "ok" not in acted(child)


def test_tools_that_a_conversation_lost_are_lost_to_a_subagent_that_is_asked_again(
    alice: User, lead: Lead
) -> None:
    script = scenes(
        [
            reply(ask("alpha")),
            reply("First done."),
            lambda request: reply(ask("Write now.", resume=named_in(request))),
            reply("Second done."),
        ],
        alpha=[reply("I am here."), *WRITES],
    )
    conversation = done(lead(script))
    denied = ToolRule(tool="write_file", permission="always_deny")
    lose(conversation, denied)
    post_message(actor=alice, conversation=conversation, text="Go on.")

    until(lambda: conversation.subagents.count() == 2)
    child = child_of(conversation.subagents.select_related("child").order_by("pk")[0])
    assert "ok" not in acted(child)


def test_an_agent_of_the_roster_that_asks_before_it_acts_asks_also_as_a_subagent(
    lead: Lead, plays: Plays
) -> None:
    careful = plays("Careful", WRITES, features={"approval": True})
    roster = {"agents": (Callee(agent=careful.uid, version=1, name="careful"),)}
    conversation = lead([reply(ask("Write.", agent="careful")), reply("Done.")], roster=roster)

    until(lambda: conversation.subagents.exclude(child=None).exists())
    child = child_of(conversation.subagents.select_related("child").get())
    assert acted(child) == []


def test_an_agent_that_asks_before_it_acts_asks_also_as_a_teammate(
    alice: User, converse: Converse, plays: Plays
) -> None:
    careful = plays("Careful", WRITES, features={"approval": True})
    roster = {"agents": (Callee(agent=careful.uid, version=1, name="careful"),)}
    conversation, _script = converse(
        lambda _request: reply("I see."), features={"teams": True}, roster=roster
    )

    made = spawn_teammate(
        actor=alice, lead=conversation, name="ada", role="", text="Write.", agent="careful"
    )
    child = made.conversation
    assert acted(child) == []


def test_a_switch_that_is_turned_on_holds_back_a_teammate_that_is_written_to_later(
    alice: User, converse: Converse, plays: Plays
) -> None:
    writer = plays("Writer", [reply("I am here."), *WRITES])
    roster = {"agents": (Callee(agent=writer.uid, version=1, name="writer"),)}
    conversation, _script = converse(
        lambda _request: reply("I see."), features={"teams": True}, roster=roster
    )
    made = spawn_teammate(
        actor=alice, lead=conversation, name="ada", role="", text="Come.", agent="writer"
    )
    child = done(made.conversation)
    set_feature(actor=alice, conversation=conversation, feature="approval", enabled=True)

    ada = Member(made.team, child, made)
    send_mail(actor=alice, sender=_lead(conversation), receivers=[ada], text="Write.", key="k")
    assert acted(child) == []


def below(conversation: Conversation) -> Conversation:
    """A child that is the same agent, as it is now."""
    version = conversation.agent_version
    return begin_child(
        actor=conversation.owner,
        parent=conversation,
        agent=version.agent,
        version=version.number,
        environment=conversation.environment,
        text="Look around.",
        overrides=conversation.overrides,
    )


def lose(conversation: Conversation, *tools: ToolRule, **more: Any) -> None:
    rules = [rule.model_dump(mode="json") for rule in (*conversation.config.tools, *tools)]
    change_tools(
        actor=conversation.owner, conversation=conversation, overrides={"tools": rules, **more}
    )


def denied_in(conversation: Conversation) -> set[str]:
    """What those above have lost since it began."""
    fresh = Conversation.objects.get(pk=conversation.pk)
    return {held.rule.tool for held in rules(fresh)}


def test_what_a_conversation_loses_each_one_of_the_same_agent_below_loses(
    converse: Converse, plays: Plays
) -> None:
    custom = CustomTool(name="pay", description="Pays.")
    servers = (McpUse(name="crm"), McpUse(name="wiki"))
    conversation, _script = converse(
        lambda _request: reply("I see."), custom_tools=(custom,), mcp_servers=servers
    )
    before = below(conversation)
    lowest = below(before)
    other = plays("Other", [reply("I see.")])
    of_its_own = begin_child(
        actor=conversation.owner,
        parent=conversation,
        agent=other,
        environment=conversation.environment,
        text="Look around.",
    )
    assert denied_in(before) == set()

    done(before)
    done(lowest)
    uses = [McpUse(name="crm", tools=("read",)).model_dump(mode="json")]
    lose(
        conversation,
        ToolRule(tool="write_file", permission="always_deny"),
        custom_tools=[],
        mcp_servers=uses,
    )
    lost = {"write_file", "pay", "mcp:crm:*", "mcp:wiki:*"}
    assert denied_in(before) == denied_in(lowest) == lost
    assert denied_in(of_its_own) == denied_in(conversation) == set()
    conversation.refresh_from_db()
    assert denied_in(below(conversation)) == set(), "it has what is left from its beginning"


def test_switches_go_down_to_all_below_when_they_are_turned_on_and_off_one_by_one(
    alice: User, converse: Converse
) -> None:
    conversation, _script = converse(lambda _request: reply("I see."))
    child = below(conversation)
    lowest = below(child)

    def approval() -> list[bool]:
        rows = Conversation.objects.filter(pk__in=[conversation.pk, child.pk, lowest.pk])
        return [row.features.approval for row in rows.order_by("pk")]

    def turn(where: Conversation, enabled: bool) -> None:
        set_feature(actor=alice, conversation=where, feature="approval", enabled=enabled)

    turn(conversation, True)
    assert approval() == [True, True, True]
    turn(child, False)
    assert approval() == [True, False, True]
    turn(conversation, False)
    assert approval() == [False, False, True]


def _lead(conversation: Conversation) -> Member:
    found = member_of(Conversation.objects.get(pk=conversation.pk))
    assert found is not None
    return found

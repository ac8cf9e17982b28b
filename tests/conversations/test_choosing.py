"""The model and the effort that a person chose for a conversation: who may, which, and from when on."""

from __future__ import annotations

import pytest

from accounts.models import Organisation, User
from agents.models import Environment
from conversations.actions.choosing import Wish, choose_model
from conversations.actions.conversations import create_conversation
from conversations.actions.messages import post_message
from conversations.models import Conversation, Event
from harness.errors import Conflict, Invalid, NotFound
from harness.events import SessionUpdated, SpanModelRequestStart
from providers.scripted import Hold, registered, reply, say
from tests.conversations.conftest import Converse, MakeAgent, rested, until


@pytest.fixture
def conversation(
    alice: User, acme: Organisation, environment: Environment, make_agent: MakeAgent
) -> Conversation:
    agent = make_agent(provider="anthropic", model="claude-opus-5", effort="high")
    return create_conversation(actor=alice, organisation=acme, agent=agent, environment=environment)


def changes(conversation: Conversation) -> list[SessionUpdated]:
    rows = Event.objects.filter(conversation=conversation, type="session.updated").order_by("seq")
    return [row.value for row in rows if isinstance(row.value, SessionUpdated)]


def test_a_choice_is_recorded_once_and_the_agents_own_comes_back(
    alice: User, conversation: Conversation, settings
):
    settings.AGENTSITE_PROVIDER_KEYS = {"anthropic": {"key": "k"}}
    wish = Wish("anthropic", "claude-opus-4-5", "low")
    event = choose_model(actor=alice, conversation=conversation, wish=wish)
    assert event is not None
    assert event.actor == alice
    assert choose_model(actor=alice, conversation=conversation, wish=wish) is None
    conversation.refresh_from_db()
    now = conversation.config
    assert (now.provider, now.model, now.effort) == ("anthropic", "claude-opus-4-5", "low")

    choose_model(actor=alice, conversation=conversation, wish=Wish(effort="high"))
    conversation.refresh_from_db()
    assert conversation.config == conversation.agent_version.config
    assert len(changes(conversation)) == 2


@pytest.mark.parametrize(
    ("wish", "field"),
    [
        (Wish("openai_compatible", "gpt-5"), "provider"),
        (Wish("nobody", "x"), "provider"),
        (Wish("demo", "x" * 101), "model"),
        (Wish("demo", "demo", "low"), "effort"),
        (Wish("demo", "gpt-5", "max"), "effort"),
        (Wish(effort="sideways"), "effort"),
    ],
    ids=["no key", "no provider", "too long a name", "no effort", "not this effort", "no word"],
)
def test_what_cannot_be_had_is_refused_and_nothing_changes(
    alice: User, conversation: Conversation, wish: Wish, field: str
):
    with pytest.raises(Invalid) as refused:
        choose_model(actor=alice, conversation=conversation, wish=wish)
    assert refused.value.field == field
    assert refused.value.hint
    assert changes(conversation) == []


def test_nobody_else_chooses_and_nothing_that_has_ended_is_changed(
    alice: User, bob: User, mallory: User, conversation: Conversation
):
    for stranger in (bob, mallory):
        with pytest.raises(NotFound):
            choose_model(actor=stranger, conversation=conversation, wish=Wish("demo", "demo"))
    Conversation.objects.update(status=Conversation.Status.TERMINATED)
    with pytest.raises(Conflict):
        choose_model(actor=alice, conversation=conversation, wish=Wish("demo", "demo"))
    assert changes(conversation) == []


@pytest.mark.django_db(transaction=True)
def test_what_is_under_way_ends_as_it_began_and_the_next_message_is_answered_by_the_chosen_model(
    alice: User, converse: Converse
):
    hold = Hold()
    conversation, _first = converse([reply(say("By the ", hold, "first."))])
    with registered("second", [reply("By the second.")]):
        post_message(actor=alice, conversation=conversation, text="One")
        until(hold.reached.is_set)
        post_message(actor=alice, conversation=conversation, text="Two")
        choose_model(actor=alice, conversation=conversation, wish=Wish("scripted", "second"))
        hold.release.set()
        rested(conversation, times=2)
    asked = Event.objects.filter(conversation=conversation, type="span.model_request_start")
    models = [
        row.value.model
        for row in asked.order_by("seq")
        if isinstance(row.value, SpanModelRequestStart)
    ]
    assert models == [conversation.agent_version.config.model, "second"]

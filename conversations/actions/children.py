"""What agents say to each other: a child conversation begun by its parent's agent, words between the two,
and what a child came to.

Untrusted content goes where words go: who is told by an agent that has read it has read it too. Which
agents may begin children, and when, is `subagents`' part.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import User
from agents.models import Agent, Environment
from conversations.actions.conversations import create_conversation
from conversations.actions.messages import checked_text
from conversations.actions.own import own_conversation
from conversations.branches import counting
from conversations.judging import history_of
from conversations.log import append
from conversations.models import Conversation, Event
from conversations.wakes import wake
from harness.content import Text, text_of
from harness.errors import Conflict, NotFound
from harness.events import AgentMessage, UserMessage
from harness.history import Entry, History, strangers_in
from harness.tools import ToolOutput


def begin_child(
    *,
    actor: User,
    parent: Conversation,
    agent: Agent,
    environment: Environment,
    text: str,
    features: Mapping[str, bool] | None = None,
    title: str = "",
    version: int | None = None,
    uid: str | None = None,
    overrides: Mapping[str, Any] | None = None,
    as_child: Mapping[str, Any] | None = None,
    quotes: bool = False,
    above: History | None = None,
) -> Conversation:
    """A conversation below `parent` with a task in the words of the parent's agent. What may be given of
    it is told by `create_conversation`, of the words by `tell_agent`; `above` is its `heard`.

    Raises what `create_conversation` and `tell_agent` raise.
    """
    with transaction.atomic():
        held = own_conversation(actor, parent)
        child = create_conversation(
            actor=actor,
            organisation=parent.organisation,
            agent=agent,
            environment=environment,
            features=features,
            title=title,
            parent=held,
            version=version,
            uid=uid,
            overrides=overrides,
            as_child=as_child,
        )
        tell_agent(actor=actor, sender=held, receiver=child, text=text, quotes=quotes, heard=above)
    return child


def tell_agent(
    *,
    actor: User,
    sender: Conversation,
    receiver: Conversation,
    text: str,
    quotes: bool = False,
    heard: History | None = None,
) -> Event:
    """Queue a message from the agent of one conversation to that of its parent or child. One that `quotes`
    the sender's dialogue brings along whatever strangers ever wrote there. `heard`: the sender's log, where
    the caller has read it while it holds the sender; None: it is read here.

    Nobody has spoken by it. Raises NotFound for a conversation that is not the actor's or not next to
    the other, Invalid and TooLarge for the text, Conflict when too many messages wait there already.
    """
    text = checked_text(text)
    with transaction.atomic():
        held = own_conversation(actor, receiver)
        _require_next_to(actor, sender, held)
        if held.queued_count >= settings.AGENTSITE_QUEUED_MESSAGES:
            raise Conflict(
                _("%(count)d messages wait already.") % {"count": held.queued_count},
                hint=_("Wait until the agent has taken one of them."),
            )
        said = UserMessage(
            content=(Text(text=text),),
            by_agent=True,
            untrusted_by=_brought_by(
                sender,
                heard or history_of(sender),
                upwards=sender.parent_id == held.pk,
                all_of_it=quotes,
            ),
        )
        row = append(held.pk, [Entry.of(said)], actor=actor)[0]
        wake(held.pk)
    return row


def answer_of(*, actor: User, child: Conversation) -> ToolOutput:
    """What a child has said last, for a call of its parent's agent that waited for it. NotFound for a
    conversation that is not the actor's or has no parent."""
    if child.parent_id is None or not Conversation.objects.owned_by(actor).contains(child):
        raise NotFound(_("There is no such conversation."))
    row = counting(child).filter(type="agent.message").order_by("seq").last()
    value = row.value if row is not None else None
    text = text_of(value.content) if isinstance(value, AgentMessage) else ""
    source = _brought_by(child, history_of(child), upwards=True)
    return ToolOutput(text, untrusted=bool(source), untrusted_by=source)


def _require_next_to(actor: User, sender: Conversation, receiver: Conversation) -> None:
    related = receiver.pk == sender.parent_id or receiver.parent_id == sender.pk
    if not related or not Conversation.objects.owned_by(actor).contains(sender):
        raise NotFound(_("There is no such conversation."))


def _brought_by(
    sender: Conversation, history: History, *, upwards: bool, all_of_it: bool = False
) -> str:
    """What untrusted content the sender's words may hold. Of a child all it ever read counts: a word
    that a person said to it was not said to its parent."""
    ever = history.read_anywhere if upwards else history.ever_tainted_by
    source = ever if upwards or all_of_it else history.tainted_by
    if all_of_it and not source:
        # What waits there, and has brought nothing in yet, is quoted with the rest.
        source = next(filter(None, map(strangers_in, history.entries)), "")
    where = "below" if upwards else "above"
    return f"{source}, by way of the agent {where}" if source else ""

"""Who has written in conversations: for rules, questions and money that go by whose words an agent acts on.

Who may write is `models.share`'s part, and whose words the present turn answers `Conversation.asker_id`.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.db.models import Q, QuerySet

from harness.events import AppEvent, CompactionRequested, UserToolConfirmation, instructing_types
from harness.events import Event as EventValue
from jobs.prepared import Prepared

from .ancestry import TreeOf, root_of
from .models import Conversation, Event

SAID = ("user.message", "user.define_outcome", "user.custom_tool_result")
"""Types of events by which somebody says what the agent is to act on, each at its place in the dialogue."""

_OTHERS = Prepared(
    lambda given: (
        Conversation.objects.order_by()
        .filter(pk__in=TreeOf(given.root), others_wrote=True)
        .values_list("pk")[:1]
    )
)

Conversations = TreeOf | QuerySet[Any, Any] | Collection[int]


def writers_in(conversations: Conversations) -> set[int]:
    """The keys of all who said something there, or told an agent what to do in another way."""
    said = by_people(conversations, SAID).values_list("actor", flat=True).distinct()
    return set(said) | instructing_in(conversations)


def behind(conversation: Conversation) -> set[int]:
    """The keys of the people whose words its agent may repeat: its owner's, and of whoever else wrote
    anywhere in its tree, since agents say to each other what they were told."""
    if not others_wrote_around(conversation):
        return {conversation.owner_id}
    return {conversation.owner_id, *writers_in(TreeOf(root_of(conversation)))}


def others_wrote_around(conversation: Conversation) -> bool:
    """Whether others than its owner wrote anywhere in its tree, by now: whoever asks while it works may have
    loaded it before they did."""
    return conversation.others_wrote or _OTHERS.exists(root=root_of(conversation))


def writers_beside(conversation: Conversation, root: int) -> set[int]:
    """The keys of those who said something to agents above and below it, who say in it what they were told,
    and of those who told its own agent what to do in another way. `root`: the key of the tree's top."""
    tree = Conversation.objects.filter(pk__in=TreeOf(root))
    others = writers_in(tree.exclude(pk=conversation.pk).values("pk"))
    return others | instructing_in([conversation.pk])


def instructing_in(conversations: Conversations) -> set[int]:
    """Of all who did the latter: what an agent reads when it looks or its summary dwells on, whatever it
    answers then."""
    rows = by_people(conversations, (*instructing_types(), "x.compaction_requested"))
    values = ((row.actor_id, row.value) for row in rows)
    return {actor for actor, value in values if actor is not None and instructs(value)}


def instructs(event: EventValue) -> bool:
    """Whether whoever left it may have told the agent by it what to do, beside the dialogue."""
    if isinstance(event, AppEvent):
        return event.instructs()
    return isinstance(event, CompactionRequested) and bool(event.focus)


def refusing_with_words(conversations: Conversations) -> set[int]:
    """The keys of those who refused a call there and told the agent why, and so what to do instead."""
    rows = by_people(conversations, ("user.tool_confirmation",)).filter(payload__result="deny")
    values = ((row.actor_id, row.value) for row in rows)
    return {
        actor
        for actor, value in values
        if actor is not None and isinstance(value, UserToolConfirmation) and value.deny_message
    }


def by_people(conversations: Conversations, types: Collection[str]) -> QuerySet[Event]:
    """Events of these types that accounts left there, of which each has its `actor`."""
    rows = Event.objects.filter(Q(conversation__in=conversations), type__in=types)
    return rows.exclude(actor=None).order_by()

"""Who has written in conversations: for rules, questions and money that go by whose words an agent acts on.

Who may write is `models.share`'s part, and whose words the present turn answers `Conversation.asker_id`.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.db.models import Q, QuerySet

from harness.events import AppEvent, CompactionRequested, InputTaken, instructing_types
from harness.events import Event as EventValue

from .ancestry import TreeOf, root_of
from .models import Conversation, Event

SAID = ("user.message", "user.define_outcome", "user.custom_tool_result")
"""Types of events by which somebody says what the agent is to act on, each at its place in the dialogue."""

_SUMMARY = "x.compaction_requested"

Conversations = TreeOf | QuerySet[Any, Any] | Collection[int]


def writers_in(conversations: Conversations) -> set[int]:
    """The keys of all who said something there, or told an agent what to do in another way."""
    said = _by_people(conversations, SAID).values_list("actor", flat=True).distinct()
    return set(said) | instructing_in(conversations)


def writers_of_turn(conversation: Conversation, turn: str) -> set[int]:
    """The keys of those whose words it answers; of all who said something there, where it answers anything
    else as well, which came of words of before: a wake, an end, what another agent says, another try."""
    log = Event.objects.filter(conversation=conversation)
    said = _by_people([conversation.pk], SAID)
    begin = log.filter(uid=turn, type="x.input_taken").first() if turn else None
    if begin is not None:
        taken = [row.value for row in log.filter(type="x.input_taken", seq__gte=begin.seq)]
        uids = {uid for one in taken if isinstance(one, InputTaken) for uid in one.event_ids}
        if said.filter(uid__in=uids).count() == len(uids):
            answers = Q(type="user.custom_tool_result", seq__gt=begin.seq)
            said = said.filter(Q(uid__in={*uids, *_pursued_in(conversation)}) | answers)
    return set(said.values_list("actor", flat=True))


def behind(conversation: Conversation) -> set[int]:
    """The keys of the people whose words its agent may repeat: its owner's, and of whoever else wrote
    anywhere in its tree, since agents say to each other what they were told."""
    if not conversation.others_wrote:
        return {conversation.owner_id}
    return {conversation.owner_id, *writers_in(TreeOf(root_of(conversation)))}


def writers_beside(conversation: Conversation, root: int) -> set[int]:
    """The keys of those who said something to agents above and below it, who say in it what they were told,
    and of those who told its own agent what to do in another way. `root`: the key of the tree's top."""
    tree = Conversation.objects.filter(pk__in=TreeOf(root))
    others = writers_in(tree.exclude(pk=conversation.pk).values("pk"))
    return others | instructing_in([conversation.pk])


def instructing_in(conversations: Conversations) -> set[int]:
    """Of all who did the latter: what an agent reads when it looks or its summary dwells on, whatever it
    answers then."""
    rows = _by_people(conversations, (*instructing_types(), _SUMMARY))
    values = ((row.actor_id, row.value) for row in rows)
    return {actor for actor, value in values if actor is not None and instructs(value)}


def outcomes_of(conversation: Conversation) -> set[int]:
    """The keys of those who set it an outcome."""
    set_by = _by_people([conversation.pk], ("user.define_outcome",))
    return set(set_by.values_list("actor", flat=True))


def _pursued_in(conversation: Conversation) -> list[str]:
    """The id of the outcome that turns work towards whoever begins them: the last one, until it is judged for
    good."""
    log = Event.objects.filter(conversation=conversation)
    last = log.filter(type="user.define_outcome").order_by("-seq").first()
    if last is None:
        return []
    ends = log.filter(type="span.outcome_evaluation_end", seq__gt=last.seq)
    return [] if ends.exclude(payload__result="needs_revision").exists() else [last.uid]


def instructs(event: EventValue) -> bool:
    """Whether whoever left it may have told the agent by it what to do, beside the dialogue."""
    match event:
        case CompactionRequested(focus=focus):
            return bool(focus)
        case AppEvent():
            return event.instructs()
        case _:
            return False


def _by_people(conversations: Conversations, types: Collection[str]) -> QuerySet[Event]:
    rows = Event.objects.filter(Q(conversation__in=conversations), type__in=types)
    return rows.exclude(actor=None).order_by()

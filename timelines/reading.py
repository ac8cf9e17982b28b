"""Timelines of turns from the tables: which turns there are, one of them with what its subagents did."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet
from django.urls import reverse
from django.utils.translation import gettext as _

from chat.commands import Command
from conversations.models import Conversation, Event

from .spans import Span, begins_turn, turn_of

BEGINNINGS = ("x.input_taken", "x.retry_requested")
MOST_EVENTS = 5_000
"""That are read of one turn; a longer one is shown as far as that."""
MOST_CHILDREN = 50
DEEPEST = 4
"""Floors of subagents that are read."""
MOST_TURNS = 50
"""That are offered, the newest."""


@dataclass(frozen=True, slots=True)
class Beginning:
    uid: str
    seq: int
    at: datetime


def turns_of(conversation: Conversation) -> list[Beginning]:
    """The newest first; also those of branches that count no more, which took their time as well."""
    rows = Event.objects.filter(conversation=conversation, type__in=BEGINNINGS).order_by("-seq")
    found = [row for row in rows[: 2 * MOST_TURNS] if begins_turn(row.value)]
    return [Beginning(row.uid, row.seq, row.created_at) for row in found[:MOST_TURNS]]


def timeline(conversation: Conversation, beginning: Beginning) -> Span | None:
    """The turn with the turns of its subagents below those calls."""
    left = [MOST_CHILDREN]
    found = turn_from(conversation, beginning.seq)
    if found is not None:
        _with_children(found, DEEPEST, left)
    return found


def turn_from(conversation: Conversation, seq: int) -> Span | None:
    rows = Event.objects.filter(conversation=conversation, seq__gte=seq).order_by("seq")
    entries = (row.entry() for row in rows[:MOST_EVENTS].iterator(chunk_size=500))
    found = turn_of(entries)
    if found is None:
        return None
    found.name = f"invoke_agent {conversation.agent_version.agent.name}"
    found.facts |= {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.id": conversation.agent_version.agent.uid,
        "gen_ai.agent.name": conversation.agent_version.agent.name,
        "gen_ai.agent.version": conversation.agent_version.number,
        "gen_ai.conversation.id": conversation.uid,
    }
    return found


def calling(conversation: Conversation, seq: int) -> tuple[Conversation, Event] | None:
    """The conversation and the event that asked for the turn which begins at `seq` of a subagent's."""
    if conversation.parent_id is None:
        return None
    begun = Event.objects.filter(conversation=conversation, seq=seq).values_list("created_at")
    rows = Event.objects.filter(
        conversation=conversation.parent_id,
        type="x.subagent_started",
        payload__subagent=conversation.uid,
        created_at__lte=begun[:1],
    )
    asked = rows.select_related("conversation__agent_version__agent").order_by("-seq").first()
    return None if asked is None else (asked.conversation, asked)


@dataclass(frozen=True, slots=True)
class Root:
    """Where a turn stands in the tree of which it is a part."""

    turn: str
    """The id of the event that began the turn which asked for all of it; its own, where nobody asked."""
    parent: str
    """The id of the span below which it stands; empty: it is the root."""


def root_of(conversation: Conversation, beginning: Beginning) -> Root:
    """Of the turn that begins there: a subagent's stands below the call that asked for it."""
    turn, parent = beginning.uid, ""
    here, at = conversation, beginning.seq
    for _floor in range(DEEPEST + 1):
        above = calling(here, at)
        if above is None:
            break
        here, asked = above
        parent = parent or f"child:{asked.uid}"
        before = beginning_before(here, asked.seq)
        if before is None:
            break
        turn, at = before.uid, before.seq
    return Root(turn, parent)


def beginning_before(conversation: Conversation, seq: int) -> Beginning | None:
    """Of the turn in which an event stands."""
    rows: QuerySet[Event] = Event.objects.filter(
        conversation=conversation, type__in=BEGINNINGS, seq__lte=seq
    ).order_by("-seq")
    for row in rows[:100]:
        if begins_turn(row.value):
            return Beginning(row.uid, row.seq, row.created_at)
    return None


def commands(conversation: Conversation) -> Iterator[Command]:
    if conversation.message_count:
        address = reverse("timelines:timeline", args=[conversation.uid])
        yield Command("timeline", _("What took how long"), address=address)


def _with_children(span: Span, depth: int, left: list[int]) -> None:
    for each in span.spans:
        if each.kind == "child" and depth and left[0]:
            left[0] -= 1
            each.spans = _turns_within(each)
        _with_children(each, depth - 1 if each.kind == "child" else depth, left)


def _turns_within(child: Span) -> list[Span]:
    """What the subagent's conversation did for this call."""
    rows = Conversation.objects.select_related("agent_version__agent").filter(uid=child.child)
    conversation = rows.first()
    if conversation is None:
        return []
    found = []
    for beginning in reversed(turns_of(conversation)):
        began = beginning.at.timestamp()
        if began >= child.start - 1 and (child.end is None or began <= child.end):
            turn = turn_from(conversation, beginning.seq)
            if turn is not None:
                found.append(turn)
    return found

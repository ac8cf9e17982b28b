"""All that waits for a time, or for the end of something, and that a person may see, soonest first.

It reads the tables of those that wait; what becomes of one is an action of its own subject.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from django.urls import reverse

from accounts.models import Organisation, User
from brief.models import BriefWish
from conversations.models import BackgroundCommand, Conversation, Wake
from schedules.models import StandingOrder
from subagents.models import Subagent
from teams_app.models import Teammate

MOST = 200
"""Of each kind."""

Kind = Literal["schedule", "wake", "retry", "command", "subagent", "brief"]


@dataclass(frozen=True, slots=True)
class Timer:
    kind: Kind
    key: str
    """By which its form names it; empty: it is looked after elsewhere."""
    name: str
    path: str
    at: datetime | None
    """None: it waits for an end and not for a time."""
    reason: str = ""
    whose: str = ""
    """Of a teammate's: its name."""
    may_hurry: bool = True
    """Whether it can be had now, or later."""
    is_own: bool = True

    @property
    def address(self) -> str:
        return reverse("timers:change", kwargs={"kind": self.kind, "key": self.key})


def timers_of(user: User, organisation: Organisation) -> list[Timer]:
    found = [
        *_schedules(user, organisation),
        *_wakes(user, organisation),
        *_at_work(user, organisation),
        *_briefs(user, organisation),
    ]
    timed = sorted((each for each in found if each.at), key=lambda each: (each.at, each.kind))
    return [*timed, *(each for each in found if each.at is None)]


def _schedules(user: User, organisation: Organisation) -> Iterator[Timer]:
    orders = StandingOrder.objects.visible_to(user).in_force()
    coming = orders.filter(organisation=organisation, next_start_at__isnull=False)
    for order in coming.order_by("next_start_at")[:MOST]:
        yield Timer(
            "schedule", order.uid, order.name, order.get_absolute_url(), order.next_start_at
        )


def _wakes(user: User, organisation: Organisation) -> Iterator[Timer]:
    waiting = Wake.objects.waiting().visible_to(user)
    rows = waiting.filter(conversation__organisation=organisation, conversation__unlisted=False)
    found = list(rows.select_related("conversation__parent").order_by("due_at")[:MOST])
    mates = {
        mate.conversation_id: mate.name
        for mate in Teammate.objects.filter(conversation__in=[row.conversation_id for row in found])
    }
    for row in found:
        conversation = row.conversation
        own = conversation.owner_id == user.pk
        agents = row.kind == Wake.Kind.AGENT
        yield Timer(
            "wake" if agents else "retry",
            str(row.pk) if agents and own else "",
            _title(conversation),
            conversation.get_absolute_url(),
            row.due_at,
            reason=row.reason,
            whose=mates.get(conversation.pk, ""),
            is_own=own,
        )


def _at_work(user: User, organisation: Organisation) -> Iterator[Timer]:
    """What runs in the background, whose end wakes a conversation of hers."""
    own = Conversation.objects.owned_by(user).filter(organisation=organisation, unlisted=False)
    commands = BackgroundCommand.objects.running().filter(conversation__in=own)
    for command in commands.select_related("conversation__parent").order_by("pk")[:MOST]:
        yield Timer(
            "command",
            command.uid,
            _title(command.conversation),
            command.conversation.get_absolute_url(),
            None,
            reason=" ".join(command.command.split())[:200],
            may_hurry=False,
        )
    agents = Subagent.objects.live().filter(parent__in=own, background=True)
    for each in agents.select_related("parent__parent", "child").order_by("pk")[:MOST]:
        yield Timer(
            "subagent",
            each.child.uid if each.child is not None else "",
            _title(each.parent),
            each.parent.get_absolute_url(),
            None,
            reason=each.description,
            may_hurry=False,
        )


def _briefs(user: User, organisation: Organisation) -> Iterator[Timer]:
    wishes = BriefWish.objects.filter(user=user, organisation=organisation)
    for wish in wishes.filter(next_at__isnull=False):
        yield Timer("brief", "", "", reverse("brief:settings"), wish.next_at)


def _title(conversation: Conversation) -> str:
    return (conversation.parent or conversation).title

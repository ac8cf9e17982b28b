"""Which conversations a rule means, now or soon.

Those of lists: what a subject shows on pages of its own (trials, try-outs) is that subject's to keep, and
what an agent began goes with the conversation above it. Never one that is pinned, at work, waits for somebody
or for a time, or has messages waiting, nor one below which any is, however deep.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, Exists, Max, Min, OuterRef, Q
from django.utils import timezone

from conversations.ancestry import TreeOf, WithAncestors
from conversations.models import BackgroundCommand, Conversation, Run, Wake
from conversations.models.conversation import ConversationQuerySet
from harness.events import WAITS_FOR_WORKER
from keeping.models import Pin

from .models import RetentionRule


def meant_by(
    rule: RetentionRule, *, within: timedelta = timedelta(), only: int | None = None
) -> ConversationQuerySet:
    """Those that go now, or would by then if nobody touches them; the ones longest untouched first.

    Asked of one only, no other tree is looked at.
    """
    untouched = timezone.now() - timedelta(days=rule.days) + within
    found = Conversation.objects.listed().filter(organisation=rule.organisation_id)
    found = found.filter(active_at__lt=untouched)
    if rule.only_archived:
        found = found.filter(archived_at__isnull=False)
    needed = _needed(untouched)
    if only is None:
        needed = needed.filter(organisation=rule.organisation_id)
    else:
        found, needed = found.filter(pk=only), needed.filter(pk__in=TreeOf(only))
    kept = Conversation.objects.filter(pk__in=WithAncestors(needed))
    return found.exclude(Exists(kept.filter(pk=OuterRef("pk")))).order_by("active_at", "pk")


def _needed(untouched: datetime) -> ConversationQuerySet:
    """Of all conversations, whosever and wherever they are: those with which no tree goes."""
    idle = Conversation.Status.IDLE
    touched = Q(active_at__gte=untouched)
    has_work = ~Q(status__in=[idle, Conversation.Status.TERMINATED]) | Q(owes_run=True)
    has_words = Q(queued_count__gt=0)
    waits = Q(stop_reason__in=["requires_action", WAITS_FOR_WORKER], status=idle)
    of_it = {"conversation": OuterRef("pk")}
    others = (
        Exists(Pin.objects.filter(**of_it))
        | Exists(Run.objects.filter(**of_it, state=Run.State.RUNNING))
        | Exists(BackgroundCommand.objects.running().filter(**of_it))
        | Exists(Wake.objects.waiting().filter(**of_it))
    )
    return Conversation.objects.filter(touched | has_work | has_words | waits | others)


@dataclass(frozen=True, slots=True)
class Extent:
    """What a rule would delete today."""

    conversations: int
    people: int
    oldest: datetime | None
    newest: datetime | None


def extent_of(rule: RetentionRule) -> Extent:
    found = meant_by(rule).order_by()
    sums = found.aggregate(
        conversations=Count("pk"),
        people=Count("owner", distinct=True),
        oldest=Min("active_at"),
        newest=Max("active_at"),
    )
    return Extent(**sums)


def goes_at(rule: RetentionRule, conversation: Conversation) -> datetime:
    """If nobody touches it."""
    begins = rule.begins_at or timezone.now()
    return max(conversation.active_at + timedelta(days=rule.days), begins)

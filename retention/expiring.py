"""Which conversations a rule means, now or soon.

Those of lists: what a subject shows on pages of its own (trials, try-outs) is that subject's to keep, and
what an agent began goes with the conversation above it. Never one that is pinned, at work, waits for somebody
or for a time, or has messages waiting.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, Exists, Max, Min, OuterRef, Q
from django.utils import timezone

from conversations.models import Conversation, Run, Wake
from conversations.models.conversation import ConversationQuerySet
from harness.events import WAITS_FOR_WORKER
from keeping.models import Pin

from .models import RetentionRule


def meant_by(rule: RetentionRule, *, within: timedelta = timedelta()) -> ConversationQuerySet:
    """Those that go now, or would by then if nobody touches them; the ones longest untouched first."""
    untouched = timezone.now() - timedelta(days=rule.days) + within
    found = Conversation.objects.listed().filter(organisation=rule.organisation_id)
    found = found.filter(active_at__lt=untouched)
    if rule.only_archived:
        found = found.filter(archived_at__isnull=False)
    return _at_rest(found, untouched).order_by("active_at", "pk")


def _at_rest(found: ConversationQuerySet, untouched: datetime) -> ConversationQuerySet:
    below = Conversation.objects.filter(active_at__gte=untouched)
    kept = (
        Exists(Pin.objects.filter(conversation=OuterRef("pk")))
        | Exists(Run.objects.filter(conversation=OuterRef("pk"), state=Run.State.RUNNING))
        | Exists(Wake.objects.waiting().filter(conversation=OuterRef("pk")))
        | Exists(below.filter(parent=OuterRef("pk")))
        | Exists(below.filter(parent__parent=OuterRef("pk")))
    )
    idle = Conversation.Status.IDLE
    rests = Q(status__in=[idle, Conversation.Status.TERMINATED])
    waits = Q(stop_reason__in=["requires_action", WAITS_FOR_WORKER], status=idle)
    return found.filter(rests, queued_count=0, owes_run=False).exclude(waits).exclude(kept)


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

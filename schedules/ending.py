"""What follows from a run's end for its order: it is paused, others begin, listeners are told. Once for each
run, however often and by whom it is looked at.

Whoever has something to do at an end (mails, a judgement of the result) says so with `at_end`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import Count, Q, QuerySet, Sum
from django.utils import timezone
from django.utils.translation import ngettext

from conversations.models import Conversation
from jobs.apart import each_apart
from jobs.dispatch import dispatch
from jobs.prepared import Prepared, PreparedUpdate
from spending.models import Usage
from webhooks.types import RUN_ENDED

from . import queueing, results
from .auditing import announce_run
from .drafts import MOST_IN_A_CHAIN
from .models import OrderRun, QueueItem, StandingOrder
from .pausing import pause_by_itself
from .projection import STOPPED, last_words
from .running import AT_A_TIME, BEGIN, queue_run

Listener = Callable[[OrderRun], None]
"""Called in the transaction that settles the end, with the run and its order; what it raises undoes it."""

_listeners: list[Listener] = []


def _order_of(run: Any, *, skip_locked: bool) -> QuerySet[StandingOrder]:
    held = StandingOrder.objects.select_for_update(
        of=("self",), no_key=True, skip_locked=skip_locked
    )
    return held.select_related("owner", "organisation").filter(runs=run)


_HELD = Prepared(lambda given: _order_of(given.run, skip_locked=False))
_HELD_IF_FREE = Prepared(lambda given: _order_of(given.run, skip_locked=True))
_UNSETTLED = Prepared(
    lambda given: (
        OrderRun.objects.select_for_update(of=("self",), no_key=True)
        .select_related("conversation")
        .filter(pk=given.run, is_settled=False)
    )
)
_SETTLED = PreparedUpdate(
    lambda given: OrderRun.objects.filter(pk=given.run),
    lambda given: {"is_settled": True, "cost": given.cost},
)
_COUNTED = PreparedUpdate(
    lambda given: StandingOrder.objects.filter(pk=given.order),
    lambda given: {
        "failures": given.failures,
        "repeats": given.repeats,
        "last_digest": given.digest,
    },
)
_QUEUED = Prepared(
    lambda given: OrderRun.objects.queued().filter(order=given.order).values_list("pk")[:1]
)
_FOLLOWERS = Prepared(
    lambda given: (
        StandingOrder.objects.in_force()
        .filter(
            Q(after_outcome=given.outcome) | Q(after_outcome=StandingOrder.After.ANY),
            after=given.order,
        )
        .order_by("pk")
    )
)
_CHILDREN = Prepared(
    lambda given: (
        Conversation.objects.filter(parent=given.conversation).order_by().values_list("pk")
    )
)
_USED = Prepared(
    lambda given: (
        Usage.objects.filter(conversation=given.conversation)
        .order_by()
        .values("conversation")
        .annotate(total=Sum("cost"), calls=Count("id"), priced=Count("cost"))
        .values_list("conversation", "total", "calls", "priced")
    )
)
"""Asked for each run that ends, of which there may be a thousand in a minute."""


def at_end(listener: Listener) -> None:
    """Have it told of every run's end from now on; once, however often it is said."""
    if listener not in _listeners:
        _listeners.append(listener)


def settle_ends(now: datetime | None = None) -> int:
    """Settle every end that nobody has; how many."""
    _end_without_conversation(now or timezone.now())
    waiting = OrderRun.objects.filter(is_settled=False).order_by("pk")
    found = list(waiting.values_list("pk", flat=True)[:AT_A_TIME])
    told = "the end of run %s of a schedule was not settled"
    return each_apart(partial(settle, now=now, wait=False), found, told=told)


def settle(run_id: int, now: datetime | None = None, *, wait: bool = True) -> None:
    """Nothing, if somebody has settled it; without `wait` also while somebody holds its order, so that looks
    at the same time do not stand in line behind each other."""
    now = now or timezone.now()
    with transaction.atomic():
        order = (_HELD if wait else _HELD_IF_FREE).first(run=run_id)
        if order is None:
            return  # whoever holds it may hold the run as well, for as long
        # Its words are copied: whoever takes them out holds the row as well (`forgetting`).
        run = _UNSETTLED.first(run=run_id)
        if run is None:
            return
        run.order = order
        run.is_settled = True
        run.cost = _cost(run.conversation_id)
        _SETTLED.run(run=run.pk, cost=run.cost)
        _count(order, run)
        queueing.settle_items(run, now)
        _pause_if_need_be(order, now)
        _COUNTED.run(
            order=order.pk,
            failures=order.failures,
            repeats=order.repeats,
            digest=order.last_digest,
        )
        _begin_followers(order, run)
        if run.began:
            announce_run(run, RUN_ENDED)
        results.want(run)
        for listener in _listeners:
            listener(run)
        if run.began:
            queueing.begin_pass(order, now)
        for (waiting,) in _QUEUED.all(order=order.pk):
            dispatch(BEGIN, run_id=waiting)


def _count(order: StandingOrder, run: OrderRun) -> None:
    if run.state == OrderRun.State.FAILED:
        # Whoever stops a run has not seen it fail.
        order.failures += run.error != STOPPED
        return
    order.failures = 0
    said = last_words(run.conversation) if run.conversation is not None else ""
    digest = hashlib.sha256(" ".join(said.split()).encode()).hexdigest()
    order.repeats = order.repeats + 1 if digest == order.last_digest else 0
    order.last_digest = digest


def _pause_if_need_be(order: StandingOrder, now: datetime) -> None:
    if 0 < order.failures_to_pause <= order.failures:
        words = ngettext(
            "%(count)d run failed.", "%(count)d runs failed one after the other.", order.failures
        ) % {"count": order.failures}
        pause_by_itself(
            order, StandingOrder.Pause.FAILURES, now=now, words=words, error="unknown_error"
        )
    elif 0 < order.idle_to_pause <= order.repeats:
        words = ngettext(
            "%(count)d run said the same as the one before.",
            "%(count)d runs in a row said the same as the one before.",
            order.repeats,
        ) % {"count": order.repeats}
        pause_by_itself(order, StandingOrder.Pause.IDLE, now=now, words=words)


def _begin_followers(order: StandingOrder, run: OrderRun) -> None:
    wanted = {
        OrderRun.State.SUCCEEDED: StandingOrder.After.SUCCESS,
        OrderRun.State.FAILED: StandingOrder.After.FAILURE,
    }[OrderRun.State(run.state)]
    for follower in _FOLLOWERS.all(order=order.pk, outcome=wanted.value):
        if run.depth + 1 < MOST_IN_A_CHAIN:
            queue_run(follower, OrderRun.Trigger.AFTER, key=run.uid, depth=run.depth + 1)


def _cost(conversation_id: int | None) -> Decimal | None:
    """Of the conversation and of those that it started."""
    if conversation_id is None:
        return None
    family = [conversation_id]
    generation = [pk for (pk,) in _CHILDREN.all(conversation=conversation_id)]
    if not generation:
        # One that began no others: there may be a thousand of those in a minute.
        found = _USED.first(conversation=conversation_id)
        return found[1] if found is not None and found[2] == found[3] else None
    while generation and len(family) < AT_A_TIME:
        family += generation
        below = Conversation.objects.filter(parent__in=generation)
        generation = list(below.values_list("pk", flat=True))
    rows = Usage.objects.filter(conversation__in=family).order_by()
    used: dict[str, Any] = rows.aggregate(
        total=Sum("cost"), calls=Count("id"), priced=Count("cost")
    )
    return used["total"] if used["calls"] == used["priced"] else None


def _end_without_conversation(now: datetime) -> None:
    """Somebody deleted what was at work, or put it away."""
    gone = OrderRun.objects.open().filter(conversation=None)
    gone.update(state=OrderRun.State.FAILED, error=STOPPED, ended_at=now, is_settled=False)


def prune(now: datetime | None = None, *, days: int) -> int:
    """Forget runs that ended so long ago, some at a time; how many. Their conversations stay."""
    before = (now or timezone.now()) - timedelta(days=days)
    old = OrderRun.objects.filter(ended_at__lt=before, is_settled=True).order_by("pk")
    keys = list(old.values_list("pk", flat=True)[:AT_A_TIME])
    items = QueueItem.objects.filter(ended_at__lt=before).order_by("pk")
    left = list(items.values_list("pk", flat=True)[:AT_A_TIME])
    if left:
        QueueItem.objects.filter(pk__in=left).delete()
    return OrderRun.objects.filter(pk__in=keys).delete()[0] if keys else 0

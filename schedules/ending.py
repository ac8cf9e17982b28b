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
from django.db.models import Count, Q, Sum
from django.utils import timezone
from django.utils.translation import ngettext

from conversations.models import Conversation
from jobs.apart import each_apart
from jobs.dispatch import dispatch
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
        held = StandingOrder.objects.select_for_update(
            of=("self",), no_key=True, skip_locked=not wait
        )
        order = held.select_related("owner", "organisation").filter(runs=run_id).first()
        if order is None:
            return  # whoever holds it may hold the run as well, for as long
        # Its words are copied: whoever takes them out holds the row as well (`forgetting`).
        ended = OrderRun.objects.select_for_update(no_key=True)
        run = ended.filter(pk=run_id, is_settled=False).first()
        if run is None:
            return
        run.order = order
        run.is_settled = True
        run.cost = _cost(run.conversation_id)
        run.save(update_fields=["is_settled", "cost"])
        _count(order, run)
        queueing.settle_items(run, now)
        _pause_if_need_be(order, now)
        order.save(update_fields=["failures", "repeats", "last_digest"])
        _begin_followers(order, run)
        if run.began:
            announce_run(run, RUN_ENDED)
        results.want(run)
        for listener in _listeners:
            listener(run)
        if run.began:
            queueing.begin_pass(order, now)
        for waiting in OrderRun.objects.queued().filter(order=order)[:1]:
            dispatch(BEGIN, run_id=waiting.pk)


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
    either = Q(after_outcome=wanted) | Q(after_outcome=StandingOrder.After.ANY)
    for follower in StandingOrder.objects.in_force().filter(either, after=order).order_by("pk"):
        if run.depth + 1 < MOST_IN_A_CHAIN:
            queue_run(follower, OrderRun.Trigger.AFTER, key=run.uid, depth=run.depth + 1)


def _cost(conversation_id: int | None) -> Decimal | None:
    """Of the conversation and of those that it started."""
    generation = [conversation_id] if conversation_id is not None else []
    family: list[int] = []
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

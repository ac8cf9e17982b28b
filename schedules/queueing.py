"""The work queue of an order: a pass takes one item and is an ordinary run; what is added meanwhile waits for
the next. A queue with nothing in it begins no run, so it asks no model.

Items that fail are tried again by the rule of dead letters: what passes by itself, after 1, 2 and 4 minutes;
everything else not. Follow-ups go on to a depth and no further, and of one run there are a few at most.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from deadletters.models import DeadLetter
from deadletters.projection import cause_of
from harness.content import Text
from harness.events import UserMessage
from jobs.apart import each_apart
from jobs.dispatch import dispatch
from jobs.prepared import Given, Prepared

from .models import OrderRun, QueueItem, StandingOrder

BEGIN = "schedules.begin"
"""The job that begins a run."""
MOST_WAITING = 1_000
"""Items of one order that wait; further ones are refused."""
MOST_FOLLOW_UPS = 3
"""Of one run."""
TEXT_LIMIT = 8_000
"""Characters of an item."""
PAUSES = (timedelta(minutes=1), timedelta(minutes=2), timedelta(minutes=4))
"""Before the second try, the third and the last."""
AT_A_TIME = 200


_TAKEN = Prepared(
    lambda given: QueueItem.objects.filter(run=given.run, state=QueueItem.State.TAKEN)
)
"""Asked for each run that ends."""


@Prepared
def _orders_with_work(given: Given) -> QuerySet[StandingOrder, tuple[int]]:
    """Asked every few seconds."""
    ready = QueueItem.objects.waiting().filter(order=OuterRef("pk"), not_before__lte=given.now)
    busy = OrderRun.objects.filter(
        order=OuterRef("pk"), state__in=[OrderRun.State.QUEUED, OrderRun.State.STARTED]
    )
    orders = StandingOrder.objects.in_force().filter(works_queue=True, cron="")
    found = orders.filter(Exists(ready), ~Exists(busy)).order_by("pk")
    return found.values_list("pk")[:AT_A_TIME]


def deepest() -> int:
    return int(settings.AGENTSITE_QUEUE_DEPTH)


def has_work(order: StandingOrder, now: datetime) -> bool:
    return QueueItem.objects.ready(now).filter(order=order).exists()


def take(run: OrderRun, now: datetime) -> QueueItem | None:
    """The item that this run is to work on, in the transaction that begins it, under the order's lock."""
    item = QueueItem.objects.ready(now).filter(order=run.order).select_for_update().first()
    if item is None:
        return None
    item.state, item.run, item.tries = QueueItem.State.TAKEN, run, item.tries + 1
    item.save(update_fields=["state", "run", "tries"])
    return item


def with_item(messages: list[UserMessage], item: QueueItem) -> list[UserMessage]:
    """The item at the end of the last message, so that one turn has both. What strangers had a part in marks
    all of that message."""
    *before, last = messages
    said = {
        "content": (*last.content, Text(text=item_text(item))),
        "untrusted_by": last.untrusted_by or item.untrusted_by,
    }
    return [*before, last.model_copy(update=said)]


def item_text(item: QueueItem) -> str:
    """As the message says it that has it worked on."""
    return f"Work on this item of your queue ({item.uid}):\n\n{item.text}"


def settle_items(run: OrderRun, now: datetime) -> None:
    """What became of the run's item, and the next pass if something waits. In the transaction that settles
    the run's end, under the order's lock."""
    for item in _TAKEN.all(run=run.pk):
        item.words, item.error = run.words, run.error
        passing = cause_of(run.error) == DeadLetter.Cause.TRANSIENT if run.error else False
        if run.state == OrderRun.State.SUCCEEDED:
            item.state, item.ended_at = QueueItem.State.DONE, now
        elif passing and item.tries <= len(PAUSES):
            item.state = QueueItem.State.WAITING
            item.not_before = now + PAUSES[item.tries - 1]
        else:
            item.state, item.ended_at = QueueItem.State.FAILED, now
        item.save(update_fields=["state", "words", "error", "not_before", "ended_at"])


def begin_pass(order: StandingOrder, now: datetime) -> OrderRun | None:
    """A run for what waits, unless one is about to begin or at work. Under the order's lock."""
    from_now = order.archived_at is None and order.paused_at is None and order.works_queue
    if not from_now or not has_work(order, now):
        return None
    busy = OrderRun.objects.filter(
        order=order, state__in=[OrderRun.State.QUEUED, OrderRun.State.STARTED]
    )
    if busy.exists():
        return None
    run = OrderRun.objects.create(
        order=order, agent_version_id=order.agent_version_id, trigger=OrderRun.Trigger.QUEUE
    )
    dispatch(BEGIN, run_id=run.pk)
    return run


def put_off(order: StandingOrder, now: datetime) -> None:
    """No run of it could begin: what waits is not tried with every look at the clock."""
    QueueItem.objects.ready(now).filter(order=order).update(not_before=now + PAUSES[-1])


def begin_waiting(now: datetime | None = None) -> int:
    """Passes of orders without a timetable, whose items wait for nothing but their own time; how many were
    looked at. One query where none does. Those with a timetable begin at its times."""
    now = now or timezone.now()
    found = [pk for (pk,) in _orders_with_work.all(now=now)]
    told = "no pass of schedule %s could begin"
    return each_apart(partial(_begin_pass_of, now), found, told=told)


def _begin_pass_of(now: datetime, order_id: int) -> None:
    with transaction.atomic():
        rows = StandingOrder.objects.select_for_update(no_key=True).filter(pk=order_id)
        order = rows.first()
        if order is not None:
            begin_pass(order, now)

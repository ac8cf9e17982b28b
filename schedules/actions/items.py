"""People and programs put work into the queue of an order of theirs, take it out, have it tried again; a run
asks for follow-ups of its own item."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import User
from conversations.models import Conversation
from harness.errors import Conflict, Invalid, LimitReached, NotFound
from schedules.access import own_order
from schedules.models import OrderRun, QueueItem, StandingOrder
from schedules.queueing import MOST_FOLLOW_UPS, MOST_WAITING, TEXT_LIMIT, begin_pass, deepest

KEY_LIMIT = 100


def add_item(
    *,
    actor: User,
    order: StandingOrder,
    text: str,
    key: str = "",
    by_program: bool = False,
    now: datetime | None = None,
) -> QueueItem:
    """An item that waits; of an order without a timetable its pass begins at once. With a `key` given
    before, the item that has it. Raises NotFound, Invalid, LimitReached, Conflict."""
    now = now or timezone.now()
    text = _checked(text)
    if len(key) > KEY_LIMIT or not (key == "" or key.isprintable()):
        raise Invalid(
            _("A key has at most %(limit)d printable characters.") % {"limit": KEY_LIMIT},
            field="key",
        )
    with transaction.atomic():
        held = own_order(actor, order)
        if held.archived_at is not None or not held.works_queue:
            raise Conflict(
                _("This schedule works no queue."),
                hint=_("Switch its work queue on, or choose another schedule."),
            )
        if key:
            known = QueueItem.objects.filter(order=held, key=key).first()
            if known is not None:
                return known
        _require_room(held)
        source = QueueItem.Source.PROGRAM if by_program else QueueItem.Source.PERSON
        item = QueueItem.objects.create(
            order=held, text=text, source=source, added_by=actor, key=key, not_before=now
        )
        if not held.cron:
            begin_pass(held, now)
    return item


def add_follow_up(
    *, conversation: Conversation, text: str, untrusted_by: str = "", now: datetime | None = None
) -> QueueItem:
    """Of the item that the conversation works on. Raises NotFound where it works on none, and LimitReached in
    words for the agent: a queue does not feed itself for ever."""
    now = now or timezone.now()
    text = _checked(text)
    with transaction.atomic():
        item = _worked_on(conversation)
        if item.depth >= deepest():
            raise LimitReached(
                f"This item is a follow-up of depth {item.depth} itself; follow-ups go no deeper. Finish "
                "here, and say in your answer what remains, so that a person can ask for it."
            )
        if item.follow_ups.filter(created_at__gte=item.run.created_at).count() >= MOST_FOLLOW_UPS:  # type: ignore[union-attr]
            raise LimitReached(
                f"At most {MOST_FOLLOW_UPS} follow-ups can be asked for in one run. Say in your answer "
                "what remains."
            )
        _require_room(item.order)
        return QueueItem.objects.create(
            order=item.order,
            text=text,
            source=QueueItem.Source.AGENT,
            depth=item.depth + 1,
            follows=item,
            untrusted_by=untrusted_by[:300],
            not_before=now,
        )


def drop_item(*, actor: User, item: QueueItem) -> QueueItem:
    """Take it out of the queue. Raises NotFound, and Conflict for one that waits no more."""
    with transaction.atomic():
        held = _own(actor, item)
        if held.state != QueueItem.State.WAITING:
            raise Conflict(_("This item waits no more."))
        held.state, held.ended_at = QueueItem.State.DROPPED, timezone.now()
        held.save(update_fields=["state", "ended_at"])
    return held


def retry_item(*, actor: User, item: QueueItem, now: datetime | None = None) -> QueueItem:
    """Have one that failed, or was taken out, wait again with all its tries. Raises NotFound, Conflict."""
    now = now or timezone.now()
    with transaction.atomic():
        held = _own(actor, item)
        if held.state not in {QueueItem.State.FAILED, QueueItem.State.DROPPED}:
            raise Conflict(_("Only what failed or was taken out is tried again."))
        _require_room(held.order)
        held.state, held.ended_at, held.tries = QueueItem.State.WAITING, None, 0
        held.not_before = now
        held.save(update_fields=["state", "ended_at", "tries", "not_before"])
        if not held.order.cron:
            begin_pass(held.order, now)
    return held


def _own(actor: User, item: QueueItem) -> QueueItem:
    found = QueueItem.objects.visible_to(actor).filter(pk=item.pk).select_related("order").first()
    if found is None:
        raise NotFound(_("There is no such item."))
    order = own_order(actor, found.order)
    held = QueueItem.objects.select_for_update(no_key=True).get(pk=item.pk)
    held.order = order
    return held


def _worked_on(conversation: Conversation) -> QueueItem:
    run = OrderRun.objects.open().filter(conversation=conversation).first()
    if run is not None:
        StandingOrder.objects.select_for_update(no_key=True).filter(pk=run.order_id).first()
    taken = QueueItem.objects.filter(run=run, state=QueueItem.State.TAKEN) if run else None
    item = taken.select_related("order", "run").first() if taken is not None else None
    if item is None:
        raise NotFound("This conversation works on no item of a queue.")
    return item


def _require_room(order: StandingOrder) -> None:
    if QueueItem.objects.waiting().filter(order=order).count() >= MOST_WAITING:
        raise LimitReached(
            _("%(most)d items wait in this queue already.") % {"most": MOST_WAITING},
            hint=_("Wait until some are done, or take some out."),
        )


def _checked(text: str) -> str:
    text = text.replace("\r\n", "\n").strip()
    if not text or len(text) > TEXT_LIMIT or "\0" in text:
        raise Invalid(
            _("An item has 1 to %(limit)d characters.") % {"limit": TEXT_LIMIT}, field="text"
        )
    return text

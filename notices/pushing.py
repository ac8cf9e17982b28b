"""Pushes as they are put down, taken up, tried again and dropped. Tables only; no request.

What is to be pushed becomes rows in the transaction that claims it, so a process that dies loses nothing: a
push whose sender died is due again when its time is over. Should the dead one have sent it, the browser gets
it once more under the same `tag` and shows one. What it says is put together each time of what is so then, so
that nobody is called to what was answered meanwhile.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from accounts.models import User
from accounts.sessions import user_of_session
from harness.errors import NotConfigured
from jobs.dispatch import dispatch
from jobs.metrics import PUSHES

from .claims import claim_items
from .models import Channel, Device, Kind, NoticeWish, Push, WaitNotice, When
from .pushkeys import authorization, public_text, server_key
from .pushrequests import Answer, encrypted
from .pushwords import words_of
from .waiting import Item, concerns, due, offered, wishes_of

logger = logging.getLogger(__name__)

SEND = "notices.send_pushes"
AT_ONCE = 50
"""That one process sends at the same time; all of them end within the lease."""
LEASE = timedelta(seconds=60)
"""What is taken up and not heard of for so long is taken up anew."""
LONGEST = timedelta(hours=3)
"""After which what could not be sent is dropped; it is on the pages all the same."""
MOST_TRIES = 6
FIRST_RETRY = 30.0
"""Seconds; each further one takes four times as long."""
LONGEST_RETRY = 3_600.0
SENT = "sent"
SETTLED = "settled"
"""What it was about was answered or seen before it was sent."""
GONE = frozenset({404, 410})
"""The push service has no such browser any more."""
AGAIN = frozenset({408, 425, 429})


@dataclass(frozen=True, slots=True)
class Claimed:
    """A push to be sent now, encrypted for its browser and signed."""

    push_id: int
    device_id: int
    kind: str
    endpoint: str
    body: bytes
    headers: dict[str, str]


def plan_pushes(now: datetime | None = None) -> int:
    """Put down a push for everybody about what they are to be told; how many things that were."""
    if settings.AGENTSITE_PUSH_SECONDS <= 0 or not Device.objects.exists():
        return 0
    now = now or timezone.now()
    count = 0
    for user, items in due(now, Channel.PUSH).items():
        for kind in (Kind.WAITS, Kind.DONE):
            of_kind = [item for item in items if item.kind == kind]
            if of_kind:
                count += _plan(user, kind, of_kind, now)
    return count


def _plan(user: User, kind: Kind, items: list[Item], now: datetime) -> int:
    with transaction.atomic():
        batch, mine = claim_items(user, items, channel=Channel.PUSH)
        if mine:
            _put_down(user, kind, now, batch=batch)
    return len(mine)


def tell_of(user: User, kind: Kind, path: str, now: datetime | None = None) -> None:
    """Push to her browsers, if she wants it, what is no notice and leads to `path`. In the transaction of
    what happened."""
    wish = NoticeWish.objects.filter(user=user).first() or NoticeWish(user=user)
    if wish.when(kind, Channel.PUSH) != When.NEVER:
        _put_down(user, kind, now or timezone.now(), path=path)


def _put_down(user: User, kind: Kind, now: datetime, *, batch: str = "", path: str = "") -> None:
    if settings.AGENTSITE_PUSH_SECONDS <= 0:
        return
    pushes = [
        Push(
            device=device,
            kind=kind,
            batch=batch,
            path=path,
            next_at=now,
            expires_at=now + LONGEST,
        )
        for device in Device.objects.filter(user=user)
    ]
    Push.objects.bulk_create(pushes)
    if pushes:
        dispatch(SEND)


def claim_pushes(now: datetime | None = None) -> tuple[int, list[Claimed]]:
    """Take up what is due: how many pushes that were, and those of them that are to be sent."""
    now = now or timezone.now()
    with transaction.atomic():
        due_now = Push.objects.due_at(now).select_related("device__user")
        locked = due_now.select_for_update(of=("self",), skip_locked=True, no_key=True)
        rows = list(locked[:AT_ONCE])
        Push.objects.filter(pk__in=[row.pk for row in rows]).update(
            tries=F("tries") + 1, next_at=now + LEASE
        )
    return len(rows), list(_ready(rows, now)) if rows else []


def _ready(rows: list[Push], now: datetime) -> Iterable[Claimed]:
    try:
        key = server_key()
    except NotConfigured as missing:
        logger.warning("no push can be sent: %s", missing.message)
        for row in rows:
            _put_off(row, now, code="no_key")
        return
    items = _items_of(rows, now)
    wishes = wishes_of(row.device.user_id for row in rows)
    for row in rows:
        user = row.device.user
        wish = wishes.get(user.pk) or NoticeWish(user=user)
        try:
            ready = _made(row, key, wish, items.get(row.batch, []), now)
        except Exception:
            # One browser's push must not keep the others from theirs.
            logger.exception("the push %s could not be made", row.pk)
            _drop(row.pk, row.device_id, row.kind, "unmade", now)
            continue
        if ready is not None:
            yield ready


def _made(
    row: Push, key: EllipticCurvePrivateKey, wish: NoticeWish, items: list[Item], now: datetime
) -> Claimed | None:
    device = row.device
    if user_of_session(device.session_key) != device.user or device.server_key != public_text(key):
        # She signed out, or her session ended in another way; or no push of ours reaches it any more.
        Device.objects.filter(pk=device.pk).delete()
        PUSHES.labels(row.kind, "signed_out").inc()
        return None
    if row.kind != Kind.TEST and (end := wish.quiet_end(now)) is not None:
        Push.objects.filter(pk=row.pk).update(
            next_at=end, expires_at=end + LONGEST, tries=F("tries") - 1
        )
        return None
    if now > row.expires_at:
        _drop(row.pk, device.pk, row.kind, "too_late", now)
        return None
    still = [item for item in items if concerns(device.user, item, wish, Channel.PUSH)]
    if row.batch and not still:
        _drop(row.pk, device.pk, row.kind, SETTLED, now)
        return None
    told = words_of(row, device.user, wish, still)
    return Claimed(
        row.pk,
        device.pk,
        row.kind,
        device.endpoint,
        encrypted(
            json.dumps(told, ensure_ascii=False).encode(), p256dh=device.p256dh, auth=device.auth
        ),
        authorization(key, device.endpoint) | _delivery(row, now),
    )


def _delivery(row: Push, now: datetime) -> dict[str, str]:
    """How long a push service is to try, how soon, and that of two of these one is enough (RFC 8030)."""
    seconds = max(60, round((row.expires_at - now).total_seconds()))
    urgency = "normal" if row.kind in {Kind.DONE, Kind.BRIEF} else "high"
    return {"TTL": str(seconds), "Urgency": urgency, "Topic": f"p{row.pk}"}


def _items_of(rows: list[Push], now: datetime) -> dict[str, list[Item]]:
    """What of each batch is still so; asked of all apps once."""
    batches = {row.batch for row in rows if row.batch}
    if not batches:
        return {}
    told = {
        (notice.user_id, notice.subject): notice.batch
        for notice in WaitNotice.objects.filter(batch__in=batches)
    }
    found: dict[str, list[Item]] = {}
    for item, user in offered(now):
        batch = told.pop((user.pk, item.subject), "")  # two apps may offer the same
        if batch:
            found.setdefault(batch, []).append(item)
    return found


def record_push(claimed: Claimed, answer: Answer, now: datetime | None = None) -> None:
    """Keep what came of it: sent, to be tried again, or dropped with a code."""
    now = now or timezone.now()
    status = answer.status
    if status is not None and 200 <= status < 300:
        _drop(claimed.push_id, claimed.device_id, claimed.kind, SENT, now)
    elif status in GONE:
        Device.objects.filter(pk=claimed.device_id).delete()
        PUSHES.labels(claimed.kind, "gone").inc()
    elif answer.code == "address" or (status is not None and status < 500 and status not in AGAIN):
        _drop(claimed.push_id, claimed.device_id, claimed.kind, answer.word, now)
    else:
        row = Push.objects.filter(pk=claimed.push_id).first()
        if row is not None:
            _put_off(row, now, code=answer.word, asked=answer.retry_after)


def _put_off(row: Push, now: datetime, *, code: str, asked: float = 0.0) -> None:
    tries = Push.objects.filter(pk=row.pk).values_list("tries", flat=True).first()
    if tries is None:
        return  # with its browser
    seconds = max(min(FIRST_RETRY * 4.0 ** (tries - 1), LONGEST_RETRY), asked)
    due_at = now + timedelta(seconds=min(seconds, LONGEST.total_seconds()))
    if tries >= MOST_TRIES or due_at > row.expires_at:
        _drop(row.pk, row.device_id, row.kind, code, now)
        return
    Push.objects.filter(pk=row.pk).update(next_at=due_at)
    Device.objects.filter(pk=row.device_id).update(last_code=code, last_at=now)
    PUSHES.labels(row.kind, "failed").inc()


def _drop(push_id: int, device_id: int, kind: str, code: str, now: datetime) -> None:
    """It is over with it: sent, given up, or nothing is to be told any more."""
    Push.objects.filter(pk=push_id).delete()
    if code != SETTLED:
        Device.objects.filter(pk=device_id).update(last_code=code, last_at=now)
    PUSHES.labels(kind, code if code in {SENT, SETTLED} else "dropped").inc()
    if code not in {SENT, SETTLED}:
        logger.info("a push to device %s was dropped: %s", device_id, code)

"""What waits for people or has ended, as apps offer it, and for whom it is news: not told of it yet by this
channel, not seen by her, and nothing that she wants left alone.

Who may answer is not decided here. The mails are `mailing`'s, pushes `pushing`'s, webhooks `announcing`'s.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

from django.db.models import F, Model, Q, QuerySet, Window
from django.db.models.functions import RowNumber
from django.utils import timezone

from accounts.models import User
from audit.models import AuditEntry
from conversations.models import Conversation

from .models import (
    LONGEST_MAIL_MINUTES,
    Channel,
    Device,
    Kind,
    NoticeWish,
    Seen,
    WaitNotice,
    When,
)

Row = TypeVar("Row", bound=Model)

NEWS = timedelta(minutes=LONGEST_MAIL_MINUTES, days=1)
"""What waits longer is no news; it stays in the queue."""
AT_A_TIME = 1_000
"""Things that one look considers (`in_turn`)."""
MOST_TRIES = 5
"""At one mail that the mail server refuses."""


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that waits or has ended, as people are told of it."""

    subject: str
    """Id of the call, and how often it was asked."""
    conversation: Conversation
    tool: str
    since: datetime
    link: str
    may_answer: bool = False
    """Whoever offers it has seen to it that those it names may answer."""
    root_id: int | None = None
    """Where it is shown as well: who has opened that one has seen it."""
    approval_uid: str = ""
    """An entry of the person's in the audit log about it means that she has seen it."""
    kind: Kind = Kind.WAITS
    is_seen: bool = False
    """Whoever offers it knows that she has seen it."""


Waiting = Callable[[datetime], Iterable[tuple[Item, User]]]
"""What waits at this time, and for whom: at most `AT_A_TIME` things, none older than `NEWS`."""

_waiting: list[Waiting] = []


def notify_of(waiting: Waiting) -> None:
    """Have an app's things that wait told of from now on; once, however often it is said."""
    if waiting not in _waiting:
        _waiting.append(waiting)


def in_turn(
    rows: QuerySet[Row], *, whose: str, since: str, most: int = AT_A_TIME, newest: bool = False
) -> Iterable[Row]:
    """The first of what waits: each person's oldest, then each one's next; `newest`: the other way round.
    However much there is of one, everybody else's is among them. `whose` and `since` name columns."""
    by = [F(since).desc(), F("pk").desc()] if newest else [F(since).asc(), F("pk").asc()]
    turn = Window(RowNumber(), partition_by=F(whose), order_by=by)
    return rows.annotate(turn=turn).order_by("turn", *by)[:most]


def mark_seen(user: User, conversation: Conversation) -> None:
    """Remember that the person opened a conversation while it waits: she need not be told of it."""
    if conversation.waits_for_person:
        Seen.objects.update_or_create(
            user=user, conversation=conversation, defaults={"seen_at": timezone.now()}
        )


def due(now: datetime, channel: str = Channel.MAIL) -> dict[User, list[Item]]:
    """Whom to tell of what by this channel, the longest waiting first. In her quiet hours of nothing: what
    still waits when they end is told then, together."""
    candidates = offered(now)
    notified = _notified((item.subject for item, _user in candidates), channel)
    reached = _reached({user for _item, user in candidates}, channel)
    wishes = wishes_of({user.pk for user in reached})
    found: defaultdict[User, list[Item]] = defaultdict(list)
    for item, user in sorted(candidates, key=lambda pair: pair[0].since):
        if user not in reached or (user.pk, item.subject) in notified:
            continue
        wish = wishes.get(user.pk) or NoticeWish(user=user)
        if (
            item.since <= now - wish.after(channel)
            and wish.quiet_end(now) is None
            and concerns(user, item, wish, channel)
        ):
            found[user].append(item)
    return dict(found)


def offered(now: datetime) -> list[tuple[Item, User]]:
    """All that waits or has ended, told or not."""
    return [pair for waiting in _waiting for pair in waiting(now)]


def wishes_of(users: Iterable[int]) -> dict[int, NoticeWish]:
    """Of those who have said so, by their keys."""
    return {wish.user_id: wish for wish in NoticeWish.objects.filter(user__in=set(users))}


def concerns(user: User, item: Item, wish: NoticeWish, channel: str) -> bool:
    """Whether she wants to be told of it by this channel, may know of it, and does not know it yet."""
    when = wish.when(item.kind, channel)
    if when == When.NEVER or not _may_answer(user, item):
        return False
    return when == When.ALWAYS or not _has_seen(user, item)


def is_reachable(user: User) -> bool:
    """Whether there is any way to tell her of something."""
    if not user.is_active or user.is_service:
        return False
    if user.email or Device.objects.filter(user=user).exists():
        return True
    return NoticeWish.objects.by_webhook().filter(user=user).exists()


def may_be_mailed(user: User) -> bool:
    return user.is_active and bool(user.email) and not user.is_service


def _reached(users: set[User], channel: str) -> set[User]:
    if channel == Channel.MAIL:
        return {user for user in users if may_be_mailed(user)}
    if channel == Channel.WEBHOOK:
        wanting = NoticeWish.objects.by_webhook().filter(user__in=users)
        keys = set(wanting.values_list("user_id", flat=True))
        return {user for user in users if user.is_active and user.pk in keys}
    with_devices = set(
        Device.objects.filter(user__in=users).order_by().values_list("user_id", flat=True)
    )
    return {user for user in users if user.is_active and user.pk in with_devices}


def _may_answer(user: User, item: Item) -> bool:
    if item.may_answer:
        return True
    return Conversation.objects.visible_to(user).filter(pk=item.conversation.pk).exists()


def _has_seen(user: User, item: Item) -> bool:
    if item.is_seen:
        return True
    looked = Q(conversation=item.conversation)
    if item.root_id is not None:
        looked |= Q(conversation=item.root_id)
    if item.approval_uid:
        looked_at = AuditEntry.objects.filter(
            approval_uid=item.approval_uid, actor=user, at__gte=item.since
        )
        if looked_at.exists():
            return True
    return Seen.objects.filter(looked, user=user, seen_at__gte=item.since).exists()


def _notified(subjects: Iterable[str], channel: str) -> set[tuple[int, str]]:
    """Who was told of what by this channel, or will not be any more."""
    found = WaitNotice.objects.filter(subject__in=set(subjects), channel=channel)
    done = found.exclude(batch="", tries__lt=MOST_TRIES)
    return set(done.values_list("user_id", "subject"))

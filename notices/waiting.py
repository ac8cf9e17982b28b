"""What waits for people, as apps offer it, and for whom it is news: not told of it yet, and not seen by her.

Who may answer is not decided here. The mails are `mailing`'s.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Q
from django.utils import timezone

from accounts.models import User
from audit.models import AuditEntry
from conversations.models import Conversation, Preference
from conversations.models.preference import DEFAULT_MAIL_MINUTES, LONGEST_MAIL_MINUTES

from .models import Seen, WaitNotice

NEWS = timedelta(minutes=LONGEST_MAIL_MINUTES, days=1)
"""What waits longer is no news; it stays in the queue."""
AT_A_TIME = 1_000
"""Things that one look considers, the oldest first."""
MOST_TRIES = 5
"""At one mail that the mail server refuses."""


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that waits, as a mail tells of it."""

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


Waiting = Callable[[datetime], Iterable[tuple[Item, User]]]
"""What waits at this time, and for whom: at most `AT_A_TIME` things, none older than `NEWS`."""

_waiting: list[Waiting] = []


def notify_of(waiting: Waiting) -> None:
    """Have an app's things that wait told of from now on; once, however often it is said."""
    if waiting not in _waiting:
        _waiting.append(waiting)


def mark_seen(user: User, conversation: Conversation) -> None:
    """Remember that the person opened a conversation while it waits: she need not be told of it."""
    if conversation.waits_for_person:
        Seen.objects.update_or_create(
            user=user, conversation=conversation, defaults={"seen_at": timezone.now()}
        )


def due(now: datetime) -> dict[User, list[Item]]:
    """Whom to tell of what, the longest waiting first."""
    candidates = [pair for waiting in _waiting for pair in waiting(now)]
    notified = _notified(item.subject for item, _user in candidates)
    wishes = {
        preference.user_id: preference
        for preference in Preference.objects.filter(user__in={user for _item, user in candidates})
    }
    found: defaultdict[User, list[Item]] = defaultdict(list)
    for item, user in sorted(candidates, key=lambda pair: pair[0].since):
        wish = wishes.get(user.pk)
        minutes = wish.mail_after_minutes if wish else DEFAULT_MAIL_MINUTES
        if (
            (wish is None or wish.mail_when_waiting)
            and item.since <= now - timedelta(minutes=minutes)
            and (user.pk, item.subject) not in notified
            and _may_answer(user, item)
            and not _has_seen(user, item)
        ):
            found[user].append(item)
    return dict(found)


def is_reachable(user: User) -> bool:
    return user.is_active and bool(user.email) and not user.is_service


def _may_answer(user: User, item: Item) -> bool:
    if item.may_answer:
        return True
    return Conversation.objects.visible_to(user).filter(pk=item.conversation.pk).exists()


def _has_seen(user: User, item: Item) -> bool:
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


def _notified(subjects: Iterable[str]) -> set[tuple[int, str]]:
    """Who was told of what, or will not be any more."""
    found = WaitNotice.objects.filter(subject__in=set(subjects))
    done = found.exclude(batch="", tries__lt=MOST_TRIES)
    return set(done.values_list("user_id", "subject"))

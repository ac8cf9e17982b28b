"""Mails about what waits for people: whom, about what, and never twice about the same thing.

A mail names the conversation and the tool, and leads to a page that asks who one is; what a call would
do is read there. Who may answer is not decided here.
"""

from __future__ import annotations

import logging
import smtplib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.core.mail import EmailMessage
from django.db.models import F, Q
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone, translation
from django.utils.translation import ngettext

from accounts.models import User
from audit.models import AuditEntry
from harness.events import RequiresAction, SessionStatusIdle
from harness.ids import new_id
from jobs.metrics import MAILS
from tools_app.questions import TOOL as QUESTIONS

from .models import Conversation, Event, Preference, Seen, WaitNotice
from .models.preference import DEFAULT_MAIL_MINUTES

logger = logging.getLogger(__name__)

LONGEST_MINUTES = 24 * 60
"""What a person may choose to wait."""
NEWS = timedelta(minutes=LONGEST_MINUTES, days=1)
"""What waits longer is no news; it stays in the queue."""
AT_A_TIME = 1_000
"""Things that one look considers, the oldest first."""
MOST_LISTED = 20
"""In one mail; more are counted."""
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


def mail_waiting() -> int:
    """Mail everybody about what waits for them longer than they chose and they have not seen; how
    many mails were sent. Nothing where no mails can be sent, or the site does not know its address."""
    if not (settings.AGENTSITE_EMAIL_CONFIGURED and settings.AGENTSITE_BASE_URL):
        return 0
    sent = 0
    for user, items in due(timezone.now()).items():
        batch, claimed = _claim(user, items)
        if claimed:
            sent += _send(user, batch, claimed)
    return sent


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


# --- what waits, and for whom ---------------------------------------------------------------------


def questions(now: datetime) -> Iterator[tuple[Item, User]]:
    """What agents ask the people they work for; they alone answer it."""
    waiting = Conversation.objects.filter(
        status=Conversation.Status.IDLE,
        stop_reason="requires_action",
        active_at__gt=now - NEWS,
        active_at__lte=now - timedelta(minutes=1),
    ).select_related("owner")
    for conversation in waiting.order_by("active_at", "pk")[:AT_A_TIME]:
        rest = (
            Event.objects.filter(conversation=conversation, type="session.status_idle")
            .order_by("-seq")
            .first()
        )
        value = rest.value if rest else None
        if not is_reachable(conversation.owner) or rest is None:
            continue
        if not isinstance(value, SessionStatusIdle):
            continue
        if not isinstance(value.stop_reason, RequiresAction):
            continue
        asked = Event.objects.filter(
            uid__in=value.stop_reason.event_ids,
            type="agent.custom_tool_use",
            payload__name=QUESTIONS,
        )
        for uid in asked.values_list("uid", flat=True):
            link = f"{settings.AGENTSITE_BASE_URL}{conversation.get_absolute_url()}#u-{uid}"
            item = Item(f"{uid}:1", conversation, QUESTIONS, rest.created_at, link)
            yield item, conversation.owner


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


# --- one mail about each at most ------------------------------------------------------------------


def _notified(subjects: Iterable[str]) -> set[tuple[int, str]]:
    """Who was told of what, or will not be any more."""
    found = WaitNotice.objects.filter(subject__in=set(subjects))
    done = found.exclude(batch="", tries__lt=MOST_TRIES)
    return set(done.values_list("user_id", "subject"))


def _claim(user: User, items: list[Item]) -> tuple[str, list[Item]]:
    """Those among `items` that this process, and no other, is to tell of.

    Committed before the mail is handed over: a process that dies in between has told too little
    rather than twice, and what waits stays in the queue.
    """
    batch = new_id("mail")
    refused = WaitNotice.objects.filter(
        user=user, subject__in=[item.subject for item in items], batch="", tries__lt=MOST_TRIES
    )
    refused.update(batch=batch, tries=F("tries") + 1)
    WaitNotice.objects.bulk_create(
        [
            WaitNotice(user=user, conversation=item.conversation, subject=item.subject, batch=batch)
            for item in items
        ],
        ignore_conflicts=True,
    )
    mine = set(WaitNotice.objects.filter(batch=batch).values_list("subject", flat=True))
    return batch, [item for item in items if item.subject in mine]


def _send(user: User, batch: str, items: list[Item]) -> bool:
    rows = WaitNotice.objects.filter(batch=batch)
    message = compose(user, items)
    try:
        message.send()
    except (OSError, smtplib.SMTPException) as refusal:
        # Without the exception's text: a mail server may quote the message.
        kind = type(refusal).__name__
        logger.warning("the mail %s could not be sent: %s", batch, kind)
        MAILS.labels("waiting", "failed").inc()
        rows.update(batch="")
        return False
    rows.update(mailed_at=timezone.now())
    MAILS.labels("waiting", "sent").inc()
    return True


def compose(user: User, items: list[Item]) -> EmailMessage:
    """The mail, in the language of the site: nobody is at a browser that could ask for another."""
    with translation.override(settings.LANGUAGE_CODE):
        count = len(items)
        subject = ngettext(
            "Something waits for your answer", "%(count)d things wait for your answer", count
        ) % {"count": count}
        context = {
            "user": user,
            "items": items[:MOST_LISTED],
            "more": max(0, count - MOST_LISTED),
            "list_link": settings.AGENTSITE_BASE_URL + reverse("approvals:approvals"),
            "settings_link": settings.AGENTSITE_BASE_URL + reverse("conversations:settings"),
        }
        body = render_to_string("conversations/waiting_mail.txt", context)
        return EmailMessage(
            f"[Agentsite] {subject}",
            body,
            to=[user.email],
            # Answering machines do not answer it.
            headers={"Auto-Submitted": "auto-generated"},
        )

"""Conversations that have ended, for those who want to be told (`notices.waiting`): their owners.

What another subject shows on pages of its own, and what agents started, has others who tell of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Exists, OuterRef, QuerySet

from accounts.models import User
from conversations.models import Conversation
from harness.events import WAITS_FOR_WORKER
from keeping.unread import is_unread, with_unread
from notices.models import Device, Kind, NoticeWish, When
from notices.waiting import NEWS, Item, in_turn

_UNFINISHED = ("requires_action", WAITS_FOR_WORKER)


def ended(now: datetime) -> Iterator[tuple[Item, User]]:
    """Each person's newest first: what waits longest has had most chances to be told."""
    status = Conversation.Status
    rows = (
        Conversation.objects.listed()
        .of_members()
        .filter(
            owner__in=_wanting(),
            status__in=[status.IDLE, status.TERMINATED],
            owes_run=False,
            news_seq__gt=0,
            archived_at=None,
            active_at__gt=now - NEWS,
            active_at__lte=now - timedelta(minutes=1),
        )
        .exclude(stop_reason__in=_UNFINISHED)
        .select_related("owner")
    )
    unread = with_unread(rows, OuterRef("owner"))
    for conversation in in_turn(unread, whose="owner", since="active_at", newest=True):
        item = Item(
            f"{conversation.uid}:{conversation.news_seq}",
            conversation,
            "",
            conversation.active_at,
            settings.AGENTSITE_BASE_URL + conversation.get_absolute_url(),
            may_answer=True,
            kind=Kind.DONE,
            is_seen=not is_unread(conversation),
        )
        yield item, conversation.owner


def _wanting() -> QuerySet[User]:
    """People who are told of it by any way."""
    wishes = NoticeWish.objects.filter(user=OuterRef("pk"))
    pushed = Exists(Device.objects.filter(user=OuterRef("pk"))) & ~Exists(
        wishes.filter(done_by_push=When.NEVER)
    )
    mailed = Exists(wishes.exclude(done_by_mail=When.NEVER))
    announced = Exists(wishes.exclude(done_by_webhook=When.NEVER))
    return User.objects.filter(pushed | mailed | announced, is_active=True, kind=User.Kind.PERSON)

"""Tells endpoints of webhooks what waits for those who want that, and what has ended, and never twice.

An event names the conversation and the person, and nothing of what it is about; who may see that reads it.
"""

from __future__ import annotations

from datetime import datetime

from django.db import transaction
from django.utils import timezone

from accounts.models import User
from webhooks.outbox import announce
from webhooks.types import NOTICE_ENDED, NOTICE_WAITING

from .claims import claim_items
from .models import Channel, Kind, NoticeWish
from .waiting import Item, due


def announce_waiting(now: datetime | None = None) -> int:
    """How many things were told of. One query where nobody wants that."""
    if not NoticeWish.objects.by_webhook().exists():
        return 0
    found = due(now or timezone.now(), Channel.WEBHOOK)
    return sum(_announce(user, items) for user, items in found.items())


def _announce(user: User, items: list[Item]) -> int:
    # What is claimed and what is told are one: an event is written down before it is sent.
    with transaction.atomic():
        _batch, mine = claim_items(user, items, channel=Channel.WEBHOOK)
        for item in mine:
            announce(
                item.conversation.organisation_id,
                NOTICE_WAITING if item.kind == Kind.WAITS else NOTICE_ENDED,
                subject=item.conversation.uid,
                user_id=user.uid,
            )
    return len(mine)

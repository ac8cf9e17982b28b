"""What agents ask the people they work for, among what people are mailed about."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from django.conf import settings

from accounts.models import User
from conversations.models import Conversation, Event
from harness.events import RequiresAction, SessionStatusIdle
from tools_app.questions import TOOL as QUESTIONS

from .waiting import NEWS, Item, in_turn, is_reachable


def questions(now: datetime) -> Iterator[tuple[Item, User]]:
    """What agents ask the people they work for; they alone answer it."""
    waiting = Conversation.objects.filter(
        status=Conversation.Status.IDLE,
        stop_reason="requires_action",
        active_at__gt=now - NEWS,
        active_at__lte=now - timedelta(minutes=1),
    ).select_related("owner")
    for conversation in in_turn(waiting, whose="owner", since="active_at"):
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

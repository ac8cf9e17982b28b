"""A person's schedules among what she takes along."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from accounts.models import User
from owndata.parts import File, as_lines, in_pages

from .models import StandingOrder

_COLUMNS = (
    "name",
    "description",
    "cron",
    "timezone",
    "dates",
    "messages",
    "budget",
    "created_at",
    "archived_at",
)


def files(user: User) -> Iterator[File]:
    mine = StandingOrder.objects.visible_to(user).select_related("organisation")
    yield File("schedules.jsonl", as_lines(map(_told, in_pages(mine))))


def _told(order: StandingOrder) -> dict[str, Any]:
    return {
        "id": order.uid,
        "organisation": order.organisation.uid,
        **{name: getattr(order, name) for name in _COLUMNS},
    }

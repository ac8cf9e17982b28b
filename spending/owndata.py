"""A person's model calls among what she takes along."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from accounts.models import User
from owndata.parts import File, as_lines, in_pages

from .models import Usage

_COLUMNS = ("purpose", "provider", "model", *Usage.TOKENS, "cost", "milliseconds", "created_at")


def files(user: User) -> Iterator[File]:
    rows = Usage.objects.filter(user=user).select_related("organisation", "conversation")
    yield File("usage.jsonl", as_lines(map(_told, in_pages(rows))))


def _told(row: Usage) -> dict[str, Any]:
    return {
        "organisation": row.organisation.uid,
        "conversation": row.conversation.uid if row.conversation else None,
        **{name: getattr(row, name) for name in _COLUMNS},
    }

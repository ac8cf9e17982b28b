"""A person's comparisons among what she takes along."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from accounts.models import User
from owndata.parts import File, as_lines, in_pages

from .models import Comparison


def files(user: User) -> Iterator[File]:
    mine = Comparison.objects.owned_by(user).select_related("root")
    yield File("comparisons.jsonl", as_lines(map(_told, in_pages(mine))))


def _told(comparison: Comparison) -> dict[str, Any]:
    return {
        "id": comparison.uid,
        "question": comparison.question,
        "state": comparison.state,
        "conversation": comparison.root.uid,
        "entries": list(comparison.entries.values("name", "state", "points", "problem")),
        "started_at": comparison.started_at,
        "ended_at": comparison.ended_at,
    }

"""The tasks that are a person's, or that she made, among what she takes along."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.db.models import Q

from accounts.models import User
from owndata.parts import File, as_lines, in_pages

from .models import Task

_COLUMNS = ("number", "subject", "description", "status", "created_at")


def files(user: User) -> Iterator[File]:
    seen = Task.objects.visible_to(user).select_related("board")
    mine = seen.filter(Q(owner_user=user) | Q(creator_user=user))
    yield File("tasks.jsonl", as_lines(map(_told, in_pages(mine))))


def _told(task: Task) -> dict[str, Any]:
    told = {name: getattr(task, name) for name in _COLUMNS}
    return {"id": task.uid, "board": task.board.uid, **told}

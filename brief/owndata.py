"""A person's briefs among what she takes along."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from accounts.models import User
from owndata.parts import File, as_lines, in_pages

from .models import Brief


def files(user: User) -> Iterator[File]:
    mine = Brief.objects.visible_to(user).select_related("organisation")
    yield File("briefs.jsonl", as_lines(map(_told, in_pages(mine))))


def _told(brief: Brief) -> dict[str, Any]:
    return {
        "id": brief.uid,
        "organisation": brief.organisation.uid,
        "since": brief.since,
        "until": brief.until,
        "contents": brief.stored_contents,
        "text": brief.text,
        "written_by": brief.model if brief.text else None,
    }

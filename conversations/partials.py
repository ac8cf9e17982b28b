"""The table of text that is still arriving: written while it streams, read by the run after a lost one.

When it is written is `livetext`'s part; what becomes of text that was left here, the loop's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from django.db import transaction
from django.db.models import Exists, OuterRef
from django.utils import timezone

from harness.ports import LiveBlock
from jobs.prepared import Prepared

from . import logsql
from .models import Event, PartialBlock

_LEFT = Prepared(
    lambda given: PartialBlock.objects.filter(conversation=given.conversation).order_by("id")
)


@dataclass(frozen=True, slots=True)
class Partial:
    """A block of one run, with all of its text so far."""

    conversation_id: int
    run_id: int
    block: LiveBlock
    text: str


def save_partials(partials: Sequence[Partial]) -> None:
    """Keep these texts in place of what was kept of their blocks before; not those of runs that have
    lost their claim meanwhile."""
    with transaction.atomic():
        running = logsql.running({partial.run_id for partial in partials})
        kept = [
            logsql.NewPartial(
                partial.block.uid,
                partial.conversation_id,
                partial.block.kind,
                partial.block.model_request_id,
                partial.block.continues,
                partial.text,
            )
            for partial in partials
            if partial.run_id in running
        ]
        if kept:
            logsql.keep_partials(kept, at=timezone.now())


def any_left() -> Exists:
    """Whether `take_partials` would find anything in a conversation, for a query that asks for more."""
    return Exists(PartialBlock.objects.filter(conversation=OuterRef("pk")))


def take_partials(conversation_id: int) -> list[tuple[LiveBlock, str]]:
    """What a lost run had received and not stored, oldest first; those that made it are dropped."""
    rows = _LEFT.all(conversation=conversation_id)
    if not rows:
        return []
    known = set(
        Event.objects.filter(uid__in=[row.uid for row in rows]).values_list("uid", flat=True)
    )
    kept: list[tuple[LiveBlock, str]] = []
    for row in rows:
        if row.uid in known:
            row.delete()
        elif row.text:
            kind: Literal["text", "thinking"]
            kind = "thinking" if row.kind == "thinking" else "text"
            kept.append((LiveBlock(row.uid, kind, row.model_request_id, row.continues), row.text))
    return kept

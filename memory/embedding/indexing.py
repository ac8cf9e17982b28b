"""Makes the vectors that are lacking of one table's rows, in the background, some at a time.

One at a time is at it, of all processes: whoever has the table's claim. Texts are read and vectors made
outside of any transaction; they are kept in a short one, of those rows that still say what they said.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from django.db.models import Q

from jobs.leases import lapsed, lease_end
from memory.models import EmbeddingClaim

from .chosen import chosen
from .nearest import as_blob

AT_ONCE = 16
"""Texts that are held, and rows of one transaction."""
BATCHES = 50
"""Of one job, so that none holds its thread for long."""
LEASE_SECONDS = 300.0
"""After so long without a batch somebody else may go on."""


@dataclass(frozen=True, slots=True)
class Due:
    """A row without a vector of its text."""

    key: int
    text: str
    sha256: str


class Table(Protocol):
    @property
    def name(self) -> str: ...

    def due(self, model: str, reads: int, most: int, below: int | None) -> list[Due]:
        """Rows without a vector of this model, with so many characters of their texts, the highest key first;
        `below`: only those with lower ones."""

    def keep(self, model: str, made: Sequence[tuple[Due, bytes]]) -> None:
        """Those that still say that."""


def make_vectors(table: Table) -> bool:
    """Some of those that are lacking; whether there are more. Nothing where no embedder is chosen or somebody
    else is at it."""
    embedder = chosen()
    if embedder is None:
        return False
    holder = uuid.uuid4().hex
    if not _claim(table.name, holder):
        return False
    try:
        below = None
        for _ in range(BATCHES):
            due = table.due(embedder.name, embedder.reads, AT_ONCE, below)
            if not due and below is not None:
                # What came or changed behind this pass.
                due = table.due(embedder.name, embedder.reads, AT_ONCE, None)
            if not due:
                return False
            below = due[-1].key  # so that what was made is not looked through for each batch
            vectors = [as_blob(vector) for vector in embedder.embed([each.text for each in due])]
            if not _hold(table.name, holder):
                return False
            table.keep(embedder.name, list(zip(due, vectors, strict=True)))
        return True
    finally:
        EmbeddingClaim.objects.filter(pk=table.name, holder=holder).update(holder="")


def _claim(name: str, holder: str) -> bool:
    EmbeddingClaim.objects.get_or_create(pk=name)
    free = Q(holder="") | lapsed()
    rows = EmbeddingClaim.objects.filter(free, pk=name)
    return bool(rows.update(holder=holder, lease_until=lease_end(LEASE_SECONDS)))


def _hold(name: str, holder: str) -> bool:
    """Whether it is still ours, and for longer."""
    rows = EmbeddingClaim.objects.filter(pk=name, holder=holder)
    return bool(rows.update(lease_until=lease_end(LEASE_SECONDS)))

"""The vectors of memories: which are lacking, and that a text has changed. How they are made is
`memory.embedding`'s part, what they find `searching`'s.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef
from django.db.models.functions import Left

from jobs.dispatch import dispatch

from .embedding.indexing import BATCHES, Due, make_vectors
from .embedding.nearest import Stored
from .embedding.paying import Payer
from .models import Memory, MemoryVector

EMBED = "memory.embed"


class _Memories:
    name = "memory"

    def due(
        self, model: str, reads: int, most: int, *, below: int | None, above: int | None
    ) -> list[Due]:
        made = MemoryVector.objects.filter(
            memory=OuterRef("pk"), model=model, sha256=OuterRef("sha256")
        )
        rows = Memory.objects.exclude(Exists(made)).order_by("-pk")
        if below is not None:
            rows = rows.filter(pk__lt=below)
        if above is not None:
            rows = rows.filter(pk__gt=above)
        whose = ("store__organisation", "store__owner")
        found = rows.values_list("pk", Left("content", reads), "sha256", "audience", *whose)
        return [
            Due(key, text, sha256, audience, Payer(organisation, owner))
            for key, text, sha256, audience, organisation, owner in found[:most]
        ]

    def keep(self, model: str, made: Sequence[tuple[Due, Stored]]) -> None:
        with transaction.atomic():
            held = Memory.objects.select_for_update(of=("self",), no_key=True)
            rows = held.filter(pk__in=[due.key for due, _stored in made]).order_by("pk")
            now = dict(rows.values_list("pk", "sha256"))
            MemoryVector.objects.filter(memory__in=[due.key for due, _stored in made]).delete()
            MemoryVector.objects.bulk_create(
                [
                    MemoryVector(
                        memory_id=due.key,
                        model=model,
                        sha256=due.sha256,
                        audience=due.audience,
                        code=stored.code,
                        data=stored.data,
                    )
                    for due, stored in made
                    if now.get(due.key) == due.sha256
                ]
            )


MEMORIES = _Memories()


def embed_memories(batches: int = BATCHES) -> None:
    if make_vectors(MEMORIES, batches):
        dispatch(EMBED)


def text_written(memory: Memory, *, new: bool = False) -> None:
    """In the transaction that wrote it: nothing is left of the text before."""
    if not new:
        MemoryVector.objects.filter(memory=memory).delete()
    if settings.AGENTSITE_EMBEDDINGS:
        dispatch(EMBED)

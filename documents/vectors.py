"""The vectors of passages: which are lacking. How they are made is `memory.embedding`'s part, what they find
`searching`'s.

A passage never changes: what is read anew has new ones, and the old go with their vectors.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef
from django.db.models.functions import Left

from jobs.dispatch import dispatch
from memory.embedding.indexing import Due, make_vectors
from memory.embedding.nearest import Stored
from memory.embedding.paying import Payer

from .models import Passage, PassageVector

EMBED = "documents.embed"


class _Passages:
    name = "documents"

    def due(
        self, model: str, reads: int, most: int, *, below: int | None, above: int | None
    ) -> list[Due]:
        made = PassageVector.objects.filter(passage=OuterRef("pk"), model=model)
        rows = Passage.objects.current().exclude(Exists(made)).order_by("-pk")
        if below is not None:
            rows = rows.filter(pk__lt=below)
        if above is not None:
            rows = rows.filter(pk__gt=above)
        whose = ("document__collection__organisation", "document__collection__owner")
        found = rows.values_list("pk", "heading", Left("text", reads), "audience", *whose)
        texts = [
            (key, f"{heading}\n{text}".strip(), audience, Payer(organisation, owner))
            for key, heading, text, audience, organisation, owner in found[:most]
        ]
        return [
            Due(key, text, hashlib.sha256(text.encode()).hexdigest(), audience, payer)
            for key, text, audience, payer in texts
        ]

    def keep(self, model: str, made: Sequence[tuple[Due, Stored]]) -> None:
        with transaction.atomic():
            held = Passage.objects.select_for_update(of=("self",), no_key=True)
            rows = held.filter(pk__in=[due.key for due, _stored in made]).order_by("pk")
            there = set(rows.values_list("pk", flat=True))
            PassageVector.objects.filter(passage__in=[due.key for due, _stored in made]).delete()
            PassageVector.objects.bulk_create(
                [
                    PassageVector(
                        passage_id=due.key,
                        model=model,
                        sha256=due.sha256,
                        audience=due.audience,
                        code=stored.code,
                        data=stored.data,
                    )
                    for due, stored in made
                    if due.key in there
                ]
            )


PASSAGES = _Passages()


def embed_passages() -> None:
    if make_vectors(PASSAGES):
        dispatch(EMBED)


def passages_made() -> None:
    if settings.AGENTSITE_EMBEDDINGS:
        dispatch(EMBED)

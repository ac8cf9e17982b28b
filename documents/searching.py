"""Finds passages that answer a question: candidates by the index and, where vectors are made, by these;
ordered by `memory.retrieval`.

Who may see what is part of every statement: the index is asked for audiences of the person alone, and of
what it finds only what lies in collections that she sees now is looked at.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import OuterRef
from django.db.models.functions import Left

from accounts.models import User
from memory.embedding.finding import find_near
from memory.fences import Among, ExistsForEach
from memory.retrieval.question import read_question
from memory.retrieval.turns import Ranked, Turn, TurnIndex
from memory.termindex import TermIndexOf

from .models import Collection, CollectionQuerySet, Passage, PassageVector

INDEX = TermIndexOf("documents_passage")
TERMS = 6_000
"""Of a passage's terms, the first characters that are compared."""


@dataclass(frozen=True, slots=True)
class Hit:
    passage: Passage
    ranked: Ranked

    @property
    def why(self) -> tuple[str, ...]:
        """The terms of the question that it has."""
        return self.ranked.words

    @property
    def likeness(self) -> float | None:
        """The cosine of its vector and the question's; None: it has none, or is far."""
        return self.ranked.likeness


@dataclass(frozen=True, slots=True)
class FoundPassages:
    hits: tuple[Hit, ...]
    low: bool
    """Better to say that it is not known."""
    alike: float = 1.0
    """The likeness from which on a hit is about the same in other words."""
    by_words_alone: bool = False
    """Vectors are made here, and the question had none when it was asked."""


def search_passages(
    user: User, query: str, collections: CollectionQuerySet, *, limit: int = 8
) -> FoundPassages:
    """Those in `collections` that the person sees and that fit the question, best first."""
    question = read_question(query)
    seen = collections.visible_to(user)
    kinds = seen.order_by().values_list("organisation", "owner").distinct()
    audiences = {
        Collection(organisation_id=organisation, owner_id=owner).audience
        for organisation, owner in kinds
    }
    if not question.terms:
        return FoundPassages((), low=True)
    keys = INDEX.candidates(Passage, question.terms, audiences)
    # Asked of each row that its key has led to: `__in` has SQLite go through all that the collections have.
    allowed = ExistsForEach(seen.filter(pk=OuterRef("document__collection")))
    rows = Passage.objects.filter(allowed).current()
    made = PassageVector.objects.all()
    by_vectors = find_near(
        made, rows, user, question.text, of="passage", audiences=audiences, keys=keys
    )
    alone = by_vectors.by_words_alone
    if not keys and not by_vectors.cosines:
        return FoundPassages((), low=True, by_words_alone=alone)
    rows = rows.filter(Among("pk", {*keys, *by_vectors.cosines}))
    values = rows.order_by("pk").values_list("pk", "text", Left("terms", TERMS))
    turns = [
        Turn(str(key), text, group=str(key), terms=tuple(terms.split(" ")))
        for key, text, terms in values
    ]
    index = TurnIndex(turns, asked=question)
    found = index.search(question.text, limit=limit, near=by_vectors.near)
    passages = (
        Passage.objects.visible_to(user)
        .select_related("document__collection")
        .in_bulk([int(hit.turn.id) for hit in found.hits])
    )
    hits = [
        Hit(passages[int(hit.turn.id)], hit) for hit in found.hits if int(hit.turn.id) in passages
    ]
    return FoundPassages(tuple(hits), found.low, by_vectors.alike, alone)

"""Finds passages that answer a question: candidates by the index and, where vectors are made, by these;
ordered by `memory.retrieval`.

Who may see what is part of every statement: which of the caller's collections the person sees is asked first,
and each statement after it has these in it. All but that first one are built once for a process.
"""

from __future__ import annotations

from collections.abc import Collection as Many
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.db.models import QuerySet
from django.db.models.functions import Left

from accounts.models import User
from jobs.prepared import Given, Prepared
from memory.embedding.finding import find_near
from memory.fences import Among, keys_as_given
from memory.retrieval.question import read_question
from memory.retrieval.turns import Ranked, Turn, TurnIndex
from memory.termindex import TermIndexOf

from .models import Collection, CollectionQuerySet, Passage, PassageVector

INDEX = TermIndexOf("documents_passage")
TERMS = 6_000
"""Of a passage's terms, the first characters that are compared."""


def _rows(given: Given) -> QuerySet[Passage]:
    """Collections are asked of each row that its key has led to: SQLite goes through all that these have
    otherwise."""
    seen = Among("document__collection", given.collections, for_each=True)
    return Passage.objects.filter(Among("pk", given.keys), seen).current()


_COMPARED = Prepared(
    lambda given: _rows(given).order_by("pk").values_list("pk", "text", Left("terms", TERMS))
)
_VECTORS = Prepared(
    lambda given: (
        _rows(given).filter(vector__model=given.model).order_by().values_list("pk", "vector__data")
    ),
    binary=True,
)
_TOLD = Prepared(lambda given: _rows(given).select_related("document__collection"))


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
    if not question.terms:
        return FoundPassages((), low=True)
    seen = collections.visible_to(user).order_by("pk")
    whose = list(seen.values_list("pk", "organisation", "owner"))
    audiences = {
        Collection(organisation_id=organisation, owner_id=owner).audience
        for organisation, owner in {row[1:] for row in whose}
    }
    held = keys_as_given([row[0] for row in whose])
    keys = INDEX.candidates(Passage, question.terms, audiences)
    by_vectors = find_near(
        PassageVector,
        partial(_read, held),
        user,
        question.text,
        of="passage",
        audiences=audiences,
        keys=keys,
    )
    alone = by_vectors.by_words_alone
    if not keys and not by_vectors.cosines:
        return FoundPassages((), low=True, by_words_alone=alone)
    every = keys_as_given({*keys, *by_vectors.cosines})
    values = _COMPARED.all(keys=every, collections=held)
    turns = [
        Turn(str(key), text, group=str(key), terms=tuple(terms.split(" ")))
        for key, text, terms in values
    ]
    index = TurnIndex(turns, asked=question)
    found = index.search(question.text, limit=limit, near=by_vectors.near)
    told = keys_as_given([int(hit.turn.id) for hit in found.hits])
    passages = {row.pk: row for row in _TOLD.all(keys=told, collections=held)}
    hits = [
        Hit(passages[int(hit.turn.id)], hit) for hit in found.hits if int(hit.turn.id) in passages
    ]
    return FoundPassages(tuple(hits), found.low, by_vectors.alike, alone)


def _read(held: str, model: str, keys: Many[int]) -> list[tuple[int, Any]]:
    return _VECTORS.all(model=model, keys=keys_as_given(keys), collections=held)

"""Finds memories that answer a question: candidates by the index and, where vectors are made, by these;
ordered by `memory.retrieval`.

Who may see what is part of every statement: which of the caller's stores the person sees is asked first, and
each statement after it has these stores in it, so nothing of others is counted. A question costs a bounded
number of bounded statements, each built once for a process.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache, partial
from typing import Any, NamedTuple

from django.db.models import F, QuerySet
from django.db.models.functions import Left
from django.utils import timezone

from accounts.models import User
from jobs.prepared import Given, Prepared

from .embedding.finding import find_near
from .fences import Among, keys_as_given
from .models import Memory, MemoryStore, MemoryVector
from .models.store import MemoryStoreQuerySet
from .retrieval.question import Question, read_question
from .retrieval.ranking import Near
from .retrieval.turns import Ranked, Turn, TurnIndex
from .termindex import TermIndexOf

INDEX = TermIndexOf("memory_memory")
TERMS = 6_000
"""Of a memory's terms, the first characters that are compared."""
LOOKED_AT = 4_000
"""Characters of a memory that are compared; of longer ones, the beginning."""
MOST_AUDIENCES = 200
OF_ANOTHER_TIME = 10
"""Times as many candidates where a question is of another time than now: the index knows no moments, and
gives the newest first."""
LISTED = 5_000
"""Rows that a list is narrowed to; of more, the newest."""


@dataclass(frozen=True, slots=True)
class Hit:
    memory: Memory
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
class Recalled:
    """What was found, best first, and how much of the question the best covers."""

    hits: tuple[Hit, ...]
    confidence: float
    low: bool
    alike: float = 1.0
    """The likeness from which on a hit is about the same in other words."""
    by_words_alone: bool = False
    """Vectors are made here, and the question had none when it was asked (`embedding.asking`)."""


class _Row(NamedTuple):
    """What of a candidate is compared: rows whole cost more than finding them."""

    pk: int
    path: str
    beginning: str
    terms: str
    valid_from: datetime | None
    valid_until: datetime | None
    updated_at: datetime


def search_memories(
    user: User,
    query: str,
    stores: MemoryStoreQuerySet,
    *,
    limit: int = 10,
    at: datetime | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    for_agents: bool = False,
) -> Recalled:
    """Those of `stores` that the person sees and that fit the question. `at`: what was true then; None:
    all, what is true first. `since`, `until`: what came to be known from then on, or before then.
    `for_agents`: without what strangers wrote and nobody confirmed."""
    question = read_question(query)
    if not question.terms:
        return Recalled((), 0.0, low=True)
    held, audiences = _seen(stores.visible_to(user))
    moments = {"at": at, "since": since, "until": until}
    given = {name: moment for name, moment in moments.items() if moment is not None}
    asked = _asked(frozenset(given), for_agents)
    narrowed = {**given, "stores": held}
    times = OF_ANOTHER_TIME if _is_of_another_time(at, since, until) else 1
    keys = INDEX.candidates(Memory, question.terms, audiences, times=times)
    by_vectors = find_near(
        MemoryVector,
        partial(_read, asked.vectors, narrowed),
        user,
        question.text,
        of="memory",
        audiences=audiences,
        keys=keys,
    )
    alone = by_vectors.by_words_alone
    if not keys and not by_vectors.cosines:
        return Recalled((), 0.0, low=True, by_words_alone=alone)
    rows = asked.compared.all(keys=keys_as_given({*keys, *by_vectors.cosines}), **narrowed)
    found = _ranked(question, rows, held, limit, at or timezone.now(), by_vectors.near)
    return replace(found, alike=by_vectors.alike, by_words_alone=alone)


def _is_of_another_time(
    at: datetime | None, since: datetime | None, until: datetime | None
) -> bool:
    return bool(since or until) or (at is not None and at < timezone.now() - timedelta(hours=1))


def matching(rows: QuerySet[Memory], text: str, stores: Iterable[MemoryStore]) -> QuerySet[Memory]:
    """Those of `rows`, which lie in these stores, that have all words of `text`, in their order: what a list
    is narrowed by."""
    terms = read_question(text).terms
    if not terms:
        return rows
    audiences = {store.audience for store in stores}
    return rows.filter(Among("pk", INDEX.having(Memory, terms, audiences, LISTED)))


class _Asked(NamedTuple):
    """The queries of searches that are narrowed in the same way."""

    compared: Prepared[tuple[Any, ...]]
    vectors: Prepared[tuple[int, bytes | memoryview]]


@cache
def _asked(moments: frozenset[str], for_agents: bool) -> _Asked:
    """`moments`: the names of those that are given."""

    def rows(given: Given) -> QuerySet[Memory]:
        found = Memory.objects.filter(Among("pk", given.keys), _IN_STORES(given.stores))
        if "at" in moments:
            found = found.true_at(given.at)
        since, until = (
            getattr(given, name) if name in moments else None for name in ("since", "until")
        )
        found = found.known_between(since, until)
        return found.trusted() if for_agents else found

    return _Asked(
        Prepared(
            lambda given: (
                rows(given)
                .order_by("updated_at", "pk")
                .values_list(
                    "pk",
                    "path",
                    Left("content", LOOKED_AT),
                    Left("terms", TERMS),
                    "valid_from",
                    "valid_until",
                    "updated_at",
                )
            ),
            binary=True,
        ),
        Prepared(
            lambda given: (
                rows(given)
                .filter(vector__model=given.model, vector__sha256=F("sha256"))
                .order_by()
                .values_list("pk", "vector__data")
            ),
            binary=True,
        ),
    )


_IN_STORES = partial(Among, "store", for_each=True)
"""Asked of each row that its key has led to: SQLite goes through all that the stores have otherwise."""
_TOLD = Prepared(
    lambda given: Memory.objects.select_related("store").filter(
        Among("pk", given.keys), _IN_STORES(given.stores)
    )
)


def _read(
    vectors: Prepared[tuple[int, bytes | memoryview]],
    narrowed: Mapping[str, Any],
    model: str,
    keys: Collection[int],
) -> list[tuple[int, bytes | memoryview]]:
    return vectors.all(model=model, keys=keys_as_given(keys), **narrowed)


def _seen(stores: MemoryStoreQuerySet) -> tuple[str, set[str]]:
    """Their keys, as a query that is built once takes them, and of whom the index finds what is in them."""
    rows = list(stores.order_by("pk").values_list("pk", "organisation", "owner", "agent"))
    whose = sorted({row[1:] for row in rows}, key=str)
    audiences = {
        MemoryStore(organisation_id=organisation, owner_id=owner, agent_id=agent).audience
        for organisation, owner, agent in whose[:MOST_AUDIENCES]
    }
    return keys_as_given([row[0] for row in rows]), audiences


def _ranked(
    question: Question,
    values: Sequence[tuple[Any, ...]],
    stores: str,
    limit: int,
    at: datetime,
    near: Near | None = None,
) -> Recalled:
    by_key = {str(value[0]): _Row(*value) for value in values}
    turns = [
        # Each by itself: memories are no neighbours of each other.
        Turn(
            key,
            f"{row.path}\n{row.beginning}",
            at=row.valid_from or row.updated_at,
            group=key,
            terms=tuple(row.terms.split(" ")),
        )
        for key, row in by_key.items()
    ]
    found = TurnIndex(turns, asked=question).search(
        question.text,
        limit=limit,
        near=near,
        # What is no longer so stands behind what is, where both answer the same.
        behind=lambda turn: not _is_true(by_key[turn.id], at),
    )
    best = found.hits
    told = keys_as_given([int(hit.turn.id) for hit in best])
    rows = {row.pk: row for row in _TOLD.all(keys=told, stores=stores)}
    hits = [Hit(rows[int(hit.turn.id)], hit) for hit in best if int(hit.turn.id) in rows]
    return Recalled(tuple(hits), found.confidence, found.low)


def _is_true(row: _Row, at: datetime) -> bool:
    return row.valid_until is None or row.valid_until > at


def stores_of(user: User) -> MemoryStoreQuerySet:
    """All that a person may search."""
    return MemoryStore.objects.visible_to(user).in_force()

"""Finds memories that answer a question: candidates by the index, ordered by `memory.retrieval`.

Who may see what is part of every statement: the stores are those that the caller gives, narrowed to those
its person sees, and nothing of others is counted. A question costs a bounded number of bounded statements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connections, router
from django.db.models import QuerySet
from django.utils import timezone

from accounts.models import User

from .models import Memory, MemoryStore
from .models.store import MemoryStoreQuerySet
from .retrieval.question import Question, read_question
from .retrieval.turns import Found, Ranked, Turn, TurnIndex
from .retrieval.words import scope_term

CANDIDATES = 200
"""Memories that are compared with a question."""
COUNTED = 2_000
"""Terms that more memories have than this are all alike common."""
TERMS = 600
"""Of a memory, the first of its terms that are compared."""
LOOKED_AT = 4_000
"""Characters of a memory that are compared; of longer ones, the beginning."""
MOST_STORES = 200


@dataclass(frozen=True, slots=True)
class Hit:
    memory: Memory
    ranked: Ranked

    @property
    def why(self) -> tuple[str, ...]:
        """The terms of the question that it has."""
        return self.ranked.words


@dataclass(frozen=True, slots=True)
class Recalled:
    """What was found, best first, and how much of the question the best covers."""

    hits: tuple[Hit, ...]
    confidence: float
    low: bool


def search_memories(
    user: User,
    query: str,
    stores: MemoryStoreQuerySet,
    *,
    limit: int = 10,
    at: datetime | None = None,
    kinds: Sequence[str] = (),
    for_agents: bool = False,
) -> Recalled:
    """Those of `stores` that the person sees and that fit the question. `at`: what was true then; None:
    all, what is true first. `for_agents`: without what strangers wrote and nobody confirmed."""
    question = read_question(query)
    seen = stores.visible_to(user).order_by("pk").values_list("pk", flat=True)
    keys = list(seen[:MOST_STORES])
    if not keys or not question.terms:
        return Recalled((), 0.0, low=True)
    rows = Memory.objects.filter(store__in=keys)
    if at is not None:
        rows = rows.true_at(at)
    if kinds:
        rows = rows.filter(kind__in=kinds)
    if for_agents:
        rows = rows.trusted()
    found = rows.filter(pk__in=_candidates(question, keys)).select_related("store")
    return _ranked(query, list(found.order_by("updated_at", "pk")), limit)


def matching(rows: QuerySet[Memory], text: str, stores: Sequence[int]) -> QuerySet[Memory]:
    """Those of `rows` that have all words of `text`, in their order: what a list is narrowed by."""
    terms = read_question(text).terms
    if not terms:
        return rows
    return rows.filter(pk__in=_having(stores[:MOST_STORES], terms, CANDIDATES) if stores else ())


def _ranked(query: str, memories: list[Memory], limit: int) -> Recalled:
    by_uid = {memory.uid: memory for memory in memories}
    now = timezone.now()
    turns = [
        # Each by itself: memories are no neighbours of each other.
        Turn(
            memory.uid,
            f"{memory.path}\n{memory.content[:LOOKED_AT]}",
            at=memory.valid_from or memory.updated_at,
            group=memory.uid,
            # Without that of its store, which stands before all others.
            terms=tuple(memory.terms.split(" ", TERMS + 1)[1 : TERMS + 1]),
        )
        for memory in memories
    ]
    found: Found = TurnIndex(turns).search(query, limit=len(turns))
    hits = [Hit(by_uid[ranked.turn.id], ranked) for ranked in found.hits]
    # What is no longer so stands behind what is, where both answer the same.
    hits.sort(key=lambda hit: not _is_true(hit.memory, now))
    return Recalled(tuple(hits[:limit]), found.confidence, found.low)


def _is_true(memory: Memory, now: datetime) -> bool:
    return memory.valid_until is None or memory.valid_until > now


# --- the index ------------------------------------------------------------------------------------


def _candidates(question: Question, stores: Sequence[int]) -> set[int]:
    """The rarest terms first, until there are enough; of a term that too many have, those that have another
    of the question's as well."""
    counts = {term: _count(stores, term) for term in question.terms}
    terms = sorted((term for term in counts if counts[term]), key=lambda term: counts[term])
    found: set[int] = set()
    for place, term in enumerate(terms):
        room = CANDIDATES - len(found)
        if room <= 0:
            break
        if counts[term] <= room:
            found |= set(_having(stores, [term], room))
            continue
        for other in (*terms[:place], *terms[place + 1 :]):
            found |= set(_having(stores, [term, other], max(0, CANDIDATES - len(found))))
        if len(found) < CANDIDATES:
            found |= set(_having(stores, [term], CANDIDATES - len(found)))
    return found


def _count(stores: Sequence[int], term: str) -> int:
    sql, values = _statement(stores, [term])
    with connections[router.db_for_read(Memory)].cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM ({sql} LIMIT {COUNTED}) AS found", values)  # noqa: S608
        return int(cursor.fetchone()[0])


def _having(stores: Sequence[int], terms: Sequence[str], most: int) -> list[int]:
    """The newest that have all of the terms."""
    sql, values = _statement(stores, terms)
    with connections[router.db_for_read(Memory)].cursor() as cursor:
        cursor.execute(f"{sql} ORDER BY 1 DESC LIMIT %s", [*values, most])
        return [key for (key,) in cursor.fetchall()]


_ON_POSTGRESQL = (
    "SELECT id FROM memory_memory WHERE string_to_array(terms, ' ') && %s"
    " AND string_to_array(terms, ' ') @> %s"
)
"""The expression of the index (migration 0001) to the letter: else the index is not used."""


def _statement(stores: Sequence[int], terms: Sequence[str]) -> tuple[str, list[Any]]:
    """Keys of memories in these stores with all of the terms, by the full-text index alone."""
    places = [scope_term(store) for store in stores]
    if connections[router.db_for_read(Memory)].vendor == "postgresql":
        return _ON_POSTGRESQL, [places, list(terms)]
    either = " OR ".join(f'"{place}"' for place in places)
    every = " AND ".join(f'"{term}"' for term in terms)
    return (
        "SELECT rowid FROM memory_termindex WHERE memory_termindex MATCH %s",
        [f"({either}) AND {every}"],
    )


def stores_of(user: User) -> MemoryStoreQuerySet:
    """All that a person may search."""
    return MemoryStore.objects.visible_to(user).in_force()

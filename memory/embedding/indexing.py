"""Makes the vectors that are lacking of one table's rows, in the background, some at a time.

One at a time is at it, of all processes: whoever has the table's claim. Texts are read and vectors made
outside of any transaction; they are kept in a short one, of those rows that still say what they said. A pass
goes from the newest row to the oldest and keeps its place from one job to the next. What a service does not
make now is tried again later, longer each time; whoever has no room for it in a budget is passed over.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import groupby
from typing import Protocol

from django.db.models import Q
from django.utils import timezone

from jobs.leases import lapsed, lease_end
from memory.models import EmbeddingClaim
from memory.models.vector import PROBLEM_LIMIT

from . import paying
from .chosen import chosen
from .contract import Embedder, Vectors
from .nearest import Stored, as_stored
from .paying import Payer
from .scales import APART, is_measured, measure
from .service import SHORTEST, Service, Unanswered

BATCHES = 50
"""Of one job, so that none holds its thread for long."""
LEASE_SECONDS = 300.0
"""After so long without a batch somebody else may go on."""
FIRST_REST, LONGEST_REST = 5.0, 900.0
"""Seconds after a service did not answer; twice as long each time."""
logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Due:
    """A row without a vector of its text."""

    key: int
    text: str
    sha256: str
    audience: str
    payer: Payer


class Table(Protocol):
    @property
    def name(self) -> str: ...

    def due(
        self, model: str, reads: int, most: int, *, below: int | None, above: int | None
    ) -> list[Due]:
        """Rows without a vector of this model, with so many characters of their texts, the highest key first;
        `below`, `above`: only those with lower, or higher ones."""

    def keep(self, model: str, made: Sequence[tuple[Due, Stored]]) -> None:
        """Those that still say that."""


class _Overtaken(Exception):
    """Somebody else has the claim."""


def make_vectors(table: Table, batches: int = BATCHES) -> bool:
    """Some of those that are lacking; whether there are more. Nothing where no embedder is chosen or somebody
    else is at it."""
    embedder = chosen()
    if embedder is None:
        return False
    claim = _claim(table.name, uuid.uuid4().hex)
    if claim is None:
        return False
    if claim.model != embedder.name:
        claim.model, claim.problem = embedder.name, ""
        claim.top, claim.below, claim.fruitful = None, None, False
    try:
        more = _pass(table, embedder, claim, batches)
        claim.failures, claim.problem = 0, ""
    except _Overtaken:
        return False
    except Unanswered as problem:
        _put_off(claim, problem)
        return False
    finally:
        _let_go(claim)
    return more


def _pass(table: Table, embedder: Embedder, claim: EmbeddingClaim, batches: int) -> bool:
    """What is newer than the pass first, then on from its place."""
    name, reads, most = embedder.name, embedder.reads, embedder.at_once
    made = 0
    while claim.top is not None and made < batches:
        newer = table.due(name, reads, most, below=None, above=claim.top)
        if not newer or not _make(table, embedder, claim, newer):
            break
        made += 1
    for _ in range(batches - made):
        due = table.due(name, reads, most, below=claim.below, above=None)
        if not due and claim.fruitful:
            # What came or changed behind this pass.
            claim.below, claim.top, claim.fruitful = None, None, False
            due = table.due(name, reads, most, below=None, above=None)
        if not due:
            claim.below, claim.top, claim.fruitful = None, None, False
            return False
        if claim.below is None:
            claim.top = due[0].key
        claim.fruitful |= _make(table, embedder, claim, due)
        claim.below = due[-1].key  # so that what was made is not looked through for each batch
    return True


def _make(table: Table, embedder: Embedder, claim: EmbeddingClaim, due: Sequence[Due]) -> bool:
    """Whether any was made. Raises Unanswered, having kept what was made before that, and _Overtaken."""
    made: list[tuple[Due, Stored]] = []
    try:
        for each, vector in _made(embedder, due):
            made.append((each, as_stored(vector)))
    finally:
        if made:
            if not _hold(claim):
                raise _Overtaken
            table.keep(embedder.name, made)
    return bool(made)


def _made(embedder: Embedder, due: Sequence[Due]) -> Iterator[tuple[Due, Vectors]]:
    if not isinstance(embedder, Service):
        yield from zip(due, embedder.embed([each.text for each in due]), strict=True)
        return
    measured = is_measured(embedder)
    for payer, every in groupby(sorted(due, key=_whose), key=lambda each: each.payer):
        measured = measured or _measured(embedder, payer)
        if not measured:
            continue
        its = list(every)
        tokens = sum(paying.tokens_at_most(each.text) for each in its)
        call = paying.hold(payer, model=embedder.model, tokens=tokens)
        if call is None:
            continue
        yield from zip(
            its, _asked(embedder, [each.text for each in its], call, tokens), strict=True
        )


def _measured(service: Service, payer: Payer) -> bool:
    """Whether `payer`, whose text is the first of this model, had room for it. Raises Unanswered."""
    at_most = sum(map(paying.tokens_at_most, APART))
    call = paying.hold(payer, model=service.model, tokens=at_most)
    if call is None:
        return False
    used: int | None = None  # whatever goes wrong, the service may have been asked
    try:
        used = measure(service)
    except Unanswered as problem:
        used = None if problem.counted else 0
        raise
    finally:
        paying.settle(call, paying.likely_tokens(APART) if used is None else min(used, 4 * at_most))
    return True


def _whose(due: Due) -> tuple[int, int]:
    return due.payer.organisation, due.payer.user or 0


def _asked(service: Service, texts: list[str], call: str, tokens: int) -> list[Vectors]:
    """Where the service refuses what it is given, half of it at a time, then half of a text: what it can make
    nothing of keeps nobody else waiting. Raises Unanswered where it takes no other text either, so that its
    fault is not taken for that of all that is remembered."""
    used = 0

    def takes_others() -> None:
        nonlocal used
        try:
            made = service.ask(APART[:1])
        except Unanswered as problem:
            raise Unanswered(f"it takes no text: {problem}", wait=problem.wait) from problem
        used += paying.tokens_at_most(APART[0]) // 2 if made.tokens is None else made.tokens

    def ask(some: list[str]) -> list[Vectors]:
        nonlocal used
        before, likely = used, paying.likely_tokens(some)
        used += likely  # whatever goes wrong
        try:
            made = service.ask(some)
        except Unanswered as problem:
            if not problem.counted:
                used = before
            if not problem.texts:
                raise
            if len(some) > 1:
                half = len(some) // 2
                return [*ask(some[:half]), *ask(some[half:])]
            if len(some[0]) < 2 * SHORTEST:
                takes_others()
                return [service.nothing()]
            return ask([some[0][: min(len(some[0]), service.reads) // 2]])
        used = before + (likely if made.tokens is None else made.tokens)
        return list(made.vectors)

    try:
        return ask(texts)
    finally:
        paying.settle(call, min(used, 4 * tokens))


def _claim(name: str, holder: str) -> EmbeddingClaim | None:
    EmbeddingClaim.objects.get_or_create(pk=name)
    free = Q(holder="") | lapsed()
    awake = Q(rests_until=None) | Q(rests_until__lte=timezone.now())
    rows = EmbeddingClaim.objects.filter(free, awake, pk=name)
    taken = rows.update(holder=holder, lease_until=lease_end(LEASE_SECONDS))
    return EmbeddingClaim.objects.get(pk=name) if taken else None


def _hold(claim: EmbeddingClaim) -> bool:
    """Whether it is still ours, and for longer; the place of the pass is kept with it."""
    rows = EmbeddingClaim.objects.filter(pk=claim.pk, holder=claim.holder)
    return bool(rows.update(lease_until=lease_end(LEASE_SECONDS), **_place(claim)))


def _let_go(claim: EmbeddingClaim) -> None:
    EmbeddingClaim.objects.filter(pk=claim.pk, holder=claim.holder).update(
        holder="",
        failures=claim.failures,
        problem=claim.problem,
        rests_until=claim.rests_until,
        **_place(claim),
    )


def _place(claim: EmbeddingClaim) -> dict[str, object]:
    return {name: getattr(claim, name) for name in ("model", "top", "below", "fruitful")}


def _put_off(claim: EmbeddingClaim, problem: Unanswered) -> None:
    rest = min(LONGEST_REST, FIRST_REST * 2 ** min(claim.failures, 10))
    seconds = max(rest, problem.wait)
    claim.failures += 1
    claim.problem = str(problem)[:PROBLEM_LIMIT]
    claim.rests_until = timezone.now() + timedelta(seconds=seconds)
    logger.warning("the service of embeddings: %s; asked again in %d seconds", problem, seconds)

"""Which memories a rule means, how far each goes, and what that saves. Nothing is changed here.

A memory is as old as the last time it was written, told to an agent, read by one, pinned or let go of, or
said yes to; one that commands can see as a file is no older than the last activity there. Fading is no use.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db.models import Case, DateTimeField, F, IntegerField, Q, QuerySet, Value, When
from django.db.models.functions import Coalesce, Greatest, Left
from django.utils import timezone

from memory.models import Memory

from .joining import last_use_of
from .models import DecayRule, Step
from .wording import BEGINNING, left_of, tokens

AT_A_TIME = 500
"""Rows that are read at once; of each, the beginning."""


def meant_by(rule: DecayRule, used: datetime | None) -> QuerySet[Memory]:
    """Those that take a step now, the oldest first, with `stands` (how far each has faded) and `touched`.
    `used`: `last_use_of` the store."""
    now = timezone.now()
    due = Q(pk__in=[])
    for step, days in rule.days.items():
        since = now - timedelta(days=days)
        if used is None or used < since:
            due |= Q(touched__lt=since, stands__lt=step)
    rows = Memory.objects.filter(store=rule.store_id, pinned=False)
    if not rule.also_unconfirmed:
        rows = rows.trusted()
    return rows.annotate(stands=stands(), touched=_touched()).filter(due).order_by("touched", "pk")


def stands() -> Case:
    """How far a memory has faded: not at all, where it was written anew since."""
    same = Q(faded__version_uid=F("version_uid"))
    return Case(
        When(same, then=F("faded__step")),
        default=Value(int(Step.FULL)),
        output_field=IntegerField(),
    )


def _touched() -> Greatest:
    moments = ("used_at", "marked_at", "confirmed_at")
    return Greatest(
        "updated_at",
        *(Coalesce(moment, "updated_at", output_field=DateTimeField()) for moment in moments),
        output_field=DateTimeField(),
    )


def goes_to(rule: DecayRule, touched: datetime, used: datetime | None) -> Step:
    """The furthest step for which it is old enough: of several, the ones before are passed over."""
    age = timezone.now() - (touched if used is None else max(touched, used))
    past = [step for step, days in rule.days.items() if age > timedelta(days=days)]
    return max(past, default=Step.FULL)


def written_at(memory: Memory) -> datetime:
    """The day that a marker names."""
    return memory.valid_from or memory.created_at


# --- dry runs -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Goes:
    """One memory that would take a step today."""

    memory: Memory
    step: Step
    left: str
    """What it would say."""
    saved: int
    """Tokens, about."""


@dataclass(slots=True)
class Extent:
    """What a rule would do today, by step; and the first that would go."""

    memories: dict[Step, int] = field(default_factory=dict)
    saved: dict[Step, int] = field(default_factory=dict)
    first: list[Goes] = field(default_factory=list)

    @property
    def count(self) -> int:
        return sum(self.memories.values())

    @property
    def tokens_saved(self) -> int:
        return sum(self.saved.values())

    @property
    def steps(self) -> list[tuple[Step, int, int]]:
        """Each with how many memories, and what it saves."""
        return [(step, count, self.saved[step]) for step, count in sorted(self.memories.items())]


def extent_of(rule: DecayRule, *, named: int = 0) -> Extent:
    """Texts are made as a pass would make them. `named`: so many are given one by one."""
    extent = Extent()
    for goes in _going(rule):
        extent.memories[goes.step] = extent.memories.get(goes.step, 0) + 1
        extent.saved[goes.step] = extent.saved.get(goes.step, 0) + goes.saved
        if len(extent.first) < named:
            extent.first.append(goes)
    return extent


def _going(rule: DecayRule) -> Iterator[Goes]:
    used = last_use_of(rule.store)
    rows = meant_by(rule, used).annotate(beginning=Left("content", BEGINNING))
    for memory in rows.defer("content", "terms").iterator(AT_A_TIME):
        values = vars(memory)
        step = goes_to(rule, values["touched"], used)
        beginning = values["beginning"]
        more = memory.size > len(beginning.encode())
        left = left_of(step, beginning, more=more, of=written_at(memory))
        saved = tokens(memory.size) - tokens(len(left.encode()))
        yield Goes(memory, step, left, saved)

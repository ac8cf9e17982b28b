"""How far the memories of stores have faded, and what that saved: two questions, however many stores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Q, Sum

from memory.models import Memory, MemoryStore

from .fading import stands
from .models import DecayRun, Step
from .wording import BYTES_PER_TOKEN


@dataclass(frozen=True, slots=True)
class Statistics:
    whole: int = 0
    summaries: int = 0
    markers: int = 0
    gone: int = 0
    """By rules, so far."""
    tokens: int = 0
    """That all of it has now, about."""
    tokens_saved: int = 0
    """By rules, so far, about."""

    @property
    def faded(self) -> int:
        return self.summaries + self.markers + self.gone


def statistics_of(stores: Iterable[MemoryStore]) -> dict[int, Statistics]:
    """By the key of each."""
    keys = [store.pk for store in stores]
    rows = Memory.objects.filter(store__in=keys).annotate(stands=stands()).order_by()
    here = {
        row["store"]: row
        for row in rows.values("store").annotate(
            whole=Count("pk", filter=Q(stands=Step.FULL)),
            summaries=Count("pk", filter=Q(stands=Step.SUMMARY)),
            markers=Count("pk", filter=Q(stands=Step.MARKER)),
            bytes=Sum("size"),
        )
    }
    sums = DecayRun.objects.filter(store__in=keys).order_by().values("store")
    past = {
        row["store"]: row for row in sums.annotate(gone_=Sum("gone"), saved=Sum("tokens_saved"))
    }
    return {key: _statistics(here.get(key, {}), past.get(key, {})) for key in keys}


def _statistics(here: Mapping[str, Any], past: Mapping[str, Any]) -> Statistics:
    return Statistics(
        whole=here.get("whole", 0),
        summaries=here.get("summaries", 0),
        markers=here.get("markers", 0),
        gone=past.get("gone_", 0),
        tokens=here.get("bytes", 0) // BYTES_PER_TOKEN,
        tokens_saved=past.get("saved", 0),
    )

"""How a person's own memories fade, among what she takes along."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.db.models import Q

from accounts.models import User
from memory.models import MemoryStore
from owndata.parts import File, as_lines, in_pages

from .actions.rules import FIELDS
from .models import DecayRun, Faded


def files(user: User) -> Iterator[File]:
    ruled = Q(decay_rule__isnull=False) | Q(decay_runs__isnull=False)
    stores = MemoryStore.objects.visible_to(user).filter(ruled, owner=user).distinct()
    for store in in_pages(stores.select_related("decay_rule")):
        yield File(f"decay/{store.uid}.jsonl", as_lines(_told(store)))


def _told(store: MemoryStore) -> Iterator[dict[str, Any]]:
    """The rule, if there is one; which memories have faded; what was done when."""
    rule = getattr(store, "decay_rule", None)
    if rule is not None:
        names = (*FIELDS.values(), "also_unconfirmed", "in_force_at")
        yield {name: getattr(rule, name) for name in names}
    for faded in in_pages(Faded.objects.filter(memory__store=store).select_related("memory")):
        yield {"memory": faded.memory.uid, "step": faded.step, "at": faded.at}
    for run in in_pages(DecayRun.objects.filter(store=store)):
        names = ("at", "summaries", "markers", "gone", "tokens_saved")
        yield {name: getattr(run, name) for name in names}

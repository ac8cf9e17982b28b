"""What tests of decay begin with: a store of alice's, memories that nobody used for some days, a rule."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from accounts.models import Organisation, User
from decay.actions.passes import fade_next
from decay.actions.rules import put_in_force, save_rule
from decay.models import GRACE, DecayRule, Step
from memory.actions.memories import create_memory
from memory.actions.remembering import own_store
from memory.models import Kind, Memory, MemoryStore
from tests.conversations.conftest import converse, environment, make_agent

__all__ = ["converse", "environment", "make_agent"]

Old = Callable[..., Memory]
InForce = Callable[..., DecayRule]
DAYS = {Step.SUMMARY: 3, Step.MARKER: 30, Step.GONE: 90}
LONG = (
    "The office of Acme is in Lisbon since the spring. It has two floors, and the kitchen is on the second. "
    "Visitors ring at the green door, and Walburga from the reception shows them the way to the terrace, "
    "which nobody finds without her. In summer the meetings are held there until it is too hot for that."
)
LEFT = "The office of Acme is in Lisbon since the spring. …"


@pytest.fixture
def store(alice: User, acme: Organisation) -> MemoryStore:
    return own_store(actor=alice, organisation=acme)


@pytest.fixture
def old(alice: User, store: MemoryStore) -> Old:
    """A memory that was last touched some days ago."""

    def make(days: float, text: str = LONG, **fields: Any) -> Memory:
        where = fields.pop("store", store)
        owner = fields.pop("actor", alice)
        number = Memory.objects.count()
        made = create_memory(
            actor=owner,
            store=where,
            path=fields.pop("path", f"/facts/{number}.md"),
            content=text,
            kind=Kind.FACT,
            key=fields.pop("key", f"key-{number}"),
        )
        then = timezone.now() - timedelta(days=days)
        moments = {"created_at": then, "updated_at": then, "valid_from": then, "confirmed_at": then}
        Memory.objects.filter(pk=made.pk).update(**{**moments, **fields})
        made.refresh_from_db()
        return made

    return make


@pytest.fixture
def in_force(alice: User, store: MemoryStore) -> InForce:
    """A rule by which memories fade by now."""

    def make(days: dict[Step, int] = DAYS, **fields: Any) -> DecayRule:
        where, actor = fields.pop("store", store), fields.pop("actor", alice)
        rule = save_rule(actor=actor, store=where, days=days, **fields)
        put_in_force(actor=actor, store=where, version=rule.version)
        DecayRule.objects.filter(pk=rule.pk).update(in_force_at=timezone.now() - GRACE)
        rule.refresh_from_db()
        return rule

    return make


def fade(**limits: int) -> None:
    """One pass over all stores, as the job makes it."""
    after: int | None = 0
    while after is not None:
        after = fade_next(after, **limits)

"""Who may change what is in a store, asked by the actions, and whom a change is put down to.

Somebody else's is *not found*.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from django.utils.translation import gettext as _

from accounts.models import Organisation, User
from accounts.permissions import may_manage
from harness.errors import Conflict, Forbidden, NotFound

from .models import AuthorKind, Memory, MemoryStore


@dataclass(frozen=True, slots=True)
class Author:
    """Whom versions name: an agent's conversation, a token, or an account."""

    kind: AuthorKind
    uid: str


def author_of(actor: User) -> Author:
    """An account itself."""
    return Author(AuthorKind.SERVICE if actor.is_service else AuthorKind.USER, actor.uid)


def may_write(actor: User, store: MemoryStore) -> bool:
    """Her own, and of what is shared that of organisations she manages and of agents that are hers.
    Asked of stores that she sees."""
    return _may_write(actor, store, partial(may_manage, actor))


def _may_write(actor: User, store: MemoryStore, manages: Callable[[Organisation], bool]) -> bool:
    if store.owner_id is not None:
        return store.owner_id == actor.pk
    if store.agent is not None and store.agent.owner_id == actor.pk:
        return True
    return manages(store.organisation)


def writable(actor: User, stores: Iterable[MemoryStore]) -> dict[int, bool]:
    """`may_write` of each by its key, with one question for each organisation."""
    known: dict[int, bool] = {}

    def manages(organisation: Organisation) -> bool:
        if organisation.pk not in known:
            known[organisation.pk] = may_manage(actor, organisation)
        return known[organisation.pk]

    return {each.pk: _may_write(actor, each, manages) for each in stores}


def held_store(actor: User, store: MemoryStore) -> MemoryStore:
    """It as it is now, held until the transaction ends. Raises NotFound, and Forbidden for who only
    reads in it."""
    seen = MemoryStore.objects.visible_to(actor).filter(pk=store.pk).exists()
    rows = MemoryStore.objects.select_for_update(of=("self",), no_key=True).filter(pk=store.pk)
    held = rows.select_related("organisation", "agent").first()
    if held is None or not seen:
        raise NotFound(_("There is no such memory store."))
    if not may_write(actor, held):
        raise Forbidden(
            _("This memory is shared, and you may read it only."),
            hint=_("Owners and administrators of the organisation change what is shared."),
        )
    return held


def require_in_force(store: MemoryStore) -> None:
    if store.archived_at is not None:
        raise Conflict(
            _("This memory store is archived: nothing is written to it any more."),
            hint=_("Use another store."),
        )


def held_memory(actor: User, memory: Memory) -> Memory:
    """It as it is now, its store held first. Raises as `held_store`."""
    held_store(actor, memory.store)
    held = (
        Memory.objects.select_for_update(of=("self",), no_key=True)
        .select_related("store__organisation", "store__agent")
        .filter(pk=memory.pk)
        .first()
    )
    if held is None:
        raise NotFound(_("There is no such memory."))
    return held

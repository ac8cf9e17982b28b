"""A person gives a conversation memory stores when it begins: to read, or to read and write."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import User
from conversations.actions.own import own_conversation
from conversations.models import Conversation
from harness.errors import Conflict, Invalid
from harness.faults import place
from memory.access import may_write
from memory.models import MemoryStore
from recall.models import Access, AttachedStore

MOST = 8
"""Of one conversation."""
INSTRUCTIONS_LIMIT = 4_096
_OTHER = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True)
class Wanted:
    store_uid: str
    access: str = Access.READ_WRITE
    instructions: str = ""
    place: int | None = None
    """Where it was named, for errors; None: where it stands."""


def attach_stores(*, actor: User, conversation: Conversation, stores: Sequence[Wanted]) -> None:
    """In this order. Raises NotFound for a conversation that is not the actor's, Invalid, naming the place,
    for a store that she does not see in this organisation, that is archived, that she may only read and
    would have written, or that is named twice, for too many and too long instructions, and Conflict once
    the conversation has begun and where its commands run on a worker's machine."""
    with transaction.atomic():
        _attach(actor, own_conversation(actor, conversation), stores)


def _attach(actor: User, conversation: Conversation, stores: Sequence[Wanted]) -> None:
    if conversation.environment.has_workers:
        raise Conflict(
            _("Commands run on a worker's machine, where no memory store can be shown."),
            hint=_("Choose another environment."),
        )
    if conversation.message_count or conversation.last_seq > 1:
        raise Conflict(
            _("Memory stores are given to a conversation when it begins."),
            hint=_("Begin a new one."),
        )
    if len(stores) > MOST:
        raise Invalid(
            _("A session has %(most)d memory stores at most.") % {"most": MOST},
            field="resources",
            hint=_("Name fewer."),
        )
    seen = MemoryStore.objects.visible_to(actor).filter(organisation=conversation.organisation_id)
    seen = seen.select_related("organisation", "agent")
    by_uid = {store.uid: store for store in seen.filter(uid__in=[one.store_uid for one in stores])}
    slugs: set[str] = set()
    for number, wanted in enumerate(stores):
        field = place("resources", number if wanted.place is None else wanted.place)
        store = by_uid.pop(wanted.store_uid, None)
        _check(actor, store, wanted, field)
        if store is not None:
            slug = _slug(store.name, slugs)
            slugs.add(slug)
            AttachedStore.objects.create(
                conversation=conversation,
                store=store,
                access=wanted.access,
                instructions=wanted.instructions,
                name=store.name,
                description=store.description,
                slug=slug,
            )


def _check(actor: User, store: MemoryStore | None, wanted: Wanted, field: str) -> None:
    if store is None:
        raise Invalid(
            _("There is no memory store “%(uid)s”, or it is named twice.")
            % {"uid": wanted.store_uid[:60]},
            field=field,
            hint=_("GET /v1/memory_stores lists yours."),
        )
    if store.archived_at is not None:
        raise Invalid(
            _("This memory store is archived."), field=field, hint=_("Name one in force.")
        )
    if wanted.access == Access.READ_WRITE and not may_write(actor, store):
        raise Invalid(
            _("You may read this memory store only."), field=field, hint=_("Attach it read_only.")
        )
    if len(wanted.instructions) > INSTRUCTIONS_LIMIT:
        raise Invalid(
            _("Instructions have %(most)d characters at most.") % {"most": INSTRUCTIONS_LIMIT},
            field=field,
            hint=_("Shorten them."),
        )


def _slug(name: str, taken: set[str]) -> str:
    base = _OTHER.sub("-", name.lower()).strip("-")[:80] or "memory"
    number, slug = 1, base
    while slug in taken:
        number += 1
        slug = f"{base}-{number}"
    return slug

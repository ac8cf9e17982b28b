"""Memory stores come into being, are renamed, archived and deleted."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import Organisation, User
from accounts.permissions import require_manager, require_member
from accounts.persons import hold_place
from agents.models import Agent
from audit.models import AuditEntry
from harness.errors import Invalid, LimitReached, NotFound, TooLarge
from memory.access import held_store, may_write, require_in_force
from memory.auditing import about_store
from memory.models import MemoryStore
from memory.models.store import DESCRIPTION_LIMIT, NAME_LIMIT
from wire.metadata import check_metadata

PERSON, AGENT, ORGANIZATION = "person", "agent", "organization"


def create_store(
    *,
    actor: User,
    organisation: Organisation,
    name: str,
    description: str = "",
    metadata: Mapping[str, str] | None = None,
    scope: str = PERSON,
    agent: Agent | None = None,
) -> MemoryStore:
    """The actor's own, an agent's or the organisation's. Raises NotFound for a stranger and for an agent
    that the actor does not see, Forbidden for what is shared unless she manages it, Invalid, TooLarge,
    LimitReached."""
    require_member(actor, organisation)
    if scope == AGENT and agent is None:
        raise Invalid(_("It is not said whose it is."), field="agent", hint=_("Name the agent."))
    owner = actor if scope == PERSON else None
    store = MemoryStore(
        organisation=organisation,
        owner=owner,
        agent=agent if scope == AGENT else None,
        name=clean_name(name),
        description=_description(description),
        metadata=check_metadata(metadata or {}),
    )
    if store.agent is not None:
        seen = Agent.objects.visible_to(actor).usable_in(organisation)
        if not seen.filter(pk=store.agent.pk).exists():
            raise NotFound(_("There is no such agent."))
    if owner is None and not may_write(actor, store):
        require_manager(actor, organisation)
    with transaction.atomic():
        # The lock keeps two at once from being one too many.
        hers = hold_place(actor, organisation)
        held = MemoryStore.objects.in_force().filter(organisation=organisation)
        held = held.filter(owner=None) if owner is None else held.filter(owner__in=hers)
        if held.count() >= settings.AGENTSITE_MEMORY_STORES:
            raise LimitReached(
                _("There are %(most)d memory stores already.")
                % {"most": settings.AGENTSITE_MEMORY_STORES},
                hint=_("Archive or delete one."),
            )
        store.save(force_insert=True)
        about_store(AuditEntry.Action.MEMORY_STORE_MADE, actor, store, scope=store.scope)
    return store


def change_store(
    *,
    actor: User,
    store: MemoryStore,
    name: str | None = None,
    description: str | None = None,
    metadata: Mapping[str, str | None] | None = None,
) -> MemoryStore:
    """None: as it was; `metadata` merges, None as a value takes the name away. Raises NotFound,
    Forbidden, Conflict once it is archived, Invalid and TooLarge."""
    with transaction.atomic():
        held = held_store(actor, store)
        require_in_force(held)
        if name is not None:
            held.name = clean_name(name)
        if description is not None:
            held.description = _description(description)
        if metadata is not None:
            noted = {**held.metadata, **metadata}
            held.metadata = check_metadata({k: v for k, v in noted.items() if v is not None})
        held.updated_at = timezone.now()
        held.save()
        about_store(AuditEntry.Action.MEMORY_STORE_CHANGED, actor, held)
    return held


def archive_store(*, actor: User, store: MemoryStore) -> MemoryStore:
    """For good: what is in it can be read and deleted, and nothing is written to it. Again changes
    nothing. Raises NotFound, Forbidden."""
    with transaction.atomic():
        held = held_store(actor, store)
        if held.archived_at is None:
            held.archived_at = held.updated_at = timezone.now()
            held.main = False
            held.save()
            about_store(AuditEntry.Action.MEMORY_STORE_ARCHIVED, actor, held)
    return held


def delete_store(*, actor: User, store: MemoryStore) -> None:
    """With all memories and versions, at once. Raises NotFound, Forbidden."""
    with transaction.atomic():
        held = held_store(actor, store)
        about_store(
            AuditEntry.Action.MEMORY_STORE_DELETED, actor, held, memories=held.memories.count()
        )
        held.delete()


def clean_name(name: str) -> str:
    if any(unicodedata.category(sign) in {"Cc", "Cs"} for sign in name):
        raise Invalid(_("A name has no control characters."), field="name", hint=_("Type another."))
    name = name.strip()
    if not 1 <= len(name) <= NAME_LIMIT:
        raise Invalid(
            _("A name has 1 to %(most)d characters.") % {"most": NAME_LIMIT},
            field="name",
            hint=_("Type another."),
        )
    return name


def _description(text: str) -> str:
    if len(text) > DESCRIPTION_LIMIT:
        raise TooLarge(
            _("The description is longer than %(most)d characters.") % {"most": DESCRIPTION_LIMIT},
            field="description",
            hint=_("Shorten it."),
        )
    return text.replace("\0", "")

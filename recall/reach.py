"""Which memory and which documents a conversation may use: no memory while it is switched off, and nothing of
its owner's own as soon as somebody else can read along.

What is found there is narrowed to what the owner sees (`memory.searching`) each time it is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Q

from conversations.ancestry import root_of
from conversations.models import Conversation, Share
from documents.models import Collection, CollectionQuerySet
from memory.models import MemoryStore
from memory.models.store import MemoryStoreQuerySet

from .models import AttachedStore, MemoryOff


@dataclass(frozen=True, slots=True)
class Reach:
    on: bool
    """Memory is used at all."""
    personal: bool
    """The owner's own as well: she alone reads here, and she has not switched it off."""


def reach_of(conversation: Conversation) -> Reach:
    if not conversation.features.memory:
        return Reach(on=False, personal=False)
    off = MemoryOff.objects.filter(
        user=conversation.owner_id, organisation=conversation.organisation_id
    )
    if off.exists():
        return Reach(on=True, personal=False)
    return Reach(on=True, personal=not read_by_others(conversation))


def read_by_others(conversation: Conversation) -> bool:
    """Whether it, or the one that it was begun in, is shared with anybody."""
    root = root_of(conversation) if conversation.parent_id else conversation.pk
    return Share.objects.filter(conversation__in={root, conversation.pk}).exists()


def stores_for(conversation: Conversation, reach: Reach) -> MemoryStoreQuerySet:
    """Those of the organisation and of the agent, and where it may be the owner's main one and those that the
    conversation was given."""
    if not reach.on:
        return MemoryStore.objects.none()
    agent = conversation.agent_version.agent_id
    shared = Q(owner=None) & (Q(agent=None) | Q(agent=agent))
    given = Q(pk__in=AttachedStore.objects.filter(conversation=conversation).values("store"))
    mine = Q(owner=conversation.owner_id) & (Q(main=True) | given)
    return (
        MemoryStore.objects.visible_to(conversation.owner)
        .in_force()
        .filter(shared | mine if reach.personal else shared)
        .filter(organisation=conversation.organisation_id)
    )


def collections_for(conversation: Conversation) -> CollectionQuerySet:
    """The organisation's, and its owner's own unless others read along."""
    seen = Collection.objects.visible_to(conversation.owner)
    seen = seen.filter(organisation=conversation.organisation_id)
    return seen.filter(owner=None) if read_by_others(conversation) else seen

"""Which memory and which documents a conversation may use: no memory while it is switched off, and nothing of
its owner's own as soon as somebody else can read along.

What is found there is narrowed to what the owner sees (`memory.searching`) each time it is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet

from accounts.models import Organisation, User
from conversations.ancestry import root_of
from conversations.models import Conversation, Share
from documents.models import Collection, CollectionQuerySet
from jobs.prepared import Given, Prepared
from memory.models import Memory, MemoryStore
from memory.models.store import MemoryStoreQuerySet

from .models import AttachedStore, MemoryOff, Recall

_SHARES = Prepared(
    lambda given: (
        Share.objects.filter(Q(conversation=given.root) | Q(conversation=given.conversation))
        .order_by()
        .values_list("pk")
    )
)


@dataclass(frozen=True, slots=True)
class Reach:
    on: bool
    """Memory is used at all."""
    personal: bool
    """The owner's own as well: she alone reads here, and she has not switched it off."""
    memories: bool = False
    """There are any in its stores."""
    documents: bool = False
    """There is any of `collections_for`."""
    recalled: bool = False
    """A message of it was reminded of something."""


def reach_of(conversation: Conversation) -> Reach:
    """As of now: one query, for each message and again for each run."""
    if not conversation.features.memory:
        return Reach(on=False, personal=False)
    place = vars(_place_of(conversation))
    found = _STANDS.first(root=_root(conversation), **place)
    if found is None:
        return Reach(on=True, personal=False)
    off, shared, recalled, own, common, documents, common_documents = found
    personal = not (off or shared)
    open_ = conversation.owner.is_active
    return Reach(
        on=True,
        personal=personal,
        memories=open_ and bool(own if personal else common),
        documents=open_ and bool(common_documents if shared else documents),
        recalled=bool(recalled),
    )


def read_by_others(conversation: Conversation) -> bool:
    """Whether it, or the one that it was begun in, is shared with anybody."""
    return _SHARES.exists(root=_root(conversation), conversation=conversation.pk)


def _root(conversation: Conversation) -> int:
    return root_of(conversation) if conversation.parent_id else conversation.pk


def stores_for(conversation: Conversation, reach: Reach) -> MemoryStoreQuerySet:
    """Those of the organisation and of the agent, and where it may be the owner's main one and those that the
    conversation was given."""
    if not (reach.on and conversation.owner.is_active):
        return MemoryStore.objects.none()
    return _stores(_place_of(conversation), personal=reach.personal)


def stores_of_new(
    owner: User, organisation: Organisation, agent_id: int, *, read_by_others: bool
) -> MemoryStoreQuerySet:
    """Those of a conversation that would be begun now with memory on."""
    if not owner.is_active:
        return MemoryStore.objects.none()
    off = MemoryOff.objects.filter(user=owner, organisation=organisation)
    place = SimpleNamespace(
        user=owner.pk, organisation=organisation.pk, agent=agent_id, conversation=None
    )
    return _stores(place, personal=not (read_by_others or off.exists()))


def _place_of(conversation: Conversation) -> SimpleNamespace:
    return SimpleNamespace(
        user=conversation.owner_id,
        organisation=conversation.organisation_id,
        agent=conversation.agent_version.agent_id,
        conversation=conversation.pk,
    )


def _stores(place: Any, *, personal: bool) -> MemoryStoreQuerySet:
    """`place`: the ids of who is there, or what is given of a query that is built once."""
    shared = Q(owner=None) & (Q(agent=None) | Q(agent=place.agent))
    attached = AttachedStore.objects.filter(conversation=place.conversation)
    mine = Q(owner=place.user) & (Q(main=True) | Q(pk__in=attached.values("store")))
    return (
        MemoryStore.objects.seen_by(place.user)
        .in_force()
        .filter(shared | mine if personal else shared)
        .filter(organisation=place.organisation)
    )


_COLLECTIONS = Prepared(
    lambda given: _collections(given.user, given.organisation).values_list("pk")[:1]
)
_COMMON = Prepared(
    lambda given: (
        _collections(given.user, given.organisation).filter(owner=None).values_list("pk")[:1]
    )
)


def _collections(user: Any, organisation: Any) -> CollectionQuerySet:
    return Collection.objects.seen_by(user).filter(organisation=organisation)


def _standing(given: Given) -> QuerySet[Conversation, tuple[bool, ...]]:
    off = MemoryOff.objects.filter(user=given.user, organisation=given.organisation)
    shares = Share.objects.filter(Q(conversation=given.root) | Q(conversation=given.conversation))
    there = {
        "off": off,
        "shared": shares,
        "recalled": Recall.objects.filter(conversation=given.conversation),
        "own": Memory.objects.filter(store__in=_stores(given, personal=True)),
        "common": Memory.objects.filter(store__in=_stores(given, personal=False)),
        "documents": _collections(given.user, given.organisation),
        "common_documents": _collections(given.user, given.organisation).filter(owner=None),
    }
    row = Conversation.objects.filter(pk=given.conversation).order_by()
    asked = {name: Exists(rows.order_by()) for name, rows in there.items()}
    return row.annotate(**asked).values_list(*asked)


_STANDS = Prepared(_standing)


def may_have_collections() -> Exists:
    """Whether a conversation may have any of `collections_for`: its organisation has, or its owner there."""
    there = Collection.objects.filter(organisation=OuterRef("organisation"))
    return Exists(there.filter(Q(owner=None) | Q(owner=OuterRef("owner"))))


def has_collections(conversation: Conversation) -> bool:
    """Whether `collections_for` holds any."""
    place = {"user": conversation.owner_id, "organisation": conversation.organisation_id}
    if not (conversation.owner.is_active and _COLLECTIONS.exists(**place)):
        return False
    return not read_by_others(conversation) or _COMMON.exists(**place)


def collections_for(conversation: Conversation) -> CollectionQuerySet:
    """The organisation's, and its owner's own unless others read along."""
    seen = Collection.objects.visible_to(conversation.owner)
    seen = seen.filter(organisation=conversation.organisation_id)
    return seen.filter(owner=None) if read_by_others(conversation) else seen

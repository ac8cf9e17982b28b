"""What the memory page, `/api` and the command line show of memories, and the file of an export."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from django.db.models import Count, QuerySet

from accounts.models import Membership, Organisation, User
from agents.models import Agent
from chat.links import address_of
from conversations.models import Conversation, Event
from documents.models import Passage
from harness.content import text_of
from harness.events import MessageEdited, UserMessage
from memory.access import writable
from memory.models import Memory, MemoryStore
from memory.retrieval.question import QUESTION_LIMIT
from memory.retrieval.words import as_said
from memory.searching import matching
from reading.unseen import visible

from .before import said_now
from .beside import messages_of
from .models import Recall

MOST = 200
RECALLS = 50
SHOWN = 400
"""Characters of a memory in a list."""


def stores_in(user: User, organisation: Organisation) -> QuerySet[MemoryStore]:
    """Her own first, then what is shared."""
    rows = MemoryStore.objects.visible_to(user).filter(organisation=organisation)
    rows = rows.annotate(held=Count("memories"))
    rows = rows.select_related("organisation", "agent", "decay_rule")
    return rows.order_by("-main", "-owner", "name", "pk")


def memories_in(
    user: User, organisation: Organisation, *, words: str = "", store: str = ""
) -> list[dict[str, Any]]:
    """The newest, or those that have all words, as pages show them."""
    stores = list(stores_in(user, organisation))
    chosen = [each for each in stores if store in {"", each.uid}]
    seen = Memory.objects.visible_to(user).filter(store__in=chosen)
    rows = matching(seen, words, chosen)
    shown = rows.select_related("store__organisation", "store__agent", "faded")
    return as_rows(user, list(shown.order_by("-pinned", "-updated_at", "-pk")[:MOST]))


def as_rows(user: User, found: list[Memory]) -> list[dict[str, Any]]:
    """As pages show memories that she sees, with their stores."""
    sources, messages = _sources(user, found), messages_of(user, found)
    may = writable(user, {memory.store for memory in found})
    names = agent_names(user, found)
    return [
        {
            "memory": memory,
            "text": (text := text_shown(memory))[:SHOWN],
            "cut": (cut := len(text) > SHOWN),
            "path": visible(memory.path),
            # A yes is for words that were read whole, and for what they take the place of.
            "may_confirm": (shown_whole := not cut and memory.supersedes_id is None)
            and memory.waits,
            "shown_whole": shown_whole,
            "source": (source := sources.get(memory.source_conversation)),
            "place": place_of(source, memory),
            "message": messages.get(memory.uid),
            "agent": names.get(memory.source_agent),
            "may_write": may[memory.store_id],
            "waits": memory.waits,
        }
        for memory in found
    ]


def text_shown(memory: Memory) -> str:
    """What a person reads of it; of what waits for her yes she sees every sign."""
    return visible(memory.content) if memory.waits else memory.content


def place_of(source: Conversation | None, memory: Memory) -> str:
    """The address of where it was learned in a conversation that she may read."""
    if source is None:
        return ""
    event = memory.source_event
    return address_of(source, event) if event else source.get_absolute_url()


def _sources(user: User, memories: list[Memory]) -> dict[str, Conversation]:
    uids = {memory.source_conversation for memory in memories} - {""}
    seen = Conversation.objects.visible_to(user).filter(uid__in=uids)
    return {each.uid: each for each in seen}


def agent_names(user: User, memories: list[Memory]) -> dict[str, str]:
    uids = {memory.source_agent for memory in memories} - {""}
    return dict(Agent.objects.visible_to(user).filter(uid__in=uids).values_list("uid", "name"))


def recalls_in(user: User, conversation: Conversation) -> list[dict[str, Any]]:
    """What was recalled in a conversation of hers, newest first: each memory, turn and passage as it is now,
    with the words it was found by; of one that is gone, only that."""
    rows = (
        Recall.objects.visible_to(user)
        .filter(conversation=conversation)
        .exclude(hits=[], passages=[], turns=[])
    )
    found = list(rows.order_by("-pk")[:RECALLS])
    passages, said = _passages(user, found), _said(conversation, found)
    turns = said_now(conversation, [recall.turns for recall in found])
    uids = {hit["memory"] for recall in found for hit in recall.hits}
    seen = Memory.objects.visible_to(user).filter(uid__in=uids).select_related("store")
    by_uid = {memory.uid: memory for memory in seen}
    return [
        {
            "recall": recall,
            "hits": [
                {
                    "memory": by_uid.get(hit["memory"]),
                    "words": as_said(hit["words"], said.get(recall.event_uid, "")),
                    "score": hit["score"],
                    "likeness": hit.get("likeness"),
                    "percent": round(100 * (hit.get("likeness") or 0)),
                    "changed": hit["memory"] in by_uid
                    and by_uid[hit["memory"]].version_uid != hit["version"],
                }
                for hit in recall.hits
            ],
            "passages": [
                {
                    "passage": passages.get(each["passage"]),
                    "words": as_said(each["words"], said.get(recall.event_uid, "")),
                    "likeness": each["likeness"],
                    "percent": round(100 * (each["likeness"] or 0)),
                }
                for each in recall.passages
            ],
            "turns": [
                {
                    "id": each["turn"],
                    "text": turns.get(each["turn"]),
                    "address": address_of(conversation, each["turn"]),
                    "words": as_said(each["words"], said.get(recall.event_uid, "")),
                }
                for each in recall.turns
            ],
        }
        for recall in found
    ]


def _said(conversation: Conversation, recalls: list[Recall]) -> dict[str, str]:
    """What the messages say that recalled something, by their events, as far as it was looked for."""
    uids = [recall.event_uid for recall in recalls]
    rows = Event.objects.filter(conversation=conversation, uid__in=uids)
    values = ((row.uid, row.value) for row in rows)
    return {
        uid: text_of(value.content)[:QUESTION_LIMIT]
        for uid, value in values
        if isinstance(value, UserMessage | MessageEdited)
    }


def _passages(user: User, recalls: list[Recall]) -> dict[str, Passage]:
    uids = {each["passage"] for recall in recalls for each in recall.passages}
    if not uids:
        return {}
    seen = Passage.objects.visible_to(user).filter(uid__in=uids)
    return {each.uid: each for each in seen.select_related("document")}


def exported(user: User, organisation: Organisation) -> Iterator[dict[str, Any]]:
    """All of the person's own in the organisation, with every version that still says something."""
    stores = MemoryStore.objects.visible_to(user).filter(organisation=organisation, owner=user)
    for store in stores.order_by("pk"):
        versions: dict[str, list[dict[str, Any]]] = {}
        for version in store.versions.filter(redacted_at=None):
            versions.setdefault(version.memory_uid, []).append(
                {
                    "id": version.uid,
                    "operation": version.operation,
                    "content": version.content,
                    "by": f"{version.author_kind}:{version.author_uid}",
                    "at": version.created_at,
                }
            )
        for memory in store.memories.order_by("pk"):
            yield {**as_row(memory, store), "versions": versions.get(memory.uid, [])}


def still_exported(organisation: Organisation) -> Callable[[User], bool]:
    """Whether somebody may take along what she has there: as long as she belongs to it."""
    key = organisation.pk  # now: which one a request is about is found out when it is asked first
    return lambda user: Membership.objects.filter(organisation=key, user=user).exists()


def as_row(memory: Memory, store: MemoryStore) -> dict[str, Any]:
    return {
        "id": memory.uid,
        "store": store.uid,
        "scope": store.scope,
        "path": memory.path,
        "kind": memory.kind,
        "key": memory.key,
        "content": memory.content,
        "version_uid": memory.version_uid,
        "pinned": memory.pinned,
        "untrusted": memory.untrusted,
        "confirmed_at": memory.confirmed_at,
        "valid_from": memory.valid_from,
        "valid_until": memory.valid_until,
        "source_conversation": memory.source_conversation,
        "source_event": memory.source_event,
        "source_agent": memory.source_agent,
        "uses": memory.uses,
        "used_at": memory.used_at,
        "created_at": memory.created_at,
        "updated_at": memory.updated_at,
    }

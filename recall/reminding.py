"""What a message reminds an agent of: found when the message is stored, in its transaction, and kept.

So it can be told for ever why something was recalled, and a run that is done again is reminded of the same.
What becomes of it in the prompt is `kitpart`'s.
"""

from __future__ import annotations

from functools import partial

from django.db import transaction
from django.utils import timezone

from conversations.log import append
from conversations.models import Conversation, Event
from harness.content import text_of
from harness.events import Event as EventValue
from harness.events import MessageEdited, UserMessage
from harness.history import Entry
from memory.models import Memory
from memory.searching import Hit, Recalled, search_memories

from .events import MemoryRecalled
from .models import Recall
from .passages import passages_for
from .reach import reach_of, stores_for

MOST = 5
"""Memories that one message recalls."""
WORDS = 2
"""Of a message that a memory has to have; of a question that it covers one is enough, and none where its
vector is near to the message's."""
STRONG = 0.4
"""Share of the best score that others need."""
NOTHING = Recalled((), 0.0, low=True)


def remind(conversation: Conversation, row: Event, event: EventValue) -> None:
    """In the transaction of the message; where there is nothing to find it costs a few queries."""
    match event:
        case UserMessage(content=content):
            uid = row.uid
        case MessageEdited(content=content, event_id=uid):
            Recall.objects.filter(conversation=conversation, message_uid=uid).delete()
        case _:
            return
    text = text_of(content)
    reach = reach_of(conversation)
    if not reach.on or not text.strip():
        return
    now = timezone.now()
    stores = stores_for(conversation, reach)
    found = NOTHING
    if Memory.objects.filter(store__in=stores).exists():
        found = search_memories(conversation.owner, text, stores, limit=20, at=now, for_agents=True)
    hits = _worth_telling(found)
    passages = passages_for(conversation, text)
    if not hits and not passages:
        return
    recall = Recall.objects.create(
        conversation=conversation,
        message_uid=uid,
        confidence=found.confidence,
        hits=[
            {
                "memory": hit.memory.uid,
                "version": hit.memory.version_uid,
                "store": hit.memory.store.uid,
                "score": hit.ranked.score,
                "words": list(hit.why),
                "likeness": hit.likeness,
            }
            for hit in hits
        ],
        passages=passages,
    )
    keys = [hit.memory.pk for hit in hits]
    Memory.objects.filter(pk__in=keys).count_use()
    told = MemoryRecalled(
        recall_id=recall.uid,
        message_id=uid,
        conversation_id=conversation.uid,
        count=len(hits),
        passages=len(passages),
    )
    transaction.on_commit(partial(append, conversation.pk, [Entry.of(told)]))


def _worth_telling(found: Recalled) -> list[Hit]:
    if not found.hits:
        return []
    best = max(hit.ranked.score for hit in found.hits)
    enough = 1 if not found.low else WORDS
    return [
        hit
        for hit in found.hits
        if (len(hit.why) >= enough or (hit.likeness or 0.0) >= found.alike)
        and hit.ranked.score >= STRONG * best
    ][:MOST]

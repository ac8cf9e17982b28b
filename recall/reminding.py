"""What a message reminds an agent of: found when the message is stored, in its transaction, and kept.

So it can be told for ever why something was recalled, and a run that is done again is reminded of the same.
Where a service makes the vectors, that transaction does not wait for it: what words find is kept, and the
next run looks once more before it begins (`look_again`). What becomes of it in the prompt is `kitpart`'s.
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
from jobs.prepared import Prepared
from memory.embedding.asking import look_up
from memory.embedding.chosen import chosen_service
from memory.embedding.paying import Payer
from memory.models import Memory
from memory.searching import Hit, Recalled, search_memories

from .before import turns_for
from .events import MemoryRecalled
from .models import Recall
from .passages import has_passages, passages_for
from .reach import reach_of, stores_for

MOST = 5
"""Memories that one message recalls."""
WORDS = 2
"""Of a message that a memory has to have; of a question that it covers one is enough, and none where its
vector is near to the message's."""
STRONG = 0.4
"""Share of the best score that others need."""
NOTHING = Recalled((), 0.0, low=True)
AGAIN = 3
"""Messages that one run looks again for, the newest."""
_WAITING = Prepared(
    lambda given: (
        Recall.objects.filter(conversation=given.conversation, waits=True)
        .order_by("-pk")
        .values_list("pk", "event_uid")
    )
)
_FOUND = ["hits", "passages", "turns", "confidence", "waits", "by_words_alone"]


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
    if not text.strip():
        return
    recall = Recall(conversation=conversation, message_uid=uid, event_uid=row.uid)
    there = _find(conversation, recall, text)
    recall.waits = there and chosen_service() is not None
    if recall.waits or recall.any:
        recall.save(force_insert=True)
        _tell(conversation, recall)


def look_again(conversation: Conversation) -> None:
    """Before a run, outside of any transaction: with the vectors of what was asked since the last one. A
    service that does not answer in a moment is done without."""
    found = _WAITING.all(conversation=conversation.pk)
    if not found:
        return
    payer = Payer(conversation.organisation_id, conversation.owner_id)
    for pk, uid in found[:AGAIN]:
        near = look_up(payer, conversation.owner_id, _text_of(conversation, uid))
        with transaction.atomic():
            # As it is now: a message may have been taken out while the service was asked.
            recall = Recall.objects.select_for_update().filter(pk=pk).first()
            if recall is None:
                continue
            had = recall.any
            text = _text_of(conversation, uid)
            if near and text.strip():
                _find(conversation, recall, text)
            recall.by_words_alone, recall.waits = not near, False
            if not recall.any:
                recall.delete()
                continue
            recall.save(update_fields=_FOUND)
            if not had:
                _tell(conversation, recall)
    older = Recall.objects.filter(pk__in=[pk for pk, _uid in found[AGAIN:]])
    older.filter(hits=[], passages=[], turns=[]).delete()
    older.update(waits=False, by_words_alone=True)


def _text_of(conversation: Conversation, uid: str) -> str:
    event = Event.objects.filter(conversation=conversation, uid=uid).first()
    value = event.value if event is not None else None
    return text_of(value.content) if isinstance(value, UserMessage | MessageEdited) else ""


def _find(conversation: Conversation, recall: Recall, text: str) -> bool:
    """Have it say what is found now; whether there is anything to find it in."""
    reach = reach_of(conversation)
    if not reach.on:
        recall.hits, recall.passages, recall.turns, recall.confidence = [], [], [], 0.0
        return False
    found = NOTHING
    if reach.memories:
        owner, now = conversation.owner, timezone.now()
        stores = stores_for(conversation, reach)
        found = search_memories(owner, text, stores, limit=20, at=now, for_agents=True)
    hits = _worth_telling(found)
    told = {hit["memory"] for hit in recall.hits}
    recall.confidence = found.confidence
    recall.hits = [
        {
            "memory": hit.memory.uid,
            "version": hit.memory.version_uid,
            "store": hit.memory.store.uid,
            "score": hit.ranked.score,
            "words": list(hit.why),
            "likeness": hit.likeness,
        }
        for hit in hits
    ]
    read = has_passages(conversation, reach)
    recall.passages = passages_for(conversation, text) if read else []
    recall.turns = turns_for(conversation, text)
    keys = [hit.memory.pk for hit in hits if hit.memory.uid not in told]
    if keys:
        Memory.objects.filter(pk__in=keys).count_use()
    return reach.memories or read


def _tell(conversation: Conversation, recall: Recall) -> None:
    if not recall.any:
        return
    told = MemoryRecalled(
        recall_id=recall.uid,
        message_id=recall.message_uid,
        conversation_id=conversation.uid,
        count=len(recall.hits),
        passages=len(recall.passages),
        turns=len(recall.turns),
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

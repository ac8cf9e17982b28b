"""Finds what was said in a person's earlier conversations: candidates by the index of messages, ordered as
turns (`memory.retrieval.turns`), with the neighbours that a turn has in its own conversation.

Only conversations that she may read are looked at, and none of them while others read along where she asks.
"""

from __future__ import annotations

from collections.abc import Sequence

from conversations.models import Conversation, Event, SearchEntry
from conversations.models.conversation import ConversationQuerySet
from conversations.search import matching
from harness.errors import Invalid
from memory.retrieval.question import read_question
from memory.retrieval.turns import Found, Turn, TurnIndex

from .reach import reach_of

TERMS = 8
"""Terms of a question that conversations are chosen by."""
CONVERSATIONS = 8
"""So many are looked through."""
OF_EACH_TERM = 50
TURNS = 1_500
"""Of one conversation, the newest."""
TEXT = 4_000
"""Characters of a turn that are compared."""
AROUND = 3
"""Turns on each side that are read with one."""
NOTHING = Found((), 0.0)


def search_past(conversation: Conversation, query: str, *, limit: int) -> Found:
    """Turns of other conversations in the same organisation that the owner may read."""
    if not reach_of(conversation).personal:
        return NOTHING
    hers = Conversation.objects.visible_to(conversation.owner).filter(
        organisation=conversation.organisation, parent=None
    )
    chosen = _chosen(hers.exclude(pk=conversation.pk), query)
    if not chosen:
        return NOTHING
    return TurnIndex(_turns(chosen)).search(query, limit=limit)


def around(conversation: Conversation, seq: int) -> str:
    """What was said at a place of a conversation, and beside it."""
    entries = SearchEntry.objects.filter(conversation=conversation, seq__gt=0)
    before = list(entries.filter(seq__lte=seq).order_by("-seq")[: AROUND + 1])[::-1]
    after = list(entries.filter(seq__gt=seq).order_by("seq")[:AROUND])
    turns = _as_turns(conversation, [*before, *after])
    title = conversation.title or conversation.uid
    lines = [f"“{title}”, {conversation.created_at:%Y-%m-%d}"]
    lines += [f"[{turn.id}] {turn.speaker}: {turn.text}" for turn in turns]
    return "\n".join(lines)


def _chosen(conversations: ConversationQuerySet, query: str) -> list[Conversation]:
    """Those in which most of the rarer terms of the question stand, by the beginnings of words."""
    counted: dict[int, float] = {}
    for term in read_question(query).terms[:TERMS]:
        try:
            rows = matching(conversations, [term])
        except Invalid:
            continue
        keys = list(rows.order_by("-active_at").values_list("pk", flat=True)[:OF_EACH_TERM])
        for key in keys:
            counted[key] = counted.get(key, 0.0) + 1 / (1 + len(keys))
    best = sorted(counted, key=lambda key: (-counted[key], -key))[:CONVERSATIONS]
    return list(Conversation.objects.filter(pk__in=best).select_related("owner").order_by("pk"))


def _turns(conversations: Sequence[Conversation]) -> list[Turn]:
    found = []
    for conversation in conversations:
        rows = SearchEntry.objects.filter(conversation=conversation, seq__gt=0)
        found += _as_turns(conversation, list(rows.order_by("-seq")[:TURNS])[::-1])
    return found


def _as_turns(conversation: Conversation, entries: Sequence[SearchEntry]) -> list[Turn]:
    events = Event.objects.filter(
        conversation=conversation, seq__in=[entry.seq for entry in entries]
    )
    said = {seq: (kind, at) for seq, kind, at in events.values_list("seq", "type", "created_at")}
    turns = []
    for entry in entries:
        kind, at = said.get(entry.seq, ("", None))
        speaker = "person" if kind == "user.message" else "agent"
        turns.append(Turn(str(entry.seq), entry.text[:TEXT], speaker, at, conversation.uid))
    return turns

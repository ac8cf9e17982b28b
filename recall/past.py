"""Finds what was said in a person's other conversations: candidates by the index of messages, ordered as
turns (`memory.retrieval.turns`), with the neighbours that a turn has in its own conversation. Of
conversations that descend from the asking one, and of those from which it does, also what was called and what
came of it.

Only conversations that she may read are looked at, and none of them while others read along where she asks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from django.db.models import QuerySet

from conversations.ancestry import TreeOf, ancestors
from conversations.models import Conversation, Event, SearchEntry
from conversations.models.conversation import ConversationQuerySet
from conversations.search import ALWAYS, Written, matching
from harness.errors import Invalid
from memory.retrieval.question import read_question
from memory.retrieval.turns import Found, Turn, TurnIndex
from tools_app.builtin.rereading import words_of

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
STEPS = 400
"""Messages, calls and results of one conversation of the same lineage, the newest."""
NOTHING = Found((), 0.0)
Lineage = Literal["", "children", "parents"]
"""Whose turns: of all conversations that people began, of those that were begun in the asking one and below
it, or of those in which it was begun."""
_SPEAKERS = {"user.message": "person", "agent.message": "agent"}
_TRACED = (
    *_SPEAKERS,
    "agent.tool_use",
    "agent.tool_result",
    "agent.mcp_tool_use",
    "agent.mcp_tool_result",
    "agent.custom_tool_use",
    "user.custom_tool_result",
    "user.tool_result",
)


def search_past(
    conversation: Conversation,
    query: str,
    *,
    limit: int,
    lineage: Lineage = "",
    written: Written = ALWAYS,
) -> Found:
    """Turns of other conversations in the same organisation that the owner may read, said at that time."""
    if not reach_of(conversation).personal:
        return NOTHING
    hers = Conversation.objects.visible_to(conversation.owner).filter(
        organisation=conversation.organisation
    )
    match lineage:
        case "children":
            related = hers.filter(pk__in=TreeOf(conversation.pk)).exclude(pk=conversation.pk)
            turns = _traced(related, written)
        case "parents":
            turns = _traced(hers.filter(pk__in=ancestors(conversation)), written)
        case _:
            others = hers.filter(parent=None).exclude(pk=conversation.pk)
            turns = _turns(_chosen(others, query, written), written)
    return TurnIndex(turns).search(query, limit=limit) if turns else NOTHING


def around(conversation: Conversation, seq: int) -> str:
    """What was said at a place of a conversation, and beside it; in one that an agent began, and where
    something was called, also what was called and what came of it."""
    title = conversation.title or conversation.uid
    begun = f"{conversation.created_at:%Y-%m-%d}"
    if conversation.parent_id is not None:
        begun = "begun by an agent"
    if conversation.parent_id is not None or _is_call(conversation, seq):
        turns = _steps_around(conversation, seq)
    else:
        entries = SearchEntry.objects.filter(conversation=conversation, seq__gt=0)
        before = list(entries.filter(seq__lte=seq).order_by("-seq")[: AROUND + 1])[::-1]
        after = list(entries.filter(seq__gt=seq).order_by("seq")[:AROUND])
        turns = _as_turns(conversation, [*before, *after])
    lines = [f"[{turn.id}] {turn.speaker}: {turn.text}" for turn in turns]
    return "\n".join([f"“{title}”, {begun}", *lines])


def _chosen(
    conversations: ConversationQuerySet, query: str, written: Written
) -> list[Conversation]:
    """Those in which most of the rarer terms of the question stand, by the beginnings of words."""
    counted: dict[int, float] = {}
    for term in read_question(query).terms[:TERMS]:
        try:
            rows = matching(conversations, [term], written)
        except Invalid:
            continue
        keys = list(rows.order_by("-active_at").values_list("pk", flat=True)[:OF_EACH_TERM])
        for key in keys:
            counted[key] = counted.get(key, 0.0) + 1 / (1 + len(keys))
    best = sorted(counted, key=lambda key: (-counted[key], -key))[:CONVERSATIONS]
    return list(Conversation.objects.filter(pk__in=best).select_related("owner").order_by("pk"))


def _turns(conversations: Sequence[Conversation], written: Written) -> list[Turn]:
    found = []
    for conversation in conversations:
        rows = SearchEntry.objects.filter(conversation=conversation, seq__gt=0)
        turns = _as_turns(conversation, list(rows.order_by("-seq")[:TURNS])[::-1])
        found += [turn for turn in turns if _is_within(turn, written)]
    return found


def _is_within(turn: Turn, written: Written) -> bool:
    if written == ALWAYS:
        return True
    since, until = written.since, written.until
    at = turn.at
    return at is not None and (since is None or at >= since) and (until is None or at < until)


def _traced(conversations: ConversationQuerySet, written: Written) -> list[Turn]:
    """The newest steps of the newest of them."""
    found: list[Turn] = []
    for conversation in conversations.order_by("-pk")[:CONVERSATIONS]:
        rows = _steps(conversation).filter(written.of("created_at")).order_by("-seq")[:STEPS]
        found += [_as_turn(conversation, row) for row in reversed(rows)]
    return found


def _steps_around(conversation: Conversation, seq: int) -> list[Turn]:
    rows = _steps(conversation)
    before = list(rows.filter(seq__lte=seq).order_by("-seq")[: AROUND + 1])[::-1]
    after = list(rows.filter(seq__gt=seq).order_by("seq")[:AROUND])
    return [_as_turn(conversation, row) for row in (*before, *after)]


def _is_call(conversation: Conversation, seq: int) -> bool:
    return _steps(conversation).filter(seq=seq).exclude(type__in=_SPEAKERS).exists()


def _steps(conversation: Conversation) -> QuerySet[Event]:
    return Event.objects.filter(conversation=conversation, type__in=_TRACED)


def _as_turn(conversation: Conversation, row: Event) -> Turn:
    speaker = _SPEAKERS.get(row.type, row.type)
    text = words_of(row.value)[:TEXT]
    return Turn(str(row.seq), text, speaker, row.created_at, conversation.uid)


def _as_turns(conversation: Conversation, entries: Sequence[SearchEntry]) -> list[Turn]:
    events = Event.objects.filter(
        conversation=conversation, seq__in=[entry.seq for entry in entries]
    )
    said = {seq: (kind, at) for seq, kind, at in events.values_list("seq", "type", "created_at")}
    turns = []
    for entry in entries:
        kind, at = said.get(entry.seq, ("", None))
        speaker = _SPEAKERS.get(kind, "agent")
        turns.append(Turn(str(entry.seq), entry.text[:TEXT], speaker, at, conversation.uid))
    return turns

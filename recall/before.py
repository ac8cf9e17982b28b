"""Turns of the same conversation that its summary stands for: which of them a message recalls, and how they
are told word for word.

A turn is what a person said that the agent took, and its last word before it took anything else. What no
summary replaced stands in the dialogue itself; other conversations are `past`'s, by a tool.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import QuerySet

from conversations.branches import counting
from conversations.models import Conversation, Event, SearchEntry
from harness.events import AgentThreadContextCompacted, ContentSetAside
from jobs.prepared import Prepared
from memory.retrieval.question import read_question
from memory.retrieval.turns import Turn, TurnIndex

from .strangers import has_strangers_words

MOST = 3
"""Turns that one message recalls."""
WORDS = 2
"""Of a message that a turn has to have; of a question that it covers one is enough."""
STRONG = 0.6
"""Share of the best score that others need."""
LOOKED_AT = 120
"""Turns, the newest: a message waits for it, some 50 ms where all of them are long."""
SAID, ANSWERED = 200, 400
"""Characters of what was said and of the answer that are told."""
LEAST = 3
"""Messages of a conversation in which a summary can stand for a turn before the newest message: in a new one
nothing is asked of the database."""
COMPARED = 600
"""Characters of each that are compared."""
HEADING = "Said earlier in this conversation, word for word; what was said later counts more:"
PLACES = "Turns of this conversation that may be about it; read_events reads one around its number:"
"""Where strangers' words came in, which may be repeated in what was said: it is read with their mark."""


@dataclass(frozen=True, slots=True)
class Told:
    heading: str = HEADING
    lines: Mapping[str, str] = field(default_factory=dict)
    """By the ids of the messages that began the turns, in the order in which they were said."""


_SUMMARIES = Prepared(
    lambda given: (
        Event.objects.filter(conversation=given.conversation, type="agent.thread_context_compacted")
        .order_by()
        .values_list("pk")[:1]
    )
)


def turns_for(conversation: Conversation, text: str) -> list[dict[str, Any]]:
    """Those that have what the text says, best first, as a row keeps them: by the ids of the message that
    began each and of the answer."""
    through = _summarised(conversation) if conversation.message_count >= LEAST else 0
    if not through:
        return []
    asked = read_question(text)
    pairs = _pairs(conversation, through)
    said = _texts(conversation, [row for pair in pairs for row in pair])
    turns = [
        Turn(
            str(place),
            "\n".join(said[row.pk][:COMPARED] for row in pair if row.pk in said),
            group=str(place),
        )
        for place, pair in enumerate(pairs)
        if pair[0].pk in said
    ]
    if not turns:
        return []
    found = TurnIndex(turns, asked).search(text, limit=MOST)
    best = max((hit.score for hit in found.hits), default=0.0)
    enough = WORDS if found.low else 1
    return [
        {
            "turn": pairs[int(hit.turn.id)][0].uid,
            "answer": pairs[int(hit.turn.id)][-1].uid,
            "score": hit.score,
            "words": list(hit.words),
        }
        for hit in found.hits
        if len(hit.words) >= enough and hit.score >= STRONG * best
    ]


def told_of(conversation: Conversation, recalls: Sequence[list[dict[str, Any]]]) -> Told:
    """Those that its messages recalled and that a summary stands for still, as they read now."""
    wanted = {each["turn"]: each["answer"] for found in recalls for each in found}
    if not wanted:
        return Told()
    said = _said(conversation).filter(seq__lte=_summarised(conversation))
    rows = {row.uid: row for row in said.filter(uid__in={*wanted, *wanted.values()})}
    texts = _texts(conversation, list(rows.values()))
    places_alone = has_strangers_words(conversation)
    lines: dict[str, str] = {}
    for row in sorted(rows.values(), key=lambda row: row.seq):
        if row.uid not in wanted or row.pk not in texts:
            continue
        answer = rows.get(wanted[row.uid])
        line = f"- #{row.seq} ({row.created_at:%Y-%m-%d})"
        if not places_alone:
            line += f" person: {_short(texts[row.pk], SAID)}"
            if answer is not None and answer is not row and answer.pk in texts:
                line += f" you: {_short(texts[answer.pk], ANSWERED)}"
        lines[row.uid] = line
    return Told(PLACES if places_alone else HEADING, lines)


def said_now(conversation: Conversation, recalls: Sequence[list[dict[str, Any]]]) -> dict[str, str]:
    """What the messages say that began these turns, by their ids, as far as they still count."""
    wanted = {each["turn"] for found in recalls for each in found}
    if not wanted:
        return {}
    rows = list(_said(conversation).filter(uid__in=wanted))
    texts = _texts(conversation, rows)
    return {row.uid: texts[row.pk] for row in rows if row.pk in texts}


def _summarised(conversation: Conversation) -> int:
    """The number of the last event that the newest summary stands for; 0: there is none."""
    if not _SUMMARIES.exists(conversation=conversation.pk):
        return 0
    made = (
        counting(conversation).filter(type="agent.thread_context_compacted").order_by("seq").last()
    )
    value = made.value if made is not None else None
    if not isinstance(value, AgentThreadContextCompacted):
        return 0
    seqs = Event.objects.filter(conversation=conversation, uid=value.through).values_list(
        "seq", flat=True
    )
    return seqs.first() or 0


def _said(conversation: Conversation) -> QuerySet[Event]:
    """What was said on the branch that counts, without what was set aside."""
    log = counting(conversation)
    aside = [row.value for row in log.filter(type="x.content_set_aside")]
    gone = [value.event_id for value in aside if isinstance(value, ContentSetAside)]
    return log.filter(type__in=("user.message", "agent.message")).exclude(uid__in=gone)


def _pairs(conversation: Conversation, through: int) -> list[list[Event]]:
    """Of each turn the message and the last answer to it, if any; the oldest first. A message that was
    withdrawn, or waits still, was not said; one that an agent left was said by no person."""
    taken = counting(conversation).filter(type="x.input_taken")
    rows = (_said(conversation) | taken).filter(seq__lte=through)
    pairs: list[list[Event]] = []
    messages: dict[str, Event] = {}
    for row in reversed(rows.order_by("-seq")[: 6 * LOOKED_AT]):
        if row.type == "user.message":
            if not row.payload.get("by_agent"):
                messages[row.uid] = row
        elif row.type == "agent.message":
            if pairs:
                pairs[-1] = [pairs[-1][0], row]
        else:
            pairs += [[messages.pop(uid)] for uid in row.payload["event_ids"] if uid in messages]
    return pairs[-LOOKED_AT:]


def _texts(conversation: Conversation, rows: Sequence[Event]) -> dict[int, str]:
    """What each says now, by its key; what was taken out says nothing."""
    keys = {row.seq: row.pk for row in rows}
    entries = SearchEntry.objects.filter(conversation=conversation, seq__in=keys)
    return {keys[entry.seq]: entry.text for entry in entries}


def _short(text: str, most: int) -> str:
    words = " ".join(text.split()).replace("</", "‹/")  # which ends no section
    return words if len(words) <= most else f"{words[:most]}…"

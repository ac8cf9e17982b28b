"""What of a conversation has not been read yet: what people and the agent said, once each, in order.

Only what counts now and was taken into the dialogue is read, without files, tools and thoughts. What a fork
began with was read where it was said.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from conversations.branches import counting
from conversations.models import Conversation, Event
from harness.content import Block, Text, text_of
from harness.events import AgentMessage, ContentSetAside, InputTaken, MessageEdited, UserMessage
from harness.redacted import REMOVED

READ = 20_000
"""Characters of one stretch; what comes behind is the next one's."""
MESSAGE = 4_000
"""Of one message: a long one is read at both ends."""
BEFORE = 600
"""Of the answer that stands before the stretch, at its end: what a correction is about."""
TYPES = ("x.input_taken", "agent.message")


@dataclass(frozen=True, slots=True)
class Said:
    uid: str
    """Of the message."""
    by_person: bool
    text: str


@dataclass(frozen=True, slots=True)
class Stretch:
    said: tuple[Said, ...]
    through: int
    """The number of its last event."""
    before: str = ""
    """What the agent had said last, which was read then."""
    before_uid: str = ""
    """Of the answer that says so."""
    more: bool = False
    """There is more behind it."""

    @property
    def uids(self) -> tuple[str, ...]:
        """Of all the messages whose words are read: what is learned may be of any of them."""
        return (*filter(None, [self.before_uid]), *(each.uid for each in self.said))

    @property
    def size(self) -> int:
        return sum(len(each.text) for each in self.said)

    @property
    def has_person(self) -> bool:
        return any(each.by_person for each in self.said)


@dataclass(frozen=True, slots=True)
class Amount:
    """How much was said, without what."""

    size: int
    has_person: bool
    through: int


def amount_after(conversation: Conversation, seq: int) -> Amount:
    size, has_person, through = 0, False, seq
    for row in _rows(conversation, seq):
        found = _said_at(conversation, row)
        size += sum(len(each.text) for each in found)
        has_person = has_person or any(each.by_person for each in found)
        through = row.seq
    return Amount(size, has_person, through)


def stretch_after(conversation: Conversation, seq: int) -> Stretch:
    """Where as much as one holds has no word of a person, it begins behind that: nothing is learned of it."""
    said: list[Said] = []
    size, since, through = 0, seq, seq
    for row in _rows(conversation, seq):
        found = _said_at(conversation, row)
        if said and found and size + sum(len(each.text) for each in found) > READ:
            if any(each.by_person for each in said):
                before, uid = _before(conversation, since)
                return Stretch(tuple(said), through, before, uid, more=True)
            said, size, since = [], 0, through
        said += found
        size += sum(len(each.text) for each in found)
        through = row.seq
    before, uid = _before(conversation, since) if said else ("", "")
    return Stretch(tuple(said), through, before, uid)


def _rows(conversation: Conversation, seq: int) -> Iterator[Event]:
    rows = counting(conversation).filter(
        type__in=TYPES, seq__gt=seq, created_at__gte=conversation.created_at
    )
    yield from rows.order_by("seq").iterator(chunk_size=100)


def _said_at(conversation: Conversation, row: Event) -> list[Said]:
    match row.value:
        case InputTaken(event_ids=uids):
            words = _messages(conversation, uids)
            return [Said(uid, True, _short(words[uid])) for uid in uids if words.get(uid)]
        case AgentMessage(content=content):
            text = _short(text_of(content))
            return [Said(row.subject, False, text)] if text else []
        case _:
            return []


def _messages(conversation: Conversation, uids: tuple[str, ...]) -> dict[str, str]:
    """What people said in these, as it was when it was taken; not what no model is shown."""
    rows = Event.objects.filter(
        conversation=conversation,
        subject__in=uids,
        type__in=("user.message", "x.message_edited", "x.content_set_aside"),
    )
    words: dict[str, str] = {}
    for row in rows.order_by("seq"):
        match row.value:
            case UserMessage(by_agent=False, content=content) | MessageEdited(content=content):
                words[row.subject] = _typed(content)
            case ContentSetAside():
                words.pop(row.subject, None)
            case _:
                pass
    return words


def _typed(content: tuple[Block, ...]) -> str:
    """What stands before everything that was put behind it."""
    return text_of(content[:1]) if content and isinstance(content[0], Text) else ""


def _short(text: str) -> str:
    text = text.strip()
    if text == REMOVED:
        return ""
    if len(text) <= MESSAGE:
        return text
    return f"{text[: MESSAGE // 2]} […] {text[-MESSAGE // 2 :]}"


def _before(conversation: Conversation, seq: int) -> tuple[str, str]:
    """What it says, and its id."""
    answers = counting(conversation).filter(type="agent.message", seq__lte=seq)
    for row in answers.order_by("-seq")[:1]:
        value = row.value
        if isinstance(value, AgentMessage):
            return _short(text_of(value.content))[-BEFORE:], row.subject
    return "", ""

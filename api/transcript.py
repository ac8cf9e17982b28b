"""A conversation as the REST protocol tells it: messages of `user` and `assistant` with content blocks.

Read from the log page by page; a page ends between two messages. What waits for its turn is not said
yet and stands apart (`waiting`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from conversations.branches import counting
from conversations.kits import current_texts
from conversations.models import Conversation, Event
from harness.content import text_of
from harness.events import (
    AgentMessage,
    AgentThinking,
    InputTaken,
    MessageEdited,
    ToolResult,
    ToolUse,
    UserMessage,
    WakeDue,
    answered_call,
)

SPOKEN = (
    "x.input_taken",
    "agent.message",
    "agent.thinking",
    "agent.tool_use",
    "agent.mcp_tool_use",
    "agent.custom_tool_use",
    "agent.tool_result",
    "agent.mcp_tool_result",
    "user.custom_tool_result",
    "user.tool_result",
)


@dataclass(slots=True)
class Spoken:
    """One message in the making. `seq` is that of its last event."""

    role: str
    at: datetime
    seq: int
    first_seq: int
    id: str
    content: str | list[dict[str, Any]] = field(default_factory=list)
    of_reply: str = ""

    def payload(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "seq": self.first_seq,
            "role": self.role,
            "content": self.content,
            "created_at": self.at,
        }


def messages_after(conversation: Conversation, seq: int, limit: int) -> tuple[list[Spoken], bool]:
    """The next `limit` messages of the present branch behind `seq`, and whether there are more."""
    rows = counting(conversation).filter(type__in=SPOKEN, seq__gt=seq).order_by("seq")
    found: list[Spoken] = []
    for spoken in _grouped(conversation, rows.iterator(chunk_size=200)):
        if len(found) == limit:
            return found, True
        found.append(spoken)
    return found, False


def waiting(conversation: Conversation) -> list[dict[str, Any]]:
    """Messages that wait for their turn, oldest first, as they were last edited."""
    rows = Event.objects.filter(
        conversation=conversation, type="user.message", processed_at=None
    ).order_by("seq")
    texts = _texts(conversation, [row.uid for row in rows])
    return [
        {
            "id": row.uid,
            "seq": row.seq,
            "content": texts.get(row.uid, ""),
            "created_at": row.created_at,
        }
        for row in rows
    ]


def _grouped(conversation: Conversation, rows: Iterable[Event]) -> Iterator[Spoken]:
    current: Spoken | None = None
    for row in rows:
        value = row.value
        if isinstance(value, InputTaken):
            if current is not None:
                yield current
            current = None
            texts = _texts(conversation, value.event_ids)
            for uid in value.event_ids:
                yield Spoken("user", row.created_at, row.seq, row.seq, uid, texts.get(uid, ""))
            continue
        role = "user" if isinstance(value, ToolResult) else "assistant"
        reply = getattr(value, "model_request_id", "")
        if current is None or (current.role, current.of_reply) != (role, reply):
            if current is not None:
                yield current
            current = Spoken(role, row.created_at, row.seq, row.seq, row.uid, of_reply=reply)
        current.seq = row.seq
        if isinstance(current.content, list):
            current.content.append(_block(row, value))
    if current is not None:
        yield current


def _block(row: Event, value: Any) -> dict[str, Any]:
    match value:
        case AgentMessage():
            return {"type": "text", "text": text_of(value.content), "id": row.uid}
        case AgentThinking():
            return {"type": "thinking", "thinking": value.thinking, "id": row.uid}
        case _ if isinstance(value, ToolUse):
            return {"type": "tool_use", "id": row.uid, "name": value.name, "input": value.input}
        case _:
            return {
                "type": "tool_result",
                "tool_use_id": answered_call(value) or "",
                "content": text_of(value.content),
                "is_error": value.is_error,
            }


def _texts(conversation: Conversation, uids: Iterable[str]) -> dict[str, str]:
    """What each message or wake says, as it was last edited."""
    rows = Event.objects.filter(
        conversation=conversation,
        subject__in=list(uids),
        type__in=("user.message", "x.message_edited", "x.wake_due"),
    ).order_by("seq")
    said: dict[str, str] = {}
    for row in rows:
        match row.value:
            case UserMessage(content=content) | MessageEdited(content=content):
                said[row.subject] = text_of(content)
            case WakeDue(reason=reason, note=note):
                lines = (current_texts().woken.format(reason=reason), note)
                said[row.subject] = "\n".join(line for line in lines if line)
            case _:
                pass
    return said

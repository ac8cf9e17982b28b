"""What came of a subagent, as the frame of its end tells it: read from the logs of both, so that what was
taken out of either is not told here."""

from __future__ import annotations

from conversations.models import Conversation, Event
from harness.content import text_of
from harness.events import CALLS, AgentToolResult, BackgroundFinished, SubagentEnded
from subagents.models import Subagent

from .incoming import Frame
from .used import usage_of

SUMMARY_CHARACTERS = 2_000
"""The chat protocol's cut of what its parent was answered."""


def came_of(parent: Conversation, seq: int, end: SubagentEnded) -> Frame:
    told: Frame = {"agent_type": "", "summary": _summary(parent, seq, end)}
    row = (
        Subagent.objects.filter(parent=parent, call_uid=end.tool_use_id)
        .select_related("child")
        .first()
    )
    if row is None:
        return {**told, "tool_count": 0, "usage": {"total_tokens": end.tokens}}
    told["agent_type"] = row.kind
    if row.child is None:
        return {**told, "tool_count": 0, "usage": {"total_tokens": end.tokens}}
    log = Event.objects.filter(conversation=row.child)
    asked = log.filter(uid=row.asked_event).values_list("seq", flat=True).first() or 0
    calls = log.filter(type__in=CALLS, seq__gt=asked, seq__lte=row.ended_seq).count()
    used = usage_of(row.child, asked, row.ended_seq + 1)
    return {**told, "tool_count": calls, "usage": {**used, "total_tokens": end.tokens}}


def _summary(parent: Conversation, seq: int, end: SubagentEnded) -> str:
    """The answer, which is stored right behind the end."""
    row = Event.objects.filter(conversation=parent, seq=seq + 1).first()
    value = row.value if row is not None else None
    text = ""
    if isinstance(value, AgentToolResult) and value.tool_use_id == end.tool_use_id:
        text = text_of(value.content)
    elif isinstance(value, BackgroundFinished):
        text = value.tail
    return f"{text[:SUMMARY_CHARACTERS]}…" if len(text) > SUMMARY_CHARACTERS else text

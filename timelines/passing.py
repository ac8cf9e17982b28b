"""What others are told of a trace, so that spans of their own stand below ours: W3C's `traceparent`.

MCP servers get it with a call, workers with what is handed out to them, and only while a collector is
configured. Like all ids of traces it is read from the log: no process of this server passes it on.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from django.conf import settings

from conversations.kitparts import Part
from conversations.models import Conversation, Event
from harness.agentconfig import AgentConfig
from harness.events import SpanToolStart
from harness.history import Entry
from tools_app.tracing import EXTRA

from .otlp import span_id, trace_id
from .reading import beginning_before, root_of
from .spans import begins_turn


def part(conversation: Conversation, _config: AgentConfig, _workspace: Path) -> Part:
    """What the calls of a run ask; nothing where nobody gathers traces."""
    if not settings.AGENTSITE_OTLP_ENDPOINT:
        return Part()
    return Part(extras={EXTRA: partial(_of_call, conversation)})


def of_handed_out(row: Event) -> str:
    """Of the call that this event handed out; empty: nobody gathers traces."""
    if not settings.AGENTSITE_OTLP_ENDPOINT:
        return ""
    beginning = beginning_before(row.conversation, row.seq)
    if beginning is None:
        return ""
    return traceparent(root_of(row.conversation, beginning).turn, row.uid)


def traceparent(root_turn: str, uid: str) -> str:
    """That the span of this event is the parent of whatever is begun there, and gathered."""
    return f"00-{trace_id(root_turn)}-{span_id(uid)}-01"


def _of_call(conversation: Conversation, call: str, entries: Sequence[Entry]) -> str:
    start = ""
    for entry in reversed(entries):
        if isinstance(entry.event, SpanToolStart) and entry.event.tool_use_id == call:
            start = start or entry.uid
        elif start and begins_turn(entry.event):
            found = beginning_before(conversation, entry.seq)
            break
    else:
        return ""
    return traceparent(root_of(conversation, found).turn, start) if found else ""

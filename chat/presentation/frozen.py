"""A conversation as a link shows it: what was said up to one event, with what looks like a secret masked.

Read from the log as it was then, so that whatever comes later, on whichever branch, changes nothing. Nothing
leads from it to the conversation, its people or this server.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from django.utils.translation import gettext as _

from conversations.branches import branches_of
from conversations.models import Event, Link
from harness.branches import anywhere_types
from harness.content import text_of
from harness.events import (
    AgentCustomToolUse,
    AgentMcpToolUse,
    AgentMessage,
    AgentToolUse,
    InputTaken,
    MessageEdited,
    MessageWithdrawn,
    UserMessage,
)
from harness.events import Event as EventValue
from harness.redaction import redacted, redacted_text
from reading.unseen import visible
from rendering.markdown import to_html

MOST_EVENTS = 20_000
"""Of a log that are shown, the first ones; a page has an end."""
CHARACTERS = 4_000
"""Of what a call was given, and of what it brought."""

_SHOWN = (
    "user.message",
    "x.message_edited",
    "x.message_withdrawn",
    "x.input_taken",
    "agent.message",
    "agent.tool_use",
    "agent.mcp_tool_use",
    "agent.custom_tool_use",
    "agent.tool_result",
    "agent.mcp_tool_result",
    "user.custom_tool_result",
)


@dataclass(frozen=True, slots=True)
class Said:
    """One element of the page."""

    kind: str
    """`person`, `agent` or `call`."""
    text: str = ""
    html: str = ""
    """Of `agent`, safe on a page."""
    given: str = ""
    brought: str = ""


def frozen(link: Link) -> list[Said]:
    path, anywhere = branches_of(link.conversation_id, link.seq).path(), anywhere_types()
    rows = Event.objects.filter(
        conversation=link.conversation_id, seq__lte=link.seq, type__in=_SHOWN
    ).order_by("seq")
    values = [
        (row.uid, row.subject, row.value)
        for row in rows[:MOST_EVENTS]
        if row.seq in path or row.type in anywhere
    ]
    return list(_elements(values, details=link.details))


def _elements(values: list[tuple[str, str, EventValue]], *, details: bool) -> Iterator[Said]:
    messages: dict[str, str] = {}
    results = {
        subject: value
        for _uid, subject, value in values
        if value.type in {"agent.tool_result", "agent.mcp_tool_result", "user.custom_tool_result"}
    }
    for uid, subject, value in values:
        match value:
            case UserMessage():
                messages[uid] = text_of(value.content)
            case MessageEdited():
                messages[subject] = text_of(value.content)
            case MessageWithdrawn():
                messages.pop(subject, None)
            case InputTaken():
                for taken in value.event_ids:
                    if taken in messages:
                        yield Said("person", text=_plain(messages.pop(taken)))
            case AgentMessage():
                text = redacted_text(text_of(value.content))
                if text.strip():
                    yield Said("agent", html=to_html(text))
            case AgentToolUse() | AgentMcpToolUse() | AgentCustomToolUse():
                given = json.dumps(redacted(value.input), ensure_ascii=False, indent=2)
                content = getattr(results.get(uid), "content", ())
                brought = text_of(content) if content else ""
                yield Said(
                    "call",
                    text=visible(value.name),
                    given=_cut(given) if details else "",
                    brought=_cut(brought) if details else "",
                )
            case _:
                pass


def _plain(text: str) -> str:
    return visible(redacted_text(text))


def _cut(text: str) -> str:
    # Masked before it is cut: of a secret that is cut through, the beginning looks like nothing.
    shown = _plain(text)
    return shown if len(shown) <= CHARACTERS else shown[:CHARACTERS] + "\n" + _("… (cut)")

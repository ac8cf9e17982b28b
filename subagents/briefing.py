"""What an advisor is shown of the conversation that asks it: the latest part, in words, within bounds.

It is read once, when the advisor is asked; what it holds of strangers' words goes along with it
(`tell_agent` with `quotes`).
"""

from __future__ import annotations

from conversations.branches import counting
from conversations.models import Conversation
from harness.content import text_of
from harness.events import (
    AgentMcpToolResult,
    AgentMcpToolUse,
    AgentMessage,
    AgentToolResult,
    AgentToolUse,
    UserMessage,
)
from harness.events import Event as EventValue

MOST = 24_000
"""Characters in all."""
OF_ONE = 2_000
"""Characters of one message, call or result."""
EVENTS = 400
"""Of the log that are looked at."""
TYPES = (
    "user.message",
    "agent.message",
    "agent.tool_use",
    "agent.mcp_tool_use",
    "agent.tool_result",
    "agent.mcp_tool_result",
)


def briefing(conversation: Conversation, *, leaving_out: str) -> str:
    """What was said and done last, the oldest first; `leaving_out` is the call that asks."""
    rows = counting(conversation).filter(type__in=TYPES).order_by("-seq")[:EVENTS]
    kept: list[str] = []
    left = MOST
    for row in rows:
        words = "" if row.uid == leaving_out else words_of(row.value)
        if len(words) > left:
            kept.append("(Earlier parts are left out.)")
            break
        left -= len(words)
        kept += [words] if words else []
    return "\n\n".join(reversed(kept))


def words_of(event: EventValue) -> str:
    """How it is shown; empty: not at all."""
    match event:
        case UserMessage():
            who = "Another agent" if event.by_agent else "The person"
            return f"{who}: {_cut(text_of(event.content))}"
        case AgentMessage():
            return f"The agent: {_cut(text_of(event.content))}"
        case AgentToolUse() | AgentMcpToolUse():
            return f"The agent calls {event.name}: {_cut(str(event.input))}"
        case AgentToolResult() | AgentMcpToolResult():
            what = "failed" if event.is_error else "answered"
            return f"The call {what}: {_cut(text_of(event.content))}"
        case _:
            return ""


def _cut(text: str) -> str:
    return text if len(text) <= OF_ONE else f"{text[:OF_ONE]} […]"

"""What a run has of subagents: the tools where its conversation may have any, and what a child may not do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

from django.conf import settings

from conversations.ancestry import ancestors
from conversations.kitparts import Part
from conversations.models import Conversation
from harness.agentconfig import AgentConfig, ToolRule
from harness.rules import Level, LevelledRule
from jobs.prepared import Prepared
from tools_app.catalogue import all_tools

from .access import access_of
from .casting import bounds_of, choices_of
from .kinds import NO_TOOLS, denied
from .models import Subagent
from .projected import cost_of, cost_of_a_turn
from .tools import EXTRA, ask_tool, other_tools

FEATURE = "teams"
"""The switch of a conversation that lets its agent have subagents."""

_OTHERS = {tool.name: tool for tool in other_tools(FEATURE)}
"""The same for all runs."""

_LAST = Prepared(lambda given: Subagent.objects.filter(child=given.child).order_by("-pk")[:1])


def part(conversation: Conversation, config: AgentConfig, workspace: Path) -> Part:
    if len(ancestors(conversation)) >= settings.AGENTSITE_SUBAGENT_DEPTH:
        return Part()
    most = Decimal(str(settings.AGENTSITE_SUBAGENTS_ASK_ABOVE))
    cost = cost_of_a_turn(config) if most and conversation.features.teams else None
    choices = choices_of(config)
    if not choices and not config.roster.inline:
        return Part()
    ask = ask_tool(
        choices,
        inline=config.roster.inline,
        feature=FEATURE,
        asks_about=partial(_asks, most, cost),
    )
    return Part(
        tools={ask.name: ask, **_OTHERS},
        extras={EXTRA: access_of(conversation)},
    )


def rules(conversation: Conversation) -> Sequence[LevelledRule]:
    """What a subagent may not do in its conversation, whatever its agent may elsewhere."""
    if conversation.parent_id is None:
        return ()
    row = _LAST.first(child=conversation.pk)
    if row is None:
        return ()
    return [
        LevelledRule(ToolRule(tool=name, permission="always_deny"), Level.CONVERSATION)
        for name in _denied(row, conversation.config)
    ]


def _denied(row: Subagent, config: AgentConfig) -> Sequence[str]:
    if row.kind in NO_TOOLS and not row.inline:
        return ("*",)
    tools = all_tools().values()
    names = denied(bounds_of(row), tools, config)
    if row.files == Subagent.Files.READ_ONLY:
        names += [tool.name for tool in tools if tool.may_write or tool.general]
    only = row.inline.get("tools")
    if isinstance(only, list):
        names += [tool.name for tool in tools if tool.name not in only]
        names += [tool.name for tool in config.custom_tools if tool.name not in only]
        names += [] if any(str(name).startswith("mcp__") for name in only) else ["mcp__*"]
    return list(dict.fromkeys(names))


def _asks(most: Decimal, turn: Decimal | None, _given: Mapping[str, Any], together: int) -> str:
    """A fan-out that may cost more than staff let agents begin by themselves waits for a person."""
    cost = cost_of(turn, together) if turn is not None else Decimal(0)
    if cost <= most:
        return ""
    who = "This subagent" if together == 1 else f"These {together} subagents together"
    return f"{who} may cost up to ${cost:.2f}, more than the ${most:.2f} that need no question."

"""The types of subagents that every agent has: what each is for, its words, its limits, what it may not do.

What a type may not do is rules (`denied`), judged like all others. Agents of a roster are `casting`'s.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from harness import roster
from harness.agentconfig import AgentConfig, Effort
from harness.tools import Effect, Tool

from .models import Subagent

WEB = frozenset({"web_search", "web_fetch"})
"""Tools that reach outside only to read."""
OWN = frozenset({"subagent", "subagents", "stop_subagent", "merge_subagent"})
"""The tools by which agents have subagents."""


class May(StrEnum):
    READ = "read"
    """Only what changes nothing and reaches nobody."""
    LOOK_OUTSIDE = "look outside"
    """That, and read the web and what MCP servers have."""
    ALL = "all"
    """Whatever the agent above may."""


@dataclass(frozen=True, slots=True)
class Kind:
    name: str
    purpose: str
    """For the model that chooses."""
    instructions: str
    may: May
    steps: int
    files: Subagent.Files
    effort: Effort = ""
    """Empty: as the agent above."""


_HANDS_BACK = (
    "You were asked by another agent, who sees nothing of your work but your last message. End with what "
    "was asked for: findings first, with the paths and lines they rest on, then what is uncertain or "
    "left. Nobody answers questions: where something is open, choose, and say so."
)

KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind(
            "explore",
            "finds its way through files and says where things are; changes nothing",
            "You find things in a workspace: look broadly, read only what matters, and do not stop at the "
            f"first match. You change nothing. {_HANDS_BACK}",
            May.READ,
            steps=25,
            files=Subagent.Files.READ_ONLY,
            effort="low",
        ),
        Kind(
            "plan",
            "works out how something should be done, step by step; changes nothing",
            "You plan work that others will do: read what it touches, weigh the ways to do it, and give one "
            f"plan in steps that can each be checked. You change nothing. {_HANDS_BACK}",
            May.READ,
            steps=25,
            files=Subagent.Files.READ_ONLY,
            effort="high",
        ),
        Kind(
            "research",
            "gathers what files and the web say about a question; changes nothing",
            "You answer a question from sources: look for several that do not copy each other, and say for "
            f"each finding where it stands. You change nothing. {_HANDS_BACK}",
            May.LOOK_OUTSIDE,
            steps=40,
            files=Subagent.Files.READ_ONLY,
        ),
        Kind(
            "code",
            "changes code and tries it out",
            "You write code in a workspace: read the surroundings first, keep to their manner, change what "
            f"was asked for and nothing else, and try out what you changed. {_HANDS_BACK}",
            May.ALL,
            steps=50,
            files=Subagent.Files.SHARED,
        ),
        Kind(
            "general",
            "does any piece of work that can be described on its own",
            f"You do one piece of work on its own. {_HANDS_BACK}",
            May.ALL,
            steps=50,
            files=Subagent.Files.SHARED,
        ),
    )
}

ADVISOR = Kind(
    roster.ADVISOR,
    "a stronger model that gives advice in words; it has no tools, sees the latest part of this conversation "
    "and what you tell it, and changes nothing. Ask before you commit to a way, or when you are stuck",
    "Another agent asks for advice. You have no tools: all you see is its question and the latest part of "
    "its conversation. Say what you would do and why, what it overlooks, and what to check first. Be brief.",
    May.READ,
    steps=1,
    files=Subagent.Files.READ_ONLY,
    effort="high",
)
NO_TOOLS = frozenset({ADVISOR.name})
assert KINDS.keys() | {ADVISOR.name} == roster.TYPES  # noqa: S101 - said twice: rosters know no types


def denied(may: May, tools: Iterable[Tool], config: AgentConfig) -> list[str]:
    """The names, or globs, of what a conversation with these bounds may not call."""
    if may is May.ALL:
        return []
    names = [tool.name for tool in tools if not _is_within(tool, may)]
    names += [tool.name for tool in config.custom_tools]
    return [*names, *(["mcp__*"] if may is May.READ else [])]


def _is_within(tool: Tool, may: May) -> bool:
    if tool.may_write or tool.general or tool.external:
        return False
    if tool.name in OWN:
        return False
    if tool.effect is Effect.OUTSIDE:
        return may is May.LOOK_OUTSIDE and tool.name in WEB
    return tool.effect is Effect.READ

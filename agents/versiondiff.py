"""What differs between two configurations of an agent, field by field, in words people read.

Pure data in, pure data out; the admin draws it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from harness.agentconfig import AgentConfig
from harness.patterns import When
from reading.matching import matched
from tools_app.diffs import MATCHED_LINES

from .agentforms import INHERIT, ROLES, to_fields
from .switches import LABELS as SWITCHES

LABELS = {
    "provider": gettext_lazy("Provider"),
    "model": gettext_lazy("Model"),
    "instructions": gettext_lazy("Instructions"),
    "temperature": gettext_lazy("Temperature"),
    "top_p": gettext_lazy("Top p"),
    "thinking": gettext_lazy("Thinking"),
    "effort": gettext_lazy("Effort"),
    "sandbox": gettext_lazy("Sandbox rules"),
    "tools": gettext_lazy("Tools"),
    "custom_tools": gettext_lazy("Custom tools"),
    "skills": gettext_lazy("Skills"),
    "prompts": gettext_lazy("Prompts"),
    "mcp_servers": gettext_lazy("MCP servers"),
    "roster_agents": gettext_lazy("Agents it calls on"),
    "roster_only": gettext_lazy("It calls on those alone"),
    "roster_inline": gettext_lazy("Calls may define agents"),
    "roster_advisor": gettext_lazy("Advisor"),
    "limits_steps": gettext_lazy("Steps of a turn"),
    "limits_token_budget": gettext_lazy("Token budget of a turn"),
    "limits_output_tokens": gettext_lazy("Output tokens of a request"),
    "limits_context_window": gettext_lazy("Context window"),
    "limits_compact_at": gettext_lazy("Summarise at"),
    "shortening_by": gettext_lazy("Who shortens a long conversation"),
    "shortening_clear_at": gettext_lazy("Leave out old results at"),
    "shortening_keep_results": gettext_lazy("Results that stay"),
    "shortening_keep_thinking": gettext_lazy("Turns whose thinking stays"),
    "limits_retries": gettext_lazy("Retries of a request"),
    "limits_wall_clock_seconds": gettext_lazy("Longest time of a turn"),
}
_ROSTER = ("roster_agents", "roster_advisor")
ROLE_LABELS = {
    "subagent": gettext_lazy("As a subagent"),
    "teammate": gettext_lazy("As a teammate"),
    "compaction": gettext_lazy("When summarising"),
    "grading": gettext_lazy("When judging outcomes"),
}
OVERRIDE_LABELS = {
    "model": gettext_lazy("model"),
    "temperature": gettext_lazy("temperature"),
    "thinking": gettext_lazy("thinking"),
    "effort": gettext_lazy("effort"),
    "output_tokens": gettext_lazy("output tokens"),
}
SEVERAL_LINES = frozenset(
    {
        "tools",
        "custom_tools",
        "mcp_servers",
        "skills",
        "prompts",
        "instructions",
        "sandbox",
        *_ROSTER[:1],
    }
)
PERMISSION_LABELS = {
    "always_allow": gettext_lazy("allowed"),
    "always_ask": gettext_lazy("asks first"),
    "always_deny": gettext_lazy("denied"),
}


@dataclass(frozen=True, slots=True)
class Line:
    kind: Literal["added", "removed", "same", "gap"]
    text: str


@dataclass(frozen=True, slots=True)
class Change:
    field: str
    """The form field's name."""
    label: str
    before: str
    after: str
    lines: tuple[Line, ...] = ()
    """For values of several lines, in place of before and after."""


def changes_between(old: AgentConfig, new: AgentConfig) -> list[Change]:
    """The fields that differ, in the order of the form."""
    before, after = to_fields(old), to_fields(new)
    return [
        _change(name, describe(name, before[name]), describe(name, after[name]))
        for name in before
        if before[name] != after[name]
    ]


def description_of(config: AgentConfig) -> list[tuple[str, str]]:
    """Label and value of every field; what a role inherits is left out."""
    fields = to_fields(config)
    return [
        (label_of(name), describe(name, value))
        for name, value in fields.items()
        if not (name.startswith(ROLES) and value in (None, INHERIT))
    ]


def label_of(name: str) -> str:
    role, _separator, part = name.partition("_")
    if role == "feature" and part in SWITCHES:
        return str(SWITCHES[part])
    if role in ROLE_LABELS and part in OVERRIDE_LABELS:
        return f"{ROLE_LABELS[role]}: {OVERRIDE_LABELS[part]}"
    return str(LABELS.get(name) or name.replace("_", " ").capitalize())


def _words_of(rule: dict[str, Any]) -> str:
    """Which calls a rule covers and on what conditions."""
    when = rule.get("when")
    words = f"{rule['tool']} {When.model_validate(when).words()}" if when else str(rule["tool"])
    options = [name for name, value in (rule.get("options") or {}).items() if value]
    told = f"{words} ({', '.join(options)})" if options else words
    return f"{told} – {rule['note']}" if rule.get("note") else told


def describe(name: str, value: Any) -> str:
    """A field's value in words; several lines only for instructions, tools and sandbox rules."""
    if name == "tools":
        return "\n".join(
            f"{_words_of(rule)}: {PERMISSION_LABELS[rule['permission']]}" for rule in value
        )
    if name == "custom_tools":
        return "\n".join(
            f"{tool['name']}: {tool['description']}\n  {json.dumps(tool['input_schema'])}"
            for tool in value
        )
    if value is None or value == INHERIT:
        return _("as the agent") if name.startswith(ROLES) else _("not set")
    if isinstance(value, bool):
        return _("on") if value else _("off")
    if value == "":
        return (
            _("empty")
            if name in {"instructions", "sandbox", "mcp_servers", "skills", "prompts", *_ROSTER}
            else _("the provider's own")
        )
    return str(value)


def _change(name: str, before: str, after: str) -> Change:
    lines: tuple[Line, ...] = ()
    if name in SEVERAL_LINES:
        lines = tuple(lines_between(before, after))
    return Change(name, label_of(name), before, after, lines)


def lines_between(before: str, after: str) -> Iterator[Line]:
    """What differs between two texts, with three lines around each place."""
    old, new = before.split("\n"), after.split("\n")
    matcher = matched(old, new) if max(len(old), len(new)) <= MATCHED_LINES else None
    if matcher is None:
        yield from (Line("removed", text) for text in old)
        yield from (Line("added", text) for text in new)
        return
    for number, group in enumerate(matcher.get_grouped_opcodes(3)):
        if number:
            yield Line("gap", "")
        for tag, old_start, old_end, new_start, new_end in group:
            if tag == "equal":
                yield from (Line("same", text) for text in old[old_start:old_end])
                continue
            yield from (Line("removed", text) for text in old[old_start:old_end])
            yield from (Line("added", text) for text in new[new_start:new_end])

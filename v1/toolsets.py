"""An agent's tools on the wire and as rules: the toolset of built-in tools, and custom ones.

The wire knows eight built-in tools by names of its own, and no conditions. Its toolset brings those
eight and nothing else; this server's other tools are opted into, in `x_tools`. Rules about arguments
and about other tools are kept when a program writes the rest, never dropped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal

from django.utils.translation import gettext as _
from pydantic import BaseModel, Field

from harness.agentconfig import AgentConfig, CustomTool, Permission, ToolRule
from harness.errors import Invalid
from harness.faults import place
from harness.modelfaults import read_as
from tools_app.catalogue import all_tools, find

from . import mcptoolsets
from .door import Body
from .mcptoolsets import McpServerBody, McpToolset
from .publictools import NAMES, OURS

TOOLSET = "agent_toolset_20260401"
EVERYTHING = "*"
_STRICTNESS: dict[Permission, int] = {"always_allow": 0, "always_ask": 1, "always_deny": 2}


class Policy(Body):
    type: Literal["always_allow", "always_ask"]


class DefaultConfig(Body):
    enabled: bool = True
    permission_policy: Policy = Policy(type="always_allow")


class ToolConfig(Body):
    """Options of single tools other than these (domains of web tools) are the server's."""

    name: Literal["bash", "edit", "glob", "grep", "read", "web_fetch", "web_search", "write"]
    type: str | None = None
    enabled: bool | None = None
    permission_policy: Policy | None = None


class OtherToolConfig(Body):
    """Ours: a tool of this server that the public toolset does not hold, or `*` for all of them."""

    name: str = Field(min_length=1, max_length=128)
    enabled: bool = True
    permission_policy: Policy = Policy(type="always_allow")


class Toolset(Body):
    type: Literal["agent_toolset_20260401"]
    default_config: DefaultConfig | None = None
    configs: tuple[ToolConfig, ...] | None = None
    x_tools: tuple[OtherToolConfig, ...] | None = Field(default=None, max_length=256)
    """Ours: which further tools the agent has. Left out, none but those with rules of their own."""
    x_rules: Any = None
    """Sent by us; what a client sends back here is not read."""


class CustomToolBody(Body):
    type: Literal["custom"]
    name: str
    description: str
    input_schema: dict[str, Any]


Tool = Annotated[Toolset | McpToolset | CustomToolBody, Field(discriminator="type")]


class Rules(BaseModel):
    """What a list of tools means for an `AgentConfig`."""

    tools: tuple[ToolRule, ...]
    custom_tools: tuple[CustomTool, ...]


def to_rules(tools: Sequence[Tool], *, before: AgentConfig | None = None) -> Rules:
    """The rules that `tools` stands for, with those of `before` that the wire cannot say.

    MCP toolsets are `mcptoolsets`'. Raises Invalid, naming the place, for two toolsets and a tool named
    twice.
    """
    toolsets = [tool for tool in tools if isinstance(tool, Toolset)]
    if len(toolsets) > 1:
        raise Invalid(_("The toolset is given twice."), field="tools", hint=_("Give it once."))
    custom = tuple(
        _custom(tool, number)
        for number, tool in enumerate(tools)
        if isinstance(tool, CustomToolBody)
    )
    others = toolsets[0].x_tools if toolsets else None
    known = {*OURS, EVERYTHING, *(all_tools() if others is not None else ())}
    kept = [
        rule
        for rule in (before.tools if before else ())
        if not _is_plain(rule, known) and not mcptoolsets.is_said(rule)
    ]
    plain = [*_plain_rules(toolsets[0]), *_other_rules(others or ())] if toolsets else []
    return Rules(tools=(*plain, *kept), custom_tools=custom)


def _custom(tool: CustomToolBody, number: int) -> CustomTool:
    given = {
        "name": tool.name,
        "description": tool.description,
        "input_schema": tool.input_schema,
    }
    return read_as(given, CustomTool, at=place("tools", number))


def _is_plain(rule: ToolRule, known: Collection[str]) -> bool:
    """Whether what the program writes says it."""
    return rule.tool in known and rule.when is None and rule.options == type(rule.options)()


def _plain_rules(toolset: Toolset) -> list[ToolRule]:
    """One rule for each tool that is offered, by its name: what nobody named comes with nothing."""
    default = toolset.default_config or DefaultConfig()
    base: Permission = default.permission_policy.type if default.enabled else "always_deny"
    wanted: dict[str, Permission] = {}
    for config in toolset.configs or ():
        if config.name in wanted:
            raise _twice(config.name)
        enabled = default.enabled if config.enabled is None else config.enabled
        policy = config.permission_policy or default.permission_policy
        wanted[config.name] = policy.type if enabled else "always_deny"
    every = {ours: wanted.get(name, base) for name, ours in NAMES.items()}
    return [_rule(name, one) for name, one in every.items() if one != "always_deny"]


def _other_rules(configs: Sequence[OtherToolConfig]) -> list[ToolRule]:
    there = [name for name in all_tools() if name not in OURS]
    wanted: dict[str, Permission] = {}
    every: Permission = "always_deny"
    seen: set[str] = set()
    for config in configs:
        if config.name in seen:
            raise _twice(config.name)
        seen.add(config.name)
        permission: Permission = config.permission_policy.type if config.enabled else "always_deny"
        if config.name == EVERYTHING:
            every = permission
        elif config.name in there:
            wanted[config.name] = permission
        else:
            raise Invalid(
                _("“%(name)s” is none of this server's further tools.")
                % {"name": config.name[:60]},
                field="tools.x_tools",
                hint=_(
                    "GET /api/tools lists them; the tools of the public toolset go into configs."
                ),
            )
    asked = {name: wanted.get(name, every) for name in there}
    return [_rule(name, one) for name, one in asked.items() if one != "always_deny"]


def _twice(name: str) -> Invalid:
    return Invalid(
        _("The tool “%(name)s” is configured twice.") % {"name": name},
        field="tools",
        hint=_("Configure it once."),
    )


def _rule(ours: str, permission: Permission) -> ToolRule:
    """A shell that is allowed holds as it is written: this wire's policies are each tool's own."""
    tool = find(ours)
    apart = permission == "always_allow" and tool is not None and tool.general
    return ToolRule(tool=ours, permission=permission, apart=apart)


def narrowed(
    tools: Sequence[Tool],
    config: AgentConfig,
    *,
    now: AgentConfig | None = None,
    servers: Sequence[McpServerBody] | None = None,
) -> dict[str, Any]:
    """What `tools` makes of an agent's in one session: overrides for `create_conversation`. `now`: how the
    session is configured, if it is there; `servers`: the mcp_servers that came along.

    The agent's rules stay and further ones take away: whatever `tools` does not offer, or asks for.
    """
    rules = to_rules(tools)
    names = [*NAMES.values(), *(name for name in all_tools() if name not in OURS)]
    added = [
        ToolRule(tool=name, permission=wanted)
        for name in names
        if _STRICTNESS[wanted := _permission_of(name, rules.tools)]
        > _STRICTNESS[_permission_of(name, config.tools)]
    ]
    given = [tool for tool in tools if isinstance(tool, McpToolset)]
    uses, stricter = mcptoolsets.of_session(config, now or config, given, servers)
    added += stricter
    if all(rule.permission == "always_allow" for rule in config.tools):
        # What asks or is denied is said here alone, and of each tool as it is meant.
        mine = config.tools
        added += [
            r for r in rules.tools if r.apart and _permission_of(r.tool, mine) == r.permission
        ]
    overrides: dict[str, Any] = {
        "tools": [rule.model_dump(mode="json") for rule in (*config.tools, *added)],
        "custom_tools": [tool.model_dump(mode="json") for tool in rules.custom_tools],
    }
    if uses or config.mcp_servers or (now is not None and now.mcp_servers):
        overrides["mcp_servers"] = [use.model_dump(mode="json") for use in uses]
    return overrides


# --- to the wire ----------------------------------------------------------------------------------


def to_wire(config: AgentConfig) -> list[dict[str, Any]]:
    """The tools as clients see them; `x_rules` has the rules as they are."""
    shown: list[dict[str, Any]] = []
    if not all(map(mcptoolsets.is_said, config.tools)):
        each = {name: _permission_of(ours, config.tools) for name, ours in NAMES.items()}
        default = _usual(each.values())
        shown.append(
            {
                "type": TOOLSET,
                "default_config": _wire_config(default),
                "configs": [
                    {"type": name, "name": name, **_wire_config(permission)}
                    for name, permission in each.items()
                    if permission != default
                ],
                "x_tools": _further(config.tools),
                "x_rules": [rule.model_dump(mode="json") for rule in config.tools],
            }
        )
    return [
        *shown,
        *mcptoolsets.to_wire(config),
        *(
            {
                "type": "custom",
                "name": tool.name,
                "description": tool.description,
                "input_schema": tool.input_schema,
            }
            for tool in config.custom_tools
        ),
    ]


def _usual(permissions: Iterable[Permission]) -> Permission:
    """What most tools have; of two that as many have, the laxer."""
    counted = Counter(permissions)
    return max(counted, key=lambda one: (counted[one], -_STRICTNESS[one]))


def _further(rules: Sequence[ToolRule]) -> list[dict[str, Any]]:
    """This server's further tools that the rules name; `*` where they cover them all."""
    named = [rule.tool for rule in rules if rule.when is None and rule.tool not in OURS]
    return [
        {"name": name, **_wire_config(_permission_of(name, rules))}
        for name in dict.fromkeys(named)
        if name == EVERYTHING or find(name) is not None
    ]


def _permission_of(tool: str, rules: Iterable[ToolRule]) -> Permission:
    return _strictest(rule for rule in rules if fnmatchcase(tool, rule.tool))


def _strictest(rules: Iterable[ToolRule]) -> Permission:
    """Of rules without a condition; what no rule covers is not offered."""
    said = [rule.permission for rule in rules if rule.when is None]
    return max(said, key=_STRICTNESS.__getitem__) if said else "always_deny"


def _wire_config(permission: Permission) -> dict[str, Any]:
    asked = "always_ask" if permission == "always_deny" else permission
    return {"enabled": permission != "always_deny", "permission_policy": {"type": asked}}

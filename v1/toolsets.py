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
from .mcptoolsets import STRICTNESS, McpServerBody, McpToolset
from .publictools import NAMES, OURS

TOOLSET = "agent_toolset_20260401"
EVERYTHING = "*"


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

    What is written as it was read changes nothing, of one tool as of all. MCP toolsets are
    `mcptoolsets`'. Raises Invalid, naming the place, for two toolsets and a tool named twice.
    """
    toolsets = [tool for tool in tools if isinstance(tool, Toolset)]
    if len(toolsets) > 1:
        raise Invalid(_("The toolset is given twice."), field="tools", hint=_("Give it once."))
    held = before or AgentConfig(tools=())
    custom = tuple(
        _custom(tool, number, held.custom_tools)
        for number, tool in enumerate(tools)
        if isinstance(tool, CustomToolBody)
    )
    return Rules(tools=_written(toolsets[0] if toolsets else None, held), custom_tools=custom)


def _custom(tool: CustomToolBody, number: int, before: Sequence[CustomTool]) -> CustomTool:
    """One that is there already is as good as when it was taken."""
    given = {
        "name": tool.name,
        "description": tool.description,
        "input_schema": tool.input_schema,
    }
    there = next((one for one in before if one.model_dump() == given), None)
    return there or read_as(given, CustomTool, at=place("tools", number))


def _written(toolset: Toolset | None, config: AgentConfig) -> tuple[ToolRule, ...]:
    """The rules of `config` without those of MCP toolsets, but for what `toolset` says otherwise. No tool
    that it says nothing of is asked about less than before."""
    before = [rule for rule in config.tools if not mcptoolsets.is_said(rule)]
    every, further = _others(toolset.x_tools if toolset else None, before)
    wanted = {**_public(toolset), **further}
    changed = {name for name, one in wanted.items() if one != _permission_of(name, before)}
    general = [rule for rule in before if _is_plain(rule, {EVERYTHING})]
    base = _strictest(general)
    # It is about tools that this wire has no names for as well, so that it holds until it is said otherwise.
    stays = not general or every in {base, _permission_of(EVERYTHING, before)}
    if not changed and stays:
        return tuple(before)
    if all(rule.permission == "always_allow" for rule in before):
        # What asks or is denied is said here for the first time, and of each tool as it is meant.
        changed |= {name for name, one in wanted.items() if _is_apart(name, one)}
    gone = {*changed, *(() if stays else (EVERYTHING,))}
    kept = [rule for rule in before if not _is_plain(rule, gone)]
    added = [
        _rule(name, one, apart=name in changed)
        for name, one in wanted.items()
        if one != _permission_of(name, kept) or (name in changed and _is_apart(name, one))
    ]
    if not stays:
        added += [
            ToolRule(tool=name, permission=permission)
            for name in _running_unlisted(config)
            if name not in wanted
            and (permission := _permission_of(name, before)) == base != "always_allow"
            and _permission_of(name, kept) != base
        ]
    return (*added, *kept)


def _running_unlisted(config: AgentConfig) -> list[str]:
    """What needs no rule to run, as a pattern where nobody knows its names."""
    granted = [name for name, tool in all_tools().items() if tool.granted]
    custom = [tool.name for tool in config.custom_tools]
    return [*granted, *custom, *(["mcp__*"] if config.mcp_servers else [])]


def _is_plain(rule: ToolRule, names: Collection[str]) -> bool:
    """Whether it is about one of these, and all that it says can be said on this wire."""
    return rule.tool in names and rule.when is None and rule.options == type(rule.options)()


def _public(toolset: Toolset | None) -> dict[str, Permission]:
    """What becomes of each public tool, by our name for it."""
    if toolset is None:
        return dict.fromkeys(NAMES.values(), "always_deny")
    default = toolset.default_config or DefaultConfig()
    base: Permission = default.permission_policy.type if default.enabled else "always_deny"
    wanted: dict[str, Permission] = {}
    for config in toolset.configs or ():
        if config.name in wanted:
            raise _twice(config.name)
        enabled = default.enabled if config.enabled is None else config.enabled
        policy = config.permission_policy or default.permission_policy
        wanted[config.name] = policy.type if enabled else "always_deny"
    return {ours: wanted.get(name, base) for name, ours in NAMES.items()}


def _others(
    configs: Sequence[OtherToolConfig] | None, before: Sequence[ToolRule]
) -> tuple[Permission, dict[str, Permission]]:
    """What becomes of all further tools of this server, and of those that `configs` says something of by
    naming them or by leaving out what was read."""
    there = [name for name in all_tools() if name not in OURS]
    said: dict[str, Permission] = {}
    for config in configs or ():
        if config.name in said:
            raise _twice(config.name)
        if config.name != EVERYTHING and config.name not in there:
            raise Invalid(
                _("“%(name)s” is none of this server's further tools.")
                % {"name": config.name[:60]},
                field="tools.x_tools",
                hint=_(
                    "GET /api/tools lists them; the tools of the public toolset go into configs."
                ),
            )
        said[config.name] = config.permission_policy.type if config.enabled else "always_deny"
    every = said.get(EVERYTHING, "always_deny")
    if configs is None:
        return every, {}
    read = {one["name"]: _permission_of(one["name"], before) for one in _further(before)}
    of_all = every != read.get(EVERYTHING, "always_deny")
    return every, {
        name: said.get(name, every) for name in there if of_all or name in said or name in read
    }


def _twice(name: str) -> Invalid:
    return Invalid(
        _("The tool “%(name)s” is configured twice.") % {"name": name},
        field="tools",
        hint=_("Configure it once."),
    )


def _rule(ours: str, permission: Permission, *, apart: bool) -> ToolRule:
    return ToolRule(tool=ours, permission=permission, apart=apart and _is_apart(ours, permission))


def _is_apart(ours: str, permission: Permission) -> bool:
    """A shell that is allowed holds as it is written: this wire's policies are each tool's own."""
    tool = find(ours)
    return permission == "always_allow" and tool is not None and tool.general


def changes_of(
    tools: Sequence[Tool], before: AgentConfig | None, servers: Sequence[str] | None = None
) -> dict[str, Any]:
    """The fields of a configuration that `tools` makes of `before`. `servers`: the names that came along.

    Raises as `to_rules` and `mcptoolsets.uses_and_rules`.
    """
    held = before or AgentConfig(tools=())
    rules = to_rules(tools, before=before)
    names = [use.name for use in held.mcp_servers] if servers is None else servers
    uses, further = mcptoolsets.uses_and_rules(names, _of_servers(tools), before=held)
    made = [*rules.tools, *further]
    there = [rule for rule in held.tools if _taken(rule, made)]
    return {"tools": (*there, *made), "custom_tools": rules.custom_tools, "mcp_servers": uses}


def _taken(rule: ToolRule, rules: list[ToolRule]) -> bool:
    if rule not in rules:
        return False
    rules.remove(rule)
    return True


def _of_servers(tools: Sequence[Tool]) -> list[McpToolset]:
    return [tool for tool in tools if isinstance(tool, McpToolset)]


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
    held = now or config
    if _is_as_read(tools, held, servers):
        used = ["mcp_servers"] if config.mcp_servers or held.mcp_servers else []
        return held.model_dump(mode="json", include={"tools", "custom_tools", *used})
    rules = to_rules(tools)
    names = [*NAMES.values(), *(name for name in all_tools() if name not in OURS)]
    added = [
        ToolRule(tool=name, permission=wanted)
        for name in names
        if STRICTNESS[wanted := _permission_of(name, rules.tools)]
        > STRICTNESS[_permission_of(name, config.tools)]
    ]
    uses, stricter = mcptoolsets.of_session(config, held, _of_servers(tools), servers)
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
    if uses or config.mcp_servers or held.mcp_servers:
        overrides["mcp_servers"] = [use.model_dump(mode="json") for use in uses]
    return overrides


def _is_as_read(
    tools: Sequence[Tool], config: AgentConfig, servers: Sequence[McpServerBody] | None
) -> bool:
    """Whether clients are shown `config` in this way."""
    held = {use.name for use in config.mcp_servers}
    if {tool.mcp_server_name for tool in _of_servers(tools)} != held:
        return False
    if servers is not None and {server.name for server in servers} != held:
        return False
    return all(getattr(config, name) == value for name, value in changes_of(tools, config).items())


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
    return max(counted, key=lambda one: (counted[one], -STRICTNESS[one]))


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
    return max(said, key=STRICTNESS.__getitem__) if said else "always_deny"


def _wire_config(permission: Permission) -> dict[str, Any]:
    asked = "always_ask" if permission == "always_deny" else permission
    return {"enabled": permission != "always_deny", "permission_policy": {"type": asked}}

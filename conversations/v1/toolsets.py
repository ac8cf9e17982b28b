"""An agent's tools on the wire and as rules: the toolset of built-in tools, and custom ones.

The wire knows eight built-in tools by names of its own and no conditions. What it cannot say (other
tools, rules about arguments) is kept when a program writes the rest, never dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal

from django.utils.translation import gettext as _
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harness.agentconfig import AgentConfig, CustomTool, Permission, ToolRule
from harness.errors import Invalid
from tools_app.catalogue import all_tools

from .door import Body

TOOLSET = "agent_toolset_20260401"
NAMES: dict[str, str] = {
    "bash": "bash",
    "edit": "edit_file",
    "glob": "glob",
    "grep": "grep",
    "read": "read_file",
    "web_fetch": "web_fetch",
    "web_search": "web_search",
    "write": "write_file",
}
"""Name on the wire → ours."""
OURS = {ours: wire for wire, ours in NAMES.items()}
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


class Toolset(Body):
    type: Literal["agent_toolset_20260401"]
    default_config: DefaultConfig | None = None
    configs: tuple[ToolConfig, ...] | None = None
    x_rules: Any = None
    """Sent by us; what a client sends back here is not read."""


class McpToolset(Body):
    model_config = ConfigDict(extra="allow")

    type: Literal["mcp_toolset"]


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

    Raises Invalid, naming the place, for two toolsets, a tool named twice, and MCP toolsets.
    """
    toolsets = [tool for tool in tools if isinstance(tool, Toolset)]
    if len(toolsets) > 1:
        raise Invalid(_("The toolset is given twice."), field="tools", hint=_("Give it once."))
    if any(isinstance(tool, McpToolset) for tool in tools):
        raise Invalid(
            _("Tools of MCP servers cannot be given to an agent here."),
            field="tools",
            hint=_("Leave mcp_toolset and mcp_servers out."),
        )
    custom = tuple(
        _custom(tool, place) for place, tool in enumerate(tools) if isinstance(tool, CustomToolBody)
    )
    kept = [rule for rule in (before.tools if before else ()) if not _is_plain(rule)]
    plain = _plain_rules(toolsets[0]) if toolsets else []
    return Rules(tools=(*plain, *kept), custom_tools=custom)


def _custom(tool: CustomToolBody, place: int) -> CustomTool:
    try:
        return CustomTool(
            name=tool.name, description=tool.description, input_schema=tool.input_schema
        )
    except ValidationError as problem:
        first = problem.errors(include_url=False, include_input=False)[0]
        field = ".".join(map(str, ("tools", place, *first["loc"])))
        raise Invalid(
            f"{first['msg'].removeprefix('Value error, ')}.".capitalize(), field=field
        ) from None


def _is_plain(rule: ToolRule) -> bool:
    """Whether the wire can say it."""
    known = rule.tool == EVERYTHING or rule.tool in OURS
    return known and rule.when is None and rule.options == type(rule.options)()


def _plain_rules(toolset: Toolset) -> list[ToolRule]:
    default = toolset.default_config or DefaultConfig()
    base: Permission = default.permission_policy.type if default.enabled else "always_deny"
    wanted: dict[str, Permission] = {}
    for config in toolset.configs or ():
        if config.name in wanted:
            raise Invalid(
                _("The tool “%(name)s” is configured twice.") % {"name": config.name},
                field="tools",
                hint=_("Configure it once."),
            )
        enabled = default.enabled if config.enabled is None else config.enabled
        policy = config.permission_policy or default.permission_policy
        wanted[config.name] = policy.type if enabled else "always_deny"
    stricter = all(_STRICTNESS[one] >= _STRICTNESS[base] for one in wanted.values())
    if default.enabled and stricter:
        # The strictest rule counts, so exceptions may stand beside one rule for everything.
        named = [_rule(name, one) for name, one in wanted.items() if one != base]
        return [ToolRule(tool=EVERYTHING, permission=base), *named]
    # An exception that allows more than the default cannot: then only what is named is offered.
    every = {name: wanted.get(name, base) for name in NAMES}
    return [_rule(name, one) for name, one in every.items() if one != "always_deny"]


def _rule(wire_name: str, permission: Permission) -> ToolRule:
    return ToolRule(tool=NAMES[wire_name], permission=permission)


def narrowed(tools: Sequence[Tool], config: AgentConfig) -> dict[str, Any]:
    """What `tools` makes of an agent's in one session: overrides for `create_conversation`.

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
    return {
        "tools": [rule.model_dump(mode="json") for rule in (*config.tools, *added)],
        "custom_tools": [tool.model_dump(mode="json") for tool in rules.custom_tools],
    }


# --- to the wire ----------------------------------------------------------------------------------


def to_wire(config: AgentConfig) -> list[dict[str, Any]]:
    """The tools as clients see them; `x_rules` has the rules as they are."""
    shown: list[dict[str, Any]] = []
    if config.tools:
        default = _strictest(rule for rule in config.tools if rule.tool == EVERYTHING)
        each = {name: _permission_of(ours, config.tools) for name, ours in NAMES.items()}
        shown.append(
            {
                "type": TOOLSET,
                "default_config": _wire_config(default),
                "configs": [
                    {"type": name, "name": name, **_wire_config(permission)}
                    for name, permission in each.items()
                    if permission != default
                ],
                "x_rules": [rule.model_dump(mode="json") for rule in config.tools],
            }
        )
    return [
        *shown,
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


def _permission_of(tool: str, rules: Iterable[ToolRule]) -> Permission:
    return _strictest(rule for rule in rules if fnmatchcase(tool, rule.tool))


def _strictest(rules: Iterable[ToolRule]) -> Permission:
    """Of rules without a condition; what no rule covers is not offered."""
    said = [rule.permission for rule in rules if rule.when is None]
    return max(said, key=_STRICTNESS.__getitem__) if said else "always_deny"


def _wire_config(permission: Permission) -> dict[str, Any]:
    asked = "always_ask" if permission == "always_deny" else permission
    return {"enabled": permission != "always_deny", "permission_policy": {"type": asked}}

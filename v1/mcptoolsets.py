"""An agent's MCP servers on the wire and as configuration: `mcp_servers`, and an `mcp_toolset` for each.

A server of the wire is a row here: one that its name means already, or a new one of the agent's or of one
session's (`mcpservers.actions.handing`). Rules on single tools go by `mcp:server:tool`; those about
arguments are kept when a program writes the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal

from django.utils.translation import gettext as _
from pydantic import Field

from agents.models import Agent, AgentVersion
from conversations.models import Conversation
from harness.agentconfig import (
    MOST_MCP_SERVERS,
    SERVER_NAME,
    AgentConfig,
    McpUse,
    Permission,
    ToolRule,
)
from harness.errors import Invalid
from harness.policy import MCP
from mcpservers.actions.handing import Handed, asking
from mcpservers.addresses import check_url
from mcpservers.listing import local_name
from mcpservers.models import McpServer
from mcpservers.whose import serving_in

from .door import Body

TOOLSET = "mcp_toolset"
ANY = "\N{REPLACEMENT CHARACTER}"
"""No tool is called so: a rule that covers it covers all tools of a server."""
Policy = Literal["always_allow", "always_ask"]
STRICTNESS: Mapping[Permission, int] = {"always_allow": 0, "always_ask": 1, "always_deny": 2}


class McpServerBody(Body):
    type: Literal["url"]
    name: str = Field(min_length=1, max_length=255)
    url: str = Field(min_length=1, max_length=2_000)


McpServers = Annotated[tuple[McpServerBody, ...], Field(max_length=MOST_MCP_SERVERS)]


class AskPolicy(Body):
    type: Policy


class McpDefault(Body):
    enabled: bool = True
    permission_policy: AskPolicy = AskPolicy(type="always_ask")


class McpToolConfig(Body):
    name: str = Field(min_length=1, max_length=128)
    type: str | None = None
    enabled: bool | None = None
    permission_policy: AskPolicy | None = None


class McpToolset(Body):
    type: Literal["mcp_toolset"]
    mcp_server_name: str
    default_config: McpDefault | None = None
    configs: tuple[McpToolConfig, ...] | None = Field(default=None, max_length=256)


def is_said(rule: ToolRule) -> bool:
    """Whether a rule is one that this wire can say."""
    plain = rule.when is None and rule.options == type(rule.options)()
    parts = rule.tool.split(":")
    single = len(parts) == 3 and not set("*?[") & set(parts[1])
    one = parts[-1] == "*" or not set("*?[") & set(parts[-1])
    return plain and single and parts[0] == "mcp" and one


def uses_and_rules(
    names: Sequence[str], toolsets: Sequence[McpToolset], *, before: AgentConfig | None = None
) -> tuple[tuple[McpUse, ...], tuple[ToolRule, ...]]:
    """The servers that are used, and all rules that this wire can say of servers; those of `before` stay
    where a toolset is as it was read, and where there was none to read.

    Raises Invalid unless each server has one toolset, and each toolset a server.
    """
    held = [toolset.mcp_server_name for toolset in toolsets]
    if sorted(held) != sorted(names) or len(set(held)) != len(held):
        raise Invalid(
            _(
                "Each of the mcp_servers has exactly one mcp_toolset, and each mcp_toolset a server."
            ),
            field="tools",
            hint=_("Name the same servers in both."),
        )
    used = {use.name: use for use in before.mcp_servers} if before else {}
    there = before.tools if before else ()
    said = [rule for rule in there if is_said(rule)]
    unsaid = [rule for rule in there if not is_said(rule)]
    uses: list[McpUse] = []
    rules = [rule for rule in said if _server_of(rule) not in {*used, *names}]
    for toolset in toolsets:
        named = _named(toolset)
        read = used.get(toolset.mcp_server_name)
        if read and named == _named(McpToolset.model_validate(_toolset(read, there))):
            uses.append(read)
            rules += [rule for rule in said if _server_of(rule) == read.name]
            continue
        default, each = named
        only = tuple(name for name, (enabled, _policy) in each.items() if enabled)
        uses.append(
            McpUse(
                name=toolset.mcp_server_name,
                tools=None if default.enabled else only,
                through_provider=read is not None and read.through_provider,
            )
        )
        rules += _rules_of(toolset.mcp_server_name, default, each, unsaid)
    return tuple(uses), tuple(rules)


def _rules_of(
    server: str,
    default: McpDefault,
    each: Mapping[str, tuple[bool, Policy]],
    others: Sequence[ToolRule],
) -> list[ToolRule]:
    """As few as say it, beside `others`, which stay."""
    usual = default.permission_policy.type
    rules: list[ToolRule] = []
    if default.enabled and usual != _permission_of(server, ANY, others):
        rules.append(_rule(server, "*", usual))
    for name, (enabled, wanted) in each.items():
        address = address_in(server, name)
        if not enabled:
            if default.enabled:
                rules.append(_rule(server, address, "always_deny"))
        elif wanted != usual or wanted != _permission_of(server, address, (*others, *rules)):
            rules.append(_rule(server, address, wanted))
    return rules


def kept_uses(names: Sequence[str], before: AgentConfig | None) -> tuple[McpUse, ...]:
    """What `before` uses, if these are its servers by name. Raises Invalid if not: each has a toolset."""
    held = [McpToolset.model_validate(each) for each in (to_wire(before) if before else ())]
    return uses_and_rules(names, held, before=before)[0]


def _server_of(rule: ToolRule) -> str:
    return rule.tool.split(":")[1]


def _named(toolset: McpToolset) -> tuple[McpDefault, dict[str, tuple[bool, Policy]]]:
    """What holds usually, and for each tool that it names. Raises Invalid for one that is named twice."""
    default = toolset.default_config or McpDefault()
    each = {
        config.name: (
            default.enabled if config.enabled is None else config.enabled,
            (config.permission_policy or default.permission_policy).type,
        )
        for config in toolset.configs or ()
    }
    if len(each) != len(toolset.configs or ()):
        raise Invalid(
            _("A tool of “%(name)s” is configured twice.") % {"name": toolset.mcp_server_name},
            field="tools",
            hint=_("Configure it once."),
        )
    return default, each


def address_in(server: str, tool: str) -> str:
    """The last part of a tool's address in rules."""
    return local_name(server, tool).removeprefix(f"mcp__{server}__")


def to_wire(config: AgentConfig) -> list[dict[str, Any]]:
    """The toolsets as clients see them."""
    return [_toolset(use, config.tools) for use in config.mcp_servers]


def servers_to_wire(
    agent: Agent, config: AgentConfig, conversation: Conversation | None = None
) -> list[dict[str, Any]]:
    """The servers by name, with the address that each has now; "" for one that is gone. `conversation`: as it
    has them."""
    if not config.mcp_servers:
        return []
    names = [use.name for use in config.mcp_servers]
    if conversation is not None:
        rows = serving_in(conversation)
    else:
        bounding = AgentVersion.objects.filter(narrowed__agent=agent).values_list(
            "agent", flat=True
        )
        agents = [agent.pk, *bounding] if agent.owner_id is not None else [agent.pk]
        rows = McpServer.objects.serving(agent.organisation_id or 0, 0, agents=agents)
    urls: dict[str, str] = {}
    for row in rows.filter(name__in=names):
        urls.setdefault(row.name, row.url)
    return [{"type": "url", "name": name, "url": urls.get(name, "")} for name in names]


def handed(bodies: Iterable[McpServerBody] | None) -> list[Handed]:
    return [Handed(body.name, body.url) for body in bodies or ()]


def names_of(bodies: Iterable[McpServerBody] | None) -> tuple[str, ...]:
    """Raises Invalid, on `mcp_servers`, for what no server here can be called or reached by."""
    names: list[str] = []
    for body in bodies or ():
        try:
            check_url(body.url)
        except Invalid as problem:
            message = f"{body.name[:60]}: {problem.message}"
            raise Invalid(message, field="mcp_servers", hint=problem.hint) from None
        if not SERVER_NAME.fullmatch(body.name):
            raise Invalid(
                _("A server's name has 1 to 32 small letters, digits and hyphens inside."),
                field="mcp_servers",
                hint=_("Type one such as “github”."),
            )
        names.append(body.name)
    return tuple(names)


def of_session(
    base: AgentConfig,
    now: AgentConfig,
    toolsets: Sequence[McpToolset],
    bodies: Iterable[McpServerBody] | None,
) -> tuple[tuple[McpUse, ...], tuple[ToolRule, ...]]:
    """What a session uses in place of what it uses `now`, and the rules that its agent's (`base`) get for
    that: of servers of the agent no tool more, none that asks less, and none of those that are left out; of
    others each call asks.
    `bodies` None: those that it has, as far as there is a toolset for them.

    Raises as `uses_and_rules`.
    """
    if bodies is None:
        named = {toolset.mcp_server_name for toolset in toolsets}
        names = tuple(use.name for use in now.mcp_servers if use.name in named)
    else:
        names = names_of(bodies)
    uses, rules = uses_and_rules(names, toolsets)
    agents = {use.name: use for use in base.mcp_servers}
    kept = tuple(_within(use, agents[use.name]) if use.name in agents else use for use in uses)
    stricter = [rule for rule in rules if rule.permission != "always_allow"]
    for toolset in toolsets:
        name = toolset.mcp_server_name
        default = toolset.default_config or McpDefault()
        if name not in agents or default.permission_policy.type == "always_ask":
            stricter += asking(base.tools, [name])
    stricter += [_rule(name, "*", "always_deny") for name in agents if name not in names]
    return kept, tuple(stricter)


def _within(use: McpUse, agents: McpUse) -> McpUse:
    tools = agents.tools if use.tools is None else use.tools
    if agents.tools is not None:
        tools = tuple(tool for tool in tools or () if tool in agents.tools)
    return McpUse(name=use.name, tools=tools, through_provider=agents.through_provider)


def _toolset(use: McpUse, rules: Iterable[ToolRule]) -> dict[str, Any]:
    usual = _permission_of(use.name, ANY, rules)
    named = {address_in(use.name, tool): tool for tool in use.tools or ()}
    singled = [
        rule.tool.removeprefix(f"mcp:{use.name}:")
        for rule in rules
        if is_said(rule) and _server_of(rule) == use.name
    ]
    every = {
        name: _permission_of(use.name, name, rules)
        for name in dict.fromkeys([*named, *singled])
        if name != "*"
    }
    return {
        "type": TOOLSET,
        "mcp_server_name": use.name,
        "default_config": _wire_config(usual, there=use.tools is None),
        "configs": [
            {
                "type": TOOLSET,
                "name": named.get(name, name),
                **_wire_config(one, there=use.tools is None or name in named),
            }
            for name, one in every.items()
        ],
    }


def _permission_of(server: str, tool: str, rules: Iterable[ToolRule]) -> Permission:
    """By rules without a condition, as they are read where a call is judged; `ANY`: of all that it has."""
    said: list[Permission] = [
        rule.permission
        for rule in rules
        if rule.when is None
        and (rule.permission != "always_allow" or rule.tool.startswith(MCP))
        and any(fnmatchcase(name, rule.tool) for name in _names_of(server, tool))
    ]
    return max(said, key=STRICTNESS.__getitem__) if said else "always_ask"


def _names_of(server: str, tool: str) -> tuple[str, str]:
    return f"mcp:{server}:{tool}", f"mcp__{server}__{tool}"


def _wire_config(permission: Permission, *, there: bool) -> dict[str, Any]:
    asked = "always_ask" if permission == "always_deny" else permission
    return {
        "enabled": there and permission != "always_deny",
        "permission_policy": {"type": asked},
    }


def _rule(server: str, tool: str, permission: Permission) -> ToolRule:
    return ToolRule(tool=f"mcp:{server}:{tool}", permission=permission)

"""An agent's MCP servers on the wire and as configuration: `mcp_servers`, and an `mcp_toolset` for each.

A server of the wire is a row here: one that its name means already, or a new one of the agent's or of one
session's (`mcpservers.actions.handing`). Rules on single tools go by `mcp:server:tool`; those about
arguments are kept when a program writes the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
from mcpservers.actions.handing import Handed, asking
from mcpservers.addresses import check_url
from mcpservers.listing import local_name
from mcpservers.models import McpServer
from mcpservers.whose import serving_in

from .door import Body

TOOLSET = "mcp_toolset"


class McpServerBody(Body):
    type: Literal["url"]
    name: str = Field(min_length=1, max_length=255)
    url: str = Field(min_length=1, max_length=2_000)


McpServers = Annotated[tuple[McpServerBody, ...], Field(max_length=MOST_MCP_SERVERS)]


class AskPolicy(Body):
    type: Literal["always_allow", "always_ask"]


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
    return plain and single and parts[0] == "mcp" and (parts[2] == "*" or "*" not in parts[2])


def uses_and_rules(
    names: Sequence[str], toolsets: Sequence[McpToolset]
) -> tuple[tuple[McpUse, ...], tuple[ToolRule, ...]]:
    """Raises Invalid unless each server has one toolset, and each toolset a server."""
    held = [toolset.mcp_server_name for toolset in toolsets]
    if sorted(held) != sorted(names) or len(set(held)) != len(held):
        raise Invalid(
            _(
                "Each of the mcp_servers has exactly one mcp_toolset, and each mcp_toolset a server."
            ),
            field="tools",
            hint=_("Name the same servers in both."),
        )
    uses: list[McpUse] = []
    rules: list[ToolRule] = []
    for toolset in toolsets:
        default = toolset.default_config or McpDefault()
        usual = default.permission_policy.type
        chosen = {config.name: config for config in toolset.configs or ()}
        if len(chosen) != len(toolset.configs or ()):
            raise Invalid(
                _("A tool of “%(name)s” is configured twice.") % {"name": toolset.mcp_server_name},
                field="tools",
                hint=_("Configure it once."),
            )
        on = {
            name: default.enabled if config.enabled is None else config.enabled
            for name, config in chosen.items()
        }
        only = None if default.enabled else tuple(name for name, there in on.items() if there)
        uses.append(McpUse(name=toolset.mcp_server_name, tools=only))
        if default.enabled and usual == "always_allow":
            rules.append(_rule(toolset.mcp_server_name, "*", usual))
        for name, config in chosen.items():
            wanted = (config.permission_policy or default.permission_policy).type
            address = address_in(toolset.mcp_server_name, name)
            if not on[name]:
                if default.enabled:
                    rules.append(_rule(toolset.mcp_server_name, address, "always_deny"))
            elif wanted != usual or (wanted == "always_allow" and not default.enabled):
                rules.append(_rule(toolset.mcp_server_name, address, wanted))
    return tuple(uses), tuple(rules)


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
    mine: Mapping[str, Permission] = {
        rule.tool.removeprefix(f"mcp:{use.name}:"): rule.permission
        for rule in rules
        if is_said(rule) and rule.tool.startswith(f"mcp:{use.name}:")
    }
    usual = mine.get("*", "always_ask")
    named = {address_in(use.name, tool): tool for tool in use.tools or ()}
    every = {
        **dict.fromkeys(named, usual),
        **{name: one for name, one in mine.items() if name != "*"},
    }
    return {
        "type": TOOLSET,
        "mcp_server_name": use.name,
        "default_config": _wire_config(usual, there=use.tools is None),
        "configs": [
            {"type": TOOLSET, "name": named.get(name, name), **_wire_config(one, there=True)}
            for name, one in every.items()
        ],
    }


def _wire_config(permission: Permission, *, there: bool) -> dict[str, Any]:
    asked = "always_ask" if permission == "always_deny" else permission
    return {
        "enabled": there and permission != "always_deny",
        "permission_policy": {"type": asked},
    }


def _rule(server: str, tool: str, permission: Permission) -> ToolRule:
    return ToolRule(tool=f"mcp:{server}:{tool}", permission=permission)

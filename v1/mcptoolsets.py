"""An agent's MCP servers on the wire and as configuration: `mcp_servers`, and an `mcp_toolset` for each.

A server of the wire is a row here: one that its name means already, or a new one of the organisation. Rules
on single tools go by `mcp:server:tool`; those about arguments are kept when a program writes the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal

from django.utils.translation import gettext as _
from pydantic import Field

from accounts.api.authentication import Caller
from agents.models import Agent
from harness.agentconfig import MOST_MCP_SERVERS, AgentConfig, McpUse, Permission, ToolRule
from harness.errors import Conflict, Invalid
from mcpservers.actions.servers import add_server
from mcpservers.addresses import check_url
from mcpservers.listing import local_name
from mcpservers.models import McpServer

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


def servers_to_wire(agent: Agent, config: AgentConfig) -> list[dict[str, Any]]:
    """The servers by name, with the address that each has now; "" for one that is gone."""
    if not config.mcp_servers:
        return []
    names = [use.name for use in config.mcp_servers]
    rows = McpServer.objects.serving(agent.organisation_id or 0, 0).filter(name__in=names)
    urls: dict[str, str] = {}
    for row in rows:
        urls.setdefault(row.name, row.url)
    return [{"type": "url", "name": name, "url": urls.get(name, "")} for name in names]


def require_servers(caller: Caller, bodies: Iterable[McpServerBody]) -> tuple[str, ...]:
    """Their names; one that is not known here is added to the organisation, and looked at soon.

    Raises Invalid, on `mcp_servers`, where a name means another address here, and as `add_server`.
    """
    names: list[str] = []
    for body in bodies:
        try:
            url = check_url(body.url)
            known = McpServer.objects.serving(caller.organisation.pk, 0)
            there = known.filter(name=body.name).first()
            if there is not None and there.url != url:
                raise Invalid(
                    _("“%(name)s” is another server here.") % {"name": body.name},
                    field="name",
                    hint=_("Give the server another name."),
                )
            if there is None:
                add_server(
                    actor=caller.user,
                    organisation=caller.organisation,
                    scope=McpServer.Scope.ORGANISATION,
                    name=body.name,
                    url=url,
                    look=False,
                )
        except (Invalid, Conflict) as problem:
            message = f"{body.name[:60]}: {problem.message}"
            raise Invalid(message, field="mcp_servers", hint=problem.hint) from None
        names.append(body.name)
    return tuple(names)


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

"""Whether one configuration allows no more than another: what whoever may not widen an agent may still
make of it, for a conversation or for an agent of her own.

It compares what is written. What a call comes to is judged when it is made (`harness.policy`), and there
the rules of server and organisation hold beside these.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from django.utils.translation import gettext as _

from harness.agentconfig import (
    STORED,
    AgentConfig,
    Effort,
    Features,
    Limits,
    Role,
    RoleOverride,
    ToolRule,
)
from harness.errors import Invalid
from harness.modelcards import card_for
from harness.modelfaults import read_as
from harness.roster import Roster

from .switches import LABELS

CAREFUL = ("approval", "plan_mode")
"""Switches that let an agent do less: where the base has one on, it stays."""
OF_SERVERS = "mcp:"
"""Rules on tools of MCP servers offer none: an agent has those of the servers that it names, and they ask."""
CAPPED = tuple(name for name in Limits.model_fields if name != "compact_at")
"""Limits that may be lower than the base's."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a member chooses for an agent of her own; everything else is its base's."""

    instructions: str = ""
    provider: str = "auto"
    model: str = ""
    effort: Effort = ""
    thinking: bool = False
    tools: tuple[ToolRule, ...] = ()
    """Rules beside the base's."""
    features: Features = field(default_factory=Features)


def narrowed(base: AgentConfig, wishes: Wishes) -> AgentConfig:
    """The configuration of an agent that may do no more than `base`. Raises Invalid, naming the field,
    for a wish that would allow more or is none."""
    changes: Mapping[str, Any] = {
        "instructions": wishes.instructions.replace("\r\n", "\n").replace("\0", ""),
        "provider": wishes.provider,
        "model": wishes.model.strip(),
        "effort": wishes.effort,
        "thinking": wishes.thinking,
        "tools": (*base.tools, *wishes.tools),
        "features": wishes.features,
        "limits": _fitting(base.limits, wishes.model),
        "roles": base.roles if wishes.provider == base.provider else _without_models(base.roles),
    }
    kept = {name: getattr(base, name) for name in AgentConfig.model_fields}
    config = read_as({**kept, **changes}, AgentConfig, context=STORED)
    require_within(config, base)
    return config


def wishes_in(config: AgentConfig, base: AgentConfig) -> Wishes:
    """What was wished for when `narrowed` made `config` of `base`."""
    known = config.tools[: len(base.tools)] == base.tools
    return Wishes(
        instructions=config.instructions,
        provider=config.provider,
        model=config.model,
        effort=config.effort,
        thinking=config.thinking,
        tools=config.tools[len(base.tools) :] if known else (),
        features=config.features,
    )


def require_within(config: AgentConfig, base: AgentConfig) -> None:
    """Raises Invalid, naming the field, where `config` allows what `base` does not."""
    require_narrower(base.tools, config.tools)
    own = {tool.name for tool in base.custom_tools}
    if added := [tool.name for tool in config.custom_tools if tool.name not in own]:
        raise Invalid(
            _("The base has no custom tool “%(name)s”.") % {"name": added[0]},
            field="custom_tools",
            hint=_("Leave it out, or ask who manages the base to add it there."),
        )
    require_fewer_servers(config=config, base=base)
    if _calls_on_more(config.roster, base.roster):
        raise Invalid(
            _("It could call on somebody on whom the base cannot."),
            field="roster",
            hint=_("Leave out whom the base does not name."),
        )
    for name in CAPPED:
        most = getattr(base.limits, name)
        if getattr(config.limits, name) > most:
            raise Invalid(
                _("The base allows %(most)d at most.") % {"most": most},
                field=f"limits.{name}",
                hint=_("Give that or less."),
            )
    if base.sandbox and config.sandbox != base.sandbox:
        raise Invalid(
            _("The sandbox rules of the base may not be changed."),
            field="sandbox",
            hint=_("Leave them as they are."),
        )
    for name in CAREFUL:
        if getattr(base.features, name) and not getattr(config.features, name):
            raise Invalid(
                _("The base has “%(switch)s” on; it cannot be switched off here.")
                % {"switch": LABELS[name]},
                field=f"features.{name}",
                hint=_("Switch it on."),
            )
    for role, override in config.roles.items():
        held = base.roles.get(role, RoleOverride()).output_tokens or base.limits.output_tokens
        if (override.output_tokens or 0) > held:
            raise Invalid(
                _("The base allows %(most)d at most.") % {"most": held},
                field=f"roles.{role}.output_tokens",
                hint=_("Give that or less."),
            )


def require_fewer_servers(base: AgentConfig, config: AgentConfig, *, others: bool = False) -> None:
    """Raises Invalid, on `mcp_servers`, where `config` has more of a server than `base`. `others`: it may
    name such as `base` does not."""
    servers = {server.name: server.tools for server in base.mcp_servers}
    elsewhere = {server.name for server in base.mcp_servers if server.through_provider}
    for server in config.mcp_servers:
        if server.through_provider and server.name not in elsewhere:
            raise Invalid(
                _("The base has “%(name)s” called from here.") % {"name": server.name},
                field="mcp_servers",
                hint=_("Leave that as it is, or ask who manages the base."),
            )
        most_tools = servers.get(server.name, None if others else ())
        if most_tools is not None and not set(server.tools or ("*",)) <= set(most_tools):
            raise Invalid(
                _("The base has not all of the MCP server “%(name)s”.") % {"name": server.name},
                field="mcp_servers",
                hint=_("Leave it out, or ask who manages the base to add it there."),
            )


def _calls_on_more(roster: Roster, base: Roster) -> bool:
    return (
        not set(roster.agents) <= set(base.agents)
        or (roster.inline and not base.inline)
        or (base.only and not roster.only)
        or roster.advisor not in {"", base.advisor}
    )


def require_narrower(rules: tuple[ToolRule, ...], wanted: tuple[ToolRule, ...]) -> None:
    """Of all rules about a call the strictest counts, so more of them allow less, unless one covers a
    tool that none covered before: also a rule that denies some calls of a tool offers its others. Raises
    Invalid for `tools`."""
    added = wanted[len(rules) :]
    if wanted[: len(rules)] == rules and all(
        (rule.permission == "always_deny" and rule.when is None)
        or (
            rule.permission != "always_allow"
            and (_covered(rule.tool, rules) or rule.tool.startswith(OF_SERVERS))
        )
        or (rule.permission == "always_allow" and rule.when is None and _free(rule.tool, rules))
        for rule in added
    ):
        return
    raise Invalid(
        _(
            "Tools may be fewer than the agent's this builds on, or ask more often, never the reverse."
        ),
        field="tools",
        hint=_("Leave the tools out, or have that agent changed."),
    )


def _covered(tool: str, rules: tuple[ToolRule, ...]) -> bool:
    """Whether some rule offers this one tool already, whatever it is called with."""
    return not set("*?[") & set(tool) and any(
        rule.when is None and fnmatchcase(tool, rule.tool) for rule in rules
    )


def _free(tool: str, rules: tuple[ToolRule, ...]) -> bool:
    """Whether the tool is allowed already, and no rule asks or denies, so that saying it once more
    (and that it stands apart from what the conversation itself takes away) opens nothing."""
    return _covered(tool, rules) and all(rule.permission == "always_allow" for rule in rules)


def _fitting(limits: Limits, model: str) -> Limits:
    """With a window no larger than that of a model of which it is known."""
    card = card_for(model)
    if not model or not card.prefix or card.context_window >= limits.context_window:
        return limits
    return limits.model_copy(update={"context_window": card.context_window})


def _without_models(roles: Mapping[Role, RoleOverride]) -> dict[Role, RoleOverride]:
    """Another provider has other models."""
    return {role: each.model_copy(update={"model": None}) for role, each in roles.items()}

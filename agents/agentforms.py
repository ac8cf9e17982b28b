"""An agent's configuration as the flat fields of a form, and back.

`AgentConfig` judges what is typed; here its errors find the field they belong to, in words that say
what to do. Widgets and layout are the admin's.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any, get_args

from django.utils.translation import gettext as _
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from agents.faultwords import words_of
from harness.agentconfig import (
    USUAL_LABEL,
    AgentConfig,
    Features,
    Limits,
    McpUse,
    PromptUse,
    Role,
    RoleOverride,
    Shortening,
    SkillUse,
)
from harness.roster import Callee
from reading.digits import is_digits

ROLES: tuple[Role, ...] = get_args(Role)
PLAIN = (
    "provider",
    "model",
    "instructions",
    "temperature",
    "top_p",
    "thinking",
    "effort",
    "sandbox",
)
ROSTER = ("agents", "only", "inline", "advisor")
TEXTS = ("instructions", "sandbox")
OVERRIDES = tuple(RoleOverride.model_fields)

VERSION = "@"
"""Stands before the number of an agent's version."""
ELSEWHERE = "@provider"
"""Stands behind the name of an MCP server that the model's service calls by itself."""
DIGEST = "sha256:"
"""Begins the digest that a locked skill must have."""

INHERIT = "inherit"
"""What a choice says that the role does not override; "" is a value of `effort`."""


PROMPT_LINE = 10_000
"""Characters of a line that names a prompt and the values of its variables."""


class ConfigErrors(Exception):
    """What is wrong with a configuration: messages by form field."""

    def __init__(self, by_field: dict[str, list[str]]) -> None:
        super().__init__(by_field)
        self.by_field = by_field


def field_names() -> list[str]:
    """The form's fields, in the order of the configuration."""
    return list(to_fields(AgentConfig()))


def to_fields(config: AgentConfig) -> dict[str, Any]:
    """The configuration by form field; what a role inherits is None, or `INHERIT` for a choice."""
    fields = {name: getattr(config, name) for name in PLAIN}
    fields["tools"] = [
        {
            "tool": rule.tool,
            "permission": rule.permission,
            **rule.model_dump(
                mode="json", exclude_defaults=True, include={"when", "options", "apart", "note"}
            ),
        }
        for rule in config.tools
    ]
    fields["custom_tools"] = [tool.model_dump() for tool in config.custom_tools]
    fields["mcp_servers"] = "\n".join(map(_server_line, config.mcp_servers))
    fields["skills"] = "\n".join(map(_skill_line, config.skills))
    fields["roster_agents"] = "\n".join(map(_callee_line, config.roster.agents))
    fields |= {f"roster_{name}": getattr(config.roster, name) for name in ROSTER[1:]}
    fields["prompts"] = "\n".join(map(_prompt_line, config.prompts))
    fields |= {f"limits_{name}": value for name, value in config.limits.model_dump().items()}
    shortening = config.shortening.model_dump()
    fields |= {f"shortening_{name}": value for name, value in shortening.items()}
    for role in ROLES:
        override = config.roles.get(role, RoleOverride()).model_dump()
        fields |= {f"{role}_{name}": _shown(name, override[name]) for name in OVERRIDES}
    fields |= {f"feature_{name}": value for name, value in config.features.model_dump().items()}
    return fields


def to_config(values: Mapping[str, Any]) -> AgentConfig:
    """The configuration that these field values say. Raises `ConfigErrors`.

    A value that is missing or None takes the default of its field, or is inherited.
    """
    given: dict[str, Any] = {name: values[name] for name in PLAIN if values.get(name) is not None}
    given |= {name: _plain_lines(given[name]) for name in TEXTS if name in given}
    given["tools"] = values.get("tools") or ()
    given["custom_tools"] = values.get("custom_tools") or ()
    given["mcp_servers"] = _servers(values.get("mcp_servers") or "")
    given["skills"] = _skills(values.get("skills") or "")
    given["roster"] = _group(values, "roster", ROSTER)
    given["roster"]["agents"] = _callees(values.get("roster_agents") or "")
    given["prompts"] = _prompts(values.get("prompts") or "")
    given["limits"] = _group(values, "limits", tuple(Limits.model_fields))
    given["shortening"] = _group(values, "shortening", tuple(Shortening.model_fields))
    given["features"] = _group(values, "feature", tuple(Features.model_fields))
    roles = {role: _overrides(values, role) for role in ROLES}
    given["roles"] = {role: override for role, override in roles.items() if override}
    try:
        return AgentConfig.model_validate(given)
    except ValidationError as problem:
        raise ConfigErrors(_by_field(problem.errors())) from None


def _shown(name: str, value: Any) -> Any:
    if name in {"thinking", "effort"} and value is None:
        return INHERIT
    return value


def _group(values: Mapping[str, Any], prefix: str, names: tuple[str, ...]) -> dict[str, Any]:
    found = {name: values.get(f"{prefix}_{name}") for name in names}
    return {name: value for name, value in found.items() if value is not None}


def _overrides(values: Mapping[str, Any], role: Role) -> dict[str, Any]:
    found = _group(values, role, OVERRIDES)
    return {
        name: value
        for name, value in found.items()
        if value != INHERIT and not (name == "model" and value == "")
    }


def _server_line(server: McpUse) -> str:
    name = f"{server.name}{ELSEWHERE}" if server.through_provider else server.name
    return name if server.tools is None else f"{name}: {', '.join(server.tools)}"


def _servers(text: str) -> list[dict[str, Any]]:
    """One a line: a name, behind a sign that the model's service calls it, and behind a colon the tools that
    it is to be confined to."""
    found: list[dict[str, Any]] = []
    for line in text.splitlines():
        name, colon, tools = line.partition(":")
        if line.strip():
            only = [tool.strip() for tool in tools.split(",") if tool.strip()] if colon else None
            bare = name.strip().removesuffix(ELSEWHERE)
            there = {"through_provider": True} if bare != name.strip() else {}
            found.append({"name": bare, "tools": only, **there})
    return found


def _skill_line(skill: SkillUse) -> str:
    if skill.digest:
        return f"{skill.name} {skill.version} {DIGEST}{skill.digest}"
    return skill.name if skill.version == "stable" else f"{skill.name} {skill.version}"


def _skills(text: str) -> list[dict[str, Any]]:
    """One a line: a name, and behind a space the version or channel; behind that the digest of a lock."""
    found: list[dict[str, Any]] = []
    for line in text.splitlines():
        name, _space, version = line.strip().partition(" ")
        version, _sign, digest = version.partition(DIGEST)
        if name:
            given = {"name": name, "version": version.strip() or "stable"}
            found.append({**given, "digest": digest.strip()} if digest else given)
    return found


def _callee_line(callee: Callee) -> str:
    who = f"{callee.name}: {callee.agent}" if callee.name else callee.agent
    return f"{who} {VERSION} {callee.version}" if callee.version else who


def _callees(text: str) -> list[dict[str, Any]]:
    """One a line: what it is called and a colon, both of which may be missing; an agent's id or name; behind
    a sign the number of a version."""
    found: list[dict[str, Any]] = []
    for line in text.splitlines():
        name, colon, rest = line.rpartition(":")
        who, sign, number = rest.rpartition(VERSION)
        if not sign or not is_digits(number.strip()):
            who, number = rest, ""
        if line.strip():
            given: dict[str, Any] = {"agent": who.strip()}
            if colon:
                given["name"] = name.strip()
            if number.strip():
                given["version"] = number.strip()
            found.append(given)
    return found


def _prompt_line(prompt: PromptUse) -> str:
    named = [prompt.name] if prompt.version == USUAL_LABEL else [prompt.name, prompt.version]
    values = [f"{name}={value}" for name, value in prompt.values.items()]
    return shlex.join([*named, *values])


def _prompts(text: str) -> list[dict[str, Any]]:
    """One a line: a name, behind it a version or label, and values as in `tone="short and kind"`."""
    found: list[dict[str, Any]] = []
    for line in text.splitlines():
        if len(line) > PROMPT_LINE:  # its reader takes the square of that
            problem = _("A line is longer than %(limit)d characters.")
            raise ConfigErrors({"prompts": [problem % {"limit": PROMPT_LINE}]})
        try:
            words = shlex.split(line)
        except ValueError:
            problem = _("A quotation mark is opened and not closed in “%(line)s”; close it.")
            raise ConfigErrors({"prompts": [problem % {"line": line[:80]}]}) from None
        if not words:
            continue
        named = [word for word in words[1:] if "=" not in word]
        if len(named) > 1:
            problem = _("“%(word)s” is no value: write name=value, with quotation marks around it.")
            raise ConfigErrors({"prompts": [problem % {"word": named[1][:80]}]})
        values = dict(word.split("=", 1) for word in words[1:] if "=" in word)
        version = named[0] if named else USUAL_LABEL
        found.append({"name": words[0], "version": version, "values": values})
    return found


def _plain_lines(text: str) -> str:
    """Browsers send every line end as two characters; that alone is no change of the text."""
    return text.replace("\r\n", "\n").replace("\0", "")


def _by_field(errors: list[ErrorDetails]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for error in errors:
        found.setdefault(_field_of(error["loc"]), []).append(words_of(error))
    return found


def _field_of(place: tuple[int | str, ...]) -> str:
    group, *rest = place
    if group in {"tools", "custom_tools", "mcp_servers", "skills", "prompts"} or not rest:
        return str(group)
    if group == "roles":
        return "_".join(str(part) for part in rest[:2])
    return f"{'feature' if group == 'features' else group}_{rest[0]}"

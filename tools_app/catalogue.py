"""Every tool there is: the `TOOLS` of each installed app's `agent_tools` module, collected once.

Which of them an agent is offered and may use is judged by `harness.policy`, not here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import Any

from django.apps import apps
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import module_has_submodule

from harness.schemas import Unsound, require_sound
from harness.tools import Effect, Tool

MODULE = "agent_tools"

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""What the model services take as the name of a tool."""


def collected(offers: Iterable[tuple[str, Iterable[Tool]]]) -> dict[str, Tool]:
    """The tools of several owners by name, in order. Raises `ImproperlyConfigured` for a name that
    two owners use or no service takes, and for a schema that is none."""
    tools: dict[str, Tool] = {}
    owners: dict[str, str] = {}
    for owner, offered in offers:
        for tool in offered:
            if tool.name in tools:
                raise ImproperlyConfigured(
                    f"The tool “{tool.name}” is offered by both {owners[tool.name]} and {owner}. "
                    "Rename one of them."
                )
            if not _NAME.fullmatch(tool.name):
                raise ImproperlyConfigured(
                    f"“{tool.name}” of {owner} is no name for a tool: use up to 64 letters, "
                    "digits, “_” and “-”."
                )
            try:
                require_sound(tool.input_schema)
            except Unsound as problem:
                raise ImproperlyConfigured(
                    f"The input schema of “{tool.name}” of {owner} is invalid: {problem}"
                ) from problem
            tools[tool.name] = tool
            owners[tool.name] = owner
    return tools


@cache
def all_tools() -> Mapping[str, Tool]:
    """Every tool by its name, in the order of the installed apps. Needs the app registry."""
    offers = [
        (f"{config.name}.{MODULE}", import_module(f"{config.name}.{MODULE}").TOOLS)
        for config in apps.get_app_configs()
        if config.module is not None and module_has_submodule(config.module, MODULE)
    ]
    return MappingProxyType(collected(offers))


def describe(tool: Tool) -> dict[str, Any]:
    """What people and programs may know of a tool before they let an agent use it: JSON types only."""
    return {
        "name": tool.name,
        "owner": tool.owner,
        "description": tool.description,
        "effect": tool.effect.value,
        "read_only": tool.effect is Effect.READ,
        "destructive": tool.destructive,
        "idempotent": tool.idempotent,
        "untrusted": tool.untrusted,
        "always_asks": tool.always_asks,
        "general": tool.general,
        "external": tool.external,
        "direct": tool.direct,
        "feature": tool.feature,
        "timeout_seconds": tool.timeout,
        "input_schema": dict(tool.input_schema),
    }


def find(name: str) -> Tool | None:
    return all_tools().get(name)

"""What apps add to one run: the seam by which a subject joins a conversation's work with its agent.

An app registers at start-up; `kits`, `sandboxing` and `judging` ask here and know no app's name. Every
function is called in a database thread, for one conversation, so that what it answers may differ from
agent to agent and from person to person. What becomes of the answers is the callers' part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.agentconfig import AgentConfig
from harness.history import History
from harness.hooks import PASSED, About, Hooks, Ruling
from harness.kit import RemoteOffer
from harness.provider import Provider
from harness.rules import LevelledRule
from harness.tools import Tool
from sandbox.contract import Mount

from .models import Conversation


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the system prompt. It must stay the same for as long as what it tells does: the beginning
    of every prompt is cached."""

    place: int
    """Sections follow the instructions in this order; those of the conversation itself stand at 100."""
    text: str
    most: int = 8_000
    """Characters; what is longer is cut there, and says so."""
    source: str = "system"
    """Of what it is, for the plan of a request: `system`, `steering`, `skills`, `recall`, `documents` or a
    name of the app's own (`harness.contextplan`)."""
    share: float | None = None
    """The most of the context window that its source may take in all; None: what the plan has for it."""
    reread: str = ""
    """How the whole can be read where it was cut: "read_file shows AGENTS.md"."""


@dataclass(frozen=True, slots=True)
class Part:
    """What one app adds to the kit of a run."""

    tools: Mapping[str, Tool] = field(default_factory=dict)
    """By name, beside those of the catalogue. A name that is taken raises `NameTaken`: no tool stands
    in another's place."""
    sections: Sequence[Section] = ()
    extras: Mapping[str, Any] = field(default_factory=dict)
    """What tools are handed, by the key under which they ask for it."""
    remote: Sequence[RemoteOffer] = ()
    """MCP servers that the model's service may be given to call by itself."""


class NameTaken(ValueError):
    """Two apps offer a tool or an extra of one name."""


AddPart = Callable[[Conversation, AgentConfig, Path], Part]
"""With the folder of the conversation's workspace."""
Rules = Callable[[Conversation], Sequence[LevelledRule]]
Mounts = Callable[[Conversation], Sequence[Mount]]
Layer = Callable[[Provider], Provider]
"""Puts a provider in front of another one, which it asks or answers for. What it makes is thrown away with
the run, the other one is not."""
Guards = Callable[[Conversation], Hooks | None]
Layers = Callable[[Conversation], Layer | None]

_parts: list[AddPart] = []
_rules: list[Rules] = []
_mounts: list[Mounts] = []
_layers: list[Layers] = []
_guards: list[Guards] = []


def add_part(part: AddPart) -> None:
    """Have it asked for every run from now on; once, however often it is said. So for the others."""
    if part not in _parts:
        _parts.append(part)


def add_rules(rules: Rules) -> None:
    """Rules of levels beside the agent's own. They are asked for again while a run goes on."""
    if rules not in _rules:
        _rules.append(rules)


def add_mounts(mounts: Mounts) -> None:
    """Folders that commands of a conversation see beside its workspace."""
    if mounts not in _mounts:
        _mounts.append(mounts)


def add_layer(layer: Layers) -> None:
    """Stand in front of the provider of the conversations for which `layer` answers with something."""
    if layer not in _layers:
        _layers.append(layer)


def add_guard(guards: Guards) -> None:
    """Have whom it answers with asked about what the policy lets happen (`harness.hooks`)."""
    if guards not in _guards:
        _guards.append(guards)


def part_of(conversation: Conversation, config: AgentConfig, workspace: Path) -> Part:
    """Everything that apps add, as one part. Raises `NameTaken`."""
    tools: dict[str, Tool] = {}
    extras: dict[str, Any] = {}
    sections: list[Section] = []
    remote: list[RemoteOffer] = []
    for add in _parts:
        part = add(conversation, config, workspace)
        _merge(tools, part.tools, "tool")
        _merge(extras, part.extras, "extra")
        sections += part.sections
        remote += part.remote
    return Part(tools, tuple(sections), extras, tuple(remote))


def rules_of(conversation: Conversation) -> tuple[LevelledRule, ...]:
    return tuple(rule for rules in _rules for rule in rules(conversation))


def mounts_of(conversation: Conversation) -> tuple[Mount, ...]:
    return tuple(mount for mounts in _mounts for mount in mounts(conversation))


def layers_of(conversation: Conversation) -> tuple[Layer, ...]:
    """The one nearest to the service first."""
    found = (layer(conversation) for layer in _layers)
    return tuple(layer for layer in found if layer is not None)


def guard_of(conversation: Conversation) -> Hooks | None:
    """All of them as one, which stops at the first refusal. None: nobody is to be asked."""
    found = [guard for guards in _guards if (guard := guards(conversation)) is not None]
    if len(found) < 2:
        return found[0] if found else None
    return _Together(found)


class _Together:
    def __init__(self, each: Sequence[Hooks]) -> None:
        self._each = each
        self.points = frozenset(point for hooks in each for point in hooks.points)

    def sees(self, tool: str) -> bool:
        return any(hooks.sees(tool) for hooks in self._each)

    def before_request(self, history: History) -> Sequence[About]:
        each = (about for hooks in self._each for about in hooks.before_request(history))
        return [*{about.point: about for about in each}.values()]

    async def ask(self, about: About, extras: Mapping[str, Any]) -> Ruling:
        whole = PASSED
        for hooks in self._each:
            if about.point in hooks.points and not whole.refusal:
                whole = whole.with_next(await hooks.ask(about, extras))
        return whole

    async def ended(self) -> None:
        for hooks in self._each:
            await hooks.ended()


def _merge(into: dict[str, Any], more: Mapping[str, Any], what: str) -> None:
    if taken := into.keys() & more.keys():
        raise NameTaken(f"two apps offer the {what} {sorted(taken)[0]}")
    into.update(more)

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

from django.db.models import Exists, Q, QuerySet

from harness.agentconfig import AgentConfig
from harness.history import History
from harness.hooks import PASSED, About, Hooks, Ruling
from harness.kit import RemoteOffer
from harness.provider import Provider
from harness.rules import LevelledRule
from harness.tools import Tool
from jobs.prepared import Given, Prepared
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
Having = Callable[[], Exists | Q]
"""Whether a conversation, `OuterRef("pk")`, has anything of a subject's."""
Asked = AddPart | Rules | Mounts | Guards

_parts: list[AddPart] = []
_rules: list[Rules] = []
_mounts: list[Mounts] = []
_layers: list[Layers] = []
_guards: list[Guards] = []
_having: dict[Asked, Having] = {}


def add_part(part: AddPart, *, having: Having | None = None) -> None:
    """Have it asked for every run from now on; once, however often it is said. So for the others.

    With `having` only for conversations that have something for it: of all who say so, one query tells. It
    may say so of more, never of fewer.
    """
    _add(_parts, part, having)


def add_rules(rules: Rules, *, having: Having | None = None) -> None:
    """Rules of levels beside the agent's own. They are asked for again while a run goes on."""
    _add(_rules, rules, having)


def add_mounts(mounts: Mounts, *, having: Having | None = None) -> None:
    """Folders that commands of a conversation see beside its workspace."""
    _add(_mounts, mounts, having)


def add_layer(layer: Layers) -> None:
    """Stand in front of the provider of the conversations for which `layer` answers with something."""
    if layer not in _layers:
        _layers.append(layer)


def add_guard(guards: Guards, *, having: Having | None = None) -> None:
    """Have whom it answers with asked about what the policy lets happen (`harness.hooks`)."""
    _add(_guards, guards, having)


@dataclass(frozen=True, slots=True)
class Concerned:
    """Whom of those that said what a conversation must have (`having`) it concerns, as of one moment."""

    _absent: frozenset[Asked]

    @classmethod
    def in_(cls, conversation: Conversation) -> Concerned:
        found = _HAS.first(conversation=conversation.pk) or ()
        return cls(frozenset(one for one, has in zip(_having, found, strict=False) if not has))

    def __contains__(self, one: Asked) -> bool:
        return one not in self._absent


def part_of(
    conversation: Conversation,
    config: AgentConfig,
    workspace: Path,
    concerned: Concerned | None = None,
) -> Part:
    """Everything that apps add, as one part; `concerned` where it was asked already. Raises `NameTaken`."""
    concerned = concerned or Concerned.in_(conversation)
    tools: dict[str, Tool] = {}
    extras: dict[str, Any] = {}
    sections: list[Section] = []
    remote: list[RemoteOffer] = []
    for add in _parts:
        if add not in concerned:
            continue
        part = add(conversation, config, workspace)
        _merge(tools, part.tools, "tool")
        _merge(extras, part.extras, "extra")
        sections += part.sections
        remote += part.remote
    return Part(tools, tuple(sections), extras, tuple(remote))


def rules_of(
    conversation: Conversation, concerned: Concerned | None = None
) -> tuple[LevelledRule, ...]:
    concerned = concerned or Concerned.in_(conversation)
    asked = (rules for rules in _rules if rules in concerned)
    return tuple(rule for rules in asked for rule in rules(conversation))


def mounts_of(conversation: Conversation, concerned: Concerned | None = None) -> tuple[Mount, ...]:
    concerned = concerned or Concerned.in_(conversation)
    asked = (mounts for mounts in _mounts if mounts in concerned)
    return tuple(mount for mounts in asked for mount in mounts(conversation))


def layers_of(conversation: Conversation) -> tuple[Layer, ...]:
    """The one nearest to the service first."""
    found = (layer(conversation) for layer in _layers)
    return tuple(layer for layer in found if layer is not None)


def guard_of(conversation: Conversation, concerned: Concerned) -> Hooks | None:
    """All of them as one, which stops at the first refusal. None: nobody is to be asked."""
    asked = (guards for guards in _guards if guards in concerned)
    found = [guard for guards in asked if (guard := guards(conversation)) is not None]
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


def _add(registered: list[Any], one: Asked, having: Having | None) -> None:
    if one in registered:
        return
    registered.append(one)
    if having is not None:
        _having[one] = having


def _has(given: Given) -> QuerySet[Conversation, tuple[bool, ...]]:
    """Built at the first run, when all have registered."""
    row = Conversation.objects.filter(pk=given.conversation).order_by()
    names = {f"has_{number}": having() for number, having in enumerate(_having.values())}
    return row.annotate(**names).values_list(*names)


_HAS: Prepared[tuple[bool, ...]] = Prepared(_has)


def _merge(into: dict[str, Any], more: Mapping[str, Any], what: str) -> None:
    if taken := into.keys() & more.keys():
        raise NameTaken(f"two apps offer the {what} {sorted(taken)[0]}")
    into.update(more)

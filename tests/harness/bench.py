"""A bench for the loop: a scripted provider, a journal in memory, tools that say what they did."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.agentconfig import AgentConfig, Features, Limits, ToolRule
from harness.content import Text
from harness.events import Event, UserMessage
from harness.history import Entry, History
from harness.hooks import Hooks
from harness.kit import BeforeWriting, Evidence, Kit, Signal
from harness.loop import Loop
from harness.outcomechecks import CheckRunner
from harness.ports import LiveBlock
from harness.rules import LevelledRule
from harness.tools import Effect, Tool, ToolContext
from providers.scripted import Scripted
from reading.hostnames import as_written
from tests.standins.journal import MemoryJournal

TEXT_INPUT = {
    "type": "object",
    "properties": {"text": {"type": "string"}},
    "required": ["text"],
    "additionalProperties": False,
}


def make_tool(
    name: str,
    handler: Callable[[ToolContext, dict[str, Any]], Any] | None = None,
    *,
    effect: Effect = Effect.READ,
    **more: Any,
) -> Tool:
    """A tool that takes `text` and answers `<name>: <text>`, unless a handler is given."""

    def answer(_context: ToolContext, arguments: dict[str, Any]) -> str:
        return f"{name}: {arguments['text']}"

    return Tool(name, f"Does {name}.", TEXT_INPUT, handler or answer, effect, **more)


def noting(texts: list[str]) -> Callable[[ToolContext, dict[str, Any]], str]:
    """A handler that notes what it was called with."""

    def note(_context: ToolContext, arguments: dict[str, Any]) -> str:
        texts.append(arguments["text"])
        return "done"

    return note


def noting_ids(ids: list[str]) -> Callable[[ToolContext, dict[str, Any]], str]:
    """A handler that notes the effect id it ran under."""

    def note(context: ToolContext, _arguments: dict[str, Any]) -> str:
        ids.append(context.call_id)
        return "done"

    return note


def said(text: str) -> UserMessage:
    return UserMessage(content=(Text(text=text),))


@dataclass
class Heard:
    """A `Live` that keeps what it is told."""

    deltas: list[tuple[str, str]] = field(default_factory=list)
    open: set[str] = field(default_factory=set)

    def begin(self, block: LiveBlock) -> None:
        self.open.add(block.uid)

    def delta(self, block: LiveBlock, text: str) -> None:
        assert block.uid in self.open
        self.deltas.append((block.uid, text))

    def end(self, block: LiveBlock) -> None:
        self.open.discard(block.uid)

    async def stride(self) -> None:
        pass

    def text_of(self, uid: str) -> str:
        return "".join(text for block, text in self.deltas if block == uid)


@dataclass
class Bench:
    provider: Any
    tools: Sequence[Tool] = ()
    limits: Limits = field(default_factory=Limits)
    rules: tuple[ToolRule, ...] = (ToolRule(tool="*"),)
    features: Features = field(default_factory=Features)
    config: dict[str, Any] = field(default_factory=dict)
    journal: MemoryJournal = field(default_factory=MemoryJournal)
    live: Heard = field(default_factory=Heard)
    signal: Signal | None = None
    workspace: Path = Path("/nonexistent")
    clock: Callable[[], float] | None = None
    evidence: Evidence | None = None
    checks: CheckRunner | None = None
    before_writing: BeforeWriting | None = None
    reply_seconds: float = 3600.0
    hooks: Hooks | None = None
    read_rules: Callable[[], Awaitable[Sequence[LevelledRule]]] | None = None
    model: str = "scripted"

    @property
    def kit(self) -> Kit:
        config = AgentConfig(tools=self.rules, limits=self.limits, **self.config)
        kit = Kit(
            config=config,
            provider=self.provider,
            model=self.model,
            tools={tool.name: tool for tool in self.tools},
            workspace=self.workspace,
            meant_by=as_written,
            system="You are tested.",
            live=self.live,
            evidence=self.evidence,
            checks=self.checks,
            before_writing=self.before_writing,
            reply_seconds=self.reply_seconds,
            hooks=self.hooks,
            read_rules=self.read_rules,
        )
        if self.clock:
            kit.clock = self.clock
        return kit

    async def run(self, *posted: Event, partials: Sequence[tuple[LiveBlock, str]] = ()) -> None:
        """One run over the log with `posted` added to it, as a new process would make it."""
        self.journal.post(*posted)
        self.journal = MemoryJournal(self.journal.entries, self.journal.hook)
        self.signal = Signal()
        history = History(self.journal.entries, features=self.features)
        await Loop(history, self.kit, self.journal, self.signal).run(partials)

    def start(self, *posted: Event) -> asyncio.Task[None]:
        return asyncio.ensure_future(self.run(*posted))

    def events(self, kind: type[Event] | None = None) -> list[Any]:
        return [e for e in self.journal.events if kind is None or isinstance(e, kind)]

    def entries(self, kind: type[Event]) -> list[Entry]:
        return [entry for entry in self.journal.entries if isinstance(entry.event, kind)]

    @property
    def requests(self) -> list[Any]:
        return list(self.provider.requests)


def scripted(*replies: Any) -> Scripted:
    return Scripted(list(replies))

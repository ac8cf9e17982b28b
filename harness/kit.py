"""Everything one run works with: agent, provider, tools, words, and the ports to the outside.

Built by whoever starts a run (`conversations.runner`, tests, evals); the loop only reads it.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from harness.agentconfig import AgentConfig, ToolRule
from harness.content import Block
from harness.events import Event
from harness.external import CUSTOM, FRONT_END, tool_of
from harness.frontends import OfferedTool
from harness.grading import Shown
from harness.history import History, OpenCall
from harness.hooks import COMPACTION_BEFORE, ON_CALLS, Hooks
from harness.messages import RemoteServer, ToolSpec
from harness.modelcards import card_for
from harness.outcomechecks import CheckRunner
from harness.overflow import Keep
from harness.policy import Judgement, Policy, Situation, Verdict
from harness.ports import Live, Silent, Tracer
from harness.provider import Provider
from harness.rules import CONDITIONS, LevelledRule, conditions_of
from harness.serviceedits import OURS, Chosen, edits_for
from harness.texts import Texts
from harness.tools import Objection, Tool, ToolContext
from reading.hostnames import MeantBy

Evidence = Callable[[int], Awaitable[Shown]]
"""What the files of the work are, with their hashes and as much of their text as so many characters hold."""

BeforeWriting = Callable[[str, int], Awaitable[Sequence[Event]]]
"""Given the turn's id and the number of the log's last event."""

Admit = Callable[[tuple[Block, ...]], Awaitable[tuple[Block, ...]]]
"""The same blocks, with words in place of those that no model service could open."""


@dataclass(frozen=True, slots=True)
class Admitted:
    tools: frozenset[str]
    """By the server's names for them."""
    token: str = field(default="", repr=False)


Admitting = Callable[[Callable[..., Awaitable[Any]], Mapping[str, Any]], Awaitable[Admitted | None]]
"""Given `Kit.offload` and `Kit.extras`; None: the service may call none of them now."""


@dataclass(frozen=True, slots=True)
class RemoteOffer:
    """An MCP server whose tools are not called from here, but by the model's service where that can."""

    name: str
    url: str
    tools: tuple[tuple[Tool, ToolSpec], ...]
    """By what rules speak of, and as the server calls and describes it."""
    admit: Admitting
    """Asked right before a request leaves."""


MOST_NAMED = 20
"""Tools that are named where they are not there."""

INLINE = 10_000
"""Characters of a call's input, times the rules that may speak of it, that are judged on the loop."""


@dataclass(slots=True)
class Kit:
    config: AgentConfig
    provider: Provider
    model: str
    """The name the provider is asked for; `config.model` may be empty, this is not."""
    tools: Mapping[str, Tool]
    """Every tool there is, by name, but a turn's own (`tools_in`); which of them are on offer is the
    policy's word."""
    workspace: Path
    meant_by: MeantBy
    """What hosts come to, for rules about them."""
    system: str = ""
    """Instructions and what else belongs at the head of every prompt."""
    head: Mapping[str, int] = field(default_factory=dict)
    """How many characters of it each source brought; of what is not named the system itself did."""
    cut: Sequence[str] = ()
    """What of the sources found no room in it, in words."""
    texts: Texts = field(default_factory=Texts)
    live: Live = field(default_factory=Silent)
    tracer: Tracer | None = None
    """None: nothing is traced."""
    rules: Sequence[LevelledRule] = ()
    """Those of every level but the agent's own, as they stood when they were last read."""
    read_rules: Callable[[], Awaitable[Sequence[LevelledRule]]] | None = None
    """Reads them anew; asked before calls are executed, and before a turn that had some rests, so that what
    is kept thereby of each call is kept of the last one too. None: they do not change."""
    who_can_mend: Callable[[], Awaitable[str]] | None = None
    """Says, once the service refused the key, who can change it; empty: the person herself."""
    offload: Callable[..., Awaitable[Any]] = asyncio.to_thread
    service: Provider | None = None
    """The provider itself, where others were put in front of it."""
    reply_seconds: float = 3600.0
    """In which a reply must have ended, however much of it still trickles in."""
    server_keys: bool = False
    """The provider is asked with a key of the deployment."""
    keep: Keep | None = None
    """Where results go that are too long for a prompt; None: nowhere."""
    admit: Admit | None = None
    """What of a result's pictures and documents a model service would take; None: all of them."""
    before_writing: BeforeWriting | None = None
    """Awaited once in a turn, before the first calls that may change files are begun; what it answers is
    stored with their start. None: nothing is to be done then."""
    hooks: Hooks | None = None
    """Asked about what the policy lets happen. None: nobody is."""
    evidence: Evidence | None = None
    """What a grader is shown of the files; None: nothing."""
    checks: CheckRunner | None = None
    """Runs an outcome's checks; None: nothing here runs commands."""
    extras: Mapping[str, Any] = field(default_factory=dict)
    remote: Sequence[RemoteOffer] = ()
    """Servers that the model's service may be given, as far as `remote_in` says."""
    clock: Callable[[], float] = time.time
    random: Callable[[], float] = random.random
    """Between 0 and 1, for jitter."""
    _of_turn: tuple[tuple[OfferedTool, ...], Mapping[str, Tool]] = field(
        default=((), {}), init=False, repr=False
    )
    """What `tools_in` made last: a tool keeps what was prepared of its schema."""

    def __post_init__(self) -> None:
        # The agent's own tools stay hers even if an update brings a built-in one of that name.
        custom = {declared.name: tool_of(declared) for declared in self.config.custom_tools}
        if custom:
            self.tools = {**self.tools, **custom}

    def tools_in(self, history: History) -> Mapping[str, Tool]:
        """Every tool there is, with those that the turn's words brought; none of them takes the place of
        another one, whose rules would then speak of something else."""
        offered = history.turn.tools
        if offered != self._of_turn[0]:
            made = {each.name: tool_of(each) for each in offered if each.name not in self.tools}
            self._of_turn = offered, made
        return {**self.tools, **self._of_turn[1]} if offered else self.tools

    @property
    def policy(self) -> Policy:
        """Of the tools that there are in every turn."""
        return self._policy_over(self.tools)

    def policy_in(self, history: History) -> Policy:
        return self._policy_over(self.tools_in(history))

    def _policy_over(self, tools: Mapping[str, Tool]) -> Policy:
        names = [declared.name for declared in self.config.custom_tools]
        names += [name for name, tool in tools.items() if tool.owner == FRONT_END]
        declared = (ToolRule(tool=name) for name in names)
        return Policy((*self.config.tools, *declared), self.rules, tools, self.meant_by)

    def offered(self, history: History) -> tuple[ToolSpec, ...]:
        """What the model is told of, in a stable order (prompt caching depends on it)."""
        policy = self.policy_in(history)
        left_out = self.left_out(history)
        return tuple(
            tool.spec
            for name, tool in sorted(self.tools_in(history).items())
            if not tool.within_only
            and name not in left_out
            and policy.offers(tool, history.features)
        )

    def left_out(self, history: History) -> frozenset[str]:
        """Tools of a trained schema that do not do here, and those whose place others of them take."""
        found: set[str] = set()
        for tool in self.tools_in(history).values():
            if tool.trained:
                found.update(tool.stands_for if self._does(tool, history) else (tool.name,))
        return frozenset(found)

    def _does(self, tool: Tool, history: History) -> bool:
        """Whether service and model know its schema, and nobody is asked about what it would do."""
        model = card_for(history.turn.model or self.model)
        if tool.trained not in self._service_features & model.features:
            return False
        if (hooks := self.hooks) is not None and any(map(hooks.sees, tool.stands_for)):
            return False
        state = _situation(history)
        return self.policy_in(history).allows_unseen(tool, state)

    @property
    def _service_features(self) -> frozenset[str]:
        known: frozenset[str] = getattr(self.service or self.provider, "features", frozenset())
        return known

    def shortening_in(self, history: History) -> Chosen:
        """What the service is to leave out of the next prompt by itself."""
        if self.config.shortening.by != "service":
            return OURS
        model = card_for(history.turn.model or self.model)
        hooked = self.asks_at(COMPACTION_BEFORE) is not None
        return edits_for(self.config, self._service_features & model.features, hooked=hooked)

    @property
    def remote_refusal(self) -> str:
        """Why the service is given no server whatever the rules say; empty: it may be."""
        if not getattr(self.provider, "runs_mcp", False):
            return "the model's service here is none that calls them"
        if self.hooks is not None and self.hooks.points & ON_CALLS:
            return "there are hooks, which see no call that runs elsewhere"
        return ""

    def remote_in(self, history: History) -> tuple[RemoteServer, ...]:
        """What the service may call in the next request: tools whose calls may run whatever their arguments,
        for nobody here sees them before. Without tokens."""
        if not self.remote or self.remote_refusal:
            return ()
        beside = {tool.name: tool for offer in self.remote for tool, _spec in offer.tools}
        policy = self._policy_over({**self.tools_in(history), **beside})
        state = _situation(history)
        found = (
            RemoteServer(
                offer.name,
                offer.url,
                tuple(spec for tool, spec in offer.tools if policy.allows_unseen(tool, state)),
            )
            for offer in self.remote
        )
        return tuple(server for server in found if server.tools)

    def withheld_in(self, history: History, given: Sequence[RemoteServer]) -> str:
        """What is said to the model of tools that the service is not given; empty: nothing."""
        there = {server.name: {spec.name for spec in server.tools} for server in given}
        names = [
            tool.name
            for offer in self.remote
            for tool, spec in offer.tools
            if spec.name not in there.get(offer.name, ())
        ]
        if not names:
            return ""
        why = self.remote_refusal or (
            "a person would have to be asked before them, which nobody can be for what runs elsewhere"
        )
        return f"Not there now: {', '.join(sorted(names)[:MOST_NAMED])}, because {why}."

    async def admitted(
        self, servers: Sequence[RemoteServer], history: History
    ) -> tuple[RemoteServer, ...]:
        """These, as far as they may still be given to the service right now, with their tokens."""
        await self.refresh_rules()
        still = {server.name: [*server.tools] for server in self.remote_in(history)}
        offers = {offer.name: offer for offer in self.remote}
        found: list[RemoteServer] = []
        for server in servers:
            may = await offers[server.name].admit(self.offload, self.extras)
            if may is None:
                continue
            tools = tuple(
                spec
                for spec in server.tools
                if spec.name in may.tools and spec in still.get(server.name, ())
            )
            if tools:
                found.append(replace(server, tools=tools, token=may.token))
        return tuple(found)

    def asks_at(self, *points: str) -> Hooks | None:
        """Who is asked at any of these points; None: nobody."""
        hooks = self.hooks
        return hooks if hooks is not None and not hooks.points.isdisjoint(points) else None

    def judge(self, name: str, history: History, **decision: Any) -> Judgement:
        tool = self.tools_in(history).get(name)
        alike = sum(call.use.name == name and not call.handed_out for call in history.unanswered())
        state = _situation(history, max(alike, 1))
        judgement = self.policy_in(history).judge(tool, name, state, **decision)
        if judgement.verdict is Verdict.ASK and tool is not None and tool.external:
            wanted = conditions_of(judgement.terms) if judgement.terms else frozenset()
            if wanted and tool.owner in {CUSTOM, FRONT_END}:
                who = " and ".join(words for name, words in CONDITIONS.items() if name in wanted)
                words = f"{judgement.reason} It wants {who}, but a program alone answers {name}."
                return Judgement(Verdict.DENY, words, judgement.level, judgement.rule)
            # Somebody outside answers it and may refuse; to be asked before would ask twice.
            return Judgement(Verdict.ALLOW)
        return judgement

    async def judge_aside(self, name: str, history: History, **decision: Any) -> Judgement:
        """`judge` on an event loop, which goes on meanwhile and before the next one: what is not done at
        once is done in a thread."""
        given = decision.get("arguments") or {}
        rules = len(self.config.tools) + len(self.rules)
        if _length_at_most(given, INLINE // max(rules, 1)):
            judgement = self.judge(name, history, **decision)
            await asyncio.sleep(0)
            return judgement
        found: Judgement = await self.offload(partial(self.judge, name, history, **decision))
        return found

    async def refresh_rules(self) -> None:
        """A rule made or revoked since the run began counts for the calls that are still to run."""
        if self.read_rules is not None:
            self.rules = await self.read_rules()

    def _objection(self, name: str, history: History, given: Mapping[str, Any]) -> Objection | None:
        judgement = self.judge(name, history, arguments=given)
        if judgement.verdict is Verdict.ALLOW:
            return None
        return Objection(judgement.verdict is Verdict.ASK, judgement.reason)

    def context(self, call: OpenCall, history: History) -> ToolContext:
        return ToolContext(
            call_id=call.uid,
            workspace=self.workspace,
            todos=history.todos,
            todos_untrusted_by=history.todos_untrusted_by,
            memory=history.memory,
            entries=history.entries,
            plan_mode=history.features.plan_mode,
            wakes_in_row=history.wakes_in_row,
            wakes_requested=history.turn.wakes_requested,
            tainted_by=history.tainted_by,
            ever_tainted_by=history.ever_tainted_by,
            tainted_beside=history.tainted_beside,
            made_after=history.made_after,
            offload=self.offload,
            objection=partial(self._objection, call.use.name, history),
            extras=self.extras,
        )

    def offers(self, name: str, history: History) -> bool:
        """Whether the model is told of the tool of this name."""
        tool = self.tools_in(history).get(name)
        return tool is not None and self.policy_in(history).offers(tool, history.features)

    def system_prompt(self, history: History) -> str:
        parts = [self.system]
        if history.features.plan_mode:
            parts.append(self.texts.plan_mode)
        return "\n\n".join(part for part in parts if part)


class Signal:
    """How a run hears that a person interrupted it, from whatever thread noticed."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._event = asyncio.Event()

    def interrupt(self) -> None:
        """Safe from any thread; after the run's loop is gone it does nothing."""
        try:
            self._loop.call_soon_threadsafe(self._event.set)
        except RuntimeError:
            return

    def clear(self) -> None:
        self._event.clear()

    @property
    def is_set(self) -> bool:
        return self._event.is_set()

    async def wait(self) -> None:
        await self._event.wait()


async def first_of(work: asyncio.Task[Any], signal: Signal) -> bool:
    """Wait for `work` or an interruption; True if it was interrupted, with `work` still pending."""
    waiting = asyncio.ensure_future(signal.wait())
    try:
        await asyncio.wait({work, waiting}, return_when=asyncio.FIRST_COMPLETED)
    except asyncio.CancelledError:
        work.cancel()
        raise
    finally:
        waiting.cancel()
    return not work.done()


async def first_of_all(work: Sequence[asyncio.Task[Any]], signal: Signal) -> bool:
    """Like `first_of` for several tasks: returns when all are done or on an interruption."""
    if not work:
        return False
    everything = asyncio.ensure_future(asyncio.wait(set(work)))
    try:
        return await first_of(everything, signal)
    except asyncio.CancelledError:
        for task in work:
            task.cancel()
        raise
    finally:
        everything.cancel()


def _length_at_most(value: Any, most: int) -> bool:
    """Whether so many characters hold it, without a look at more of it than that."""
    held = [value]
    while held and most >= 0:
        each = held.pop()
        match each:
            case Mapping() | list() | tuple():
                most -= len(each)
                if most >= 0:
                    held += [*each, *each.values()] if isinstance(each, Mapping) else each
            case str():
                most -= len(each)
            case _:
                most -= 1
    return most >= 0


def _situation(history: History, together: int = 1) -> Situation:
    return Situation(
        history.features,
        history.turn.uid,
        history.tainted_by,
        together,
        history.ever_tainted_by,
    )

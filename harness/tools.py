"""What a tool is, and how one call of it is performed without ever breaking the run.

Tools are offered by apps in their `agent_tools.py`; which of them an agent may use is decided by
`harness.policy` and the toolbox. A tool knows nothing of conversations beyond its `ToolContext`.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from harness.content import Block, as_blocks, as_kept
from harness.errors import InvalidToolInput, ToolError, ToolTimedOut
from harness.events import Display, Event, Keepsake, ResultOutcome, SessionMemoryWritten, Todo
from harness.history import Entry, left_behind
from harness.messages import ToolSpec
from harness.schemachecks import INLINE, MOST, Checker, TooCostly
from harness.schemas import Unsound
from reading.wholetext import storable

PEOPLE = "people"
"""The carrier of calls that a person answers, in a form of the app that offers the tool."""


class Effect(StrEnum):
    """How far a call reaches. Plan mode allows only `READ`; the ledger repeats only `READ`."""

    READ = "read"
    """Changes nothing that outlives the call, or only the conversation's own log."""
    WORKSPACE = "workspace"
    """Changes files of the conversation's own workspace."""
    OUTSIDE = "outside"
    """Reaches the network, other people or other systems."""


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What a handler returns. `events` are appended with the result, in the same transaction."""

    content: str | tuple[Block, ...]
    is_error: bool = False
    display: Display | None = None
    """The same for people's eyes, when text is not the best form (a diff)."""
    events: tuple[Event, ...] = ()
    untrusted: bool = False
    """This answer holds what others wrote; for a tool whose answers always do, see `Tool`."""
    untrusted_by: str = ""
    """What of it others wrote, in words, for the question that is asked because of it."""
    stopped: bool = False
    """A person stopped it; what it had brought until then is here."""
    keeps: Keepsake | None = None
    """What of it stays in the prompt when older messages are summarised; None: nothing."""


@dataclass(frozen=True, slots=True)
class Objection:
    """Why a call would not simply run: a rule denies it, or a person is asked first."""

    asks: bool
    """A person is asked; otherwise it is denied."""
    reason: str


def _no_objection(_input: Mapping[str, Any]) -> Objection | None:
    return None


async def _never() -> None:
    await asyncio.Event().wait()


async def _no_calls(_name: str, _input: Mapping[str, Any]) -> NestedAnswer:
    raise ToolError("This tool makes no calls of its own.")


@dataclass(frozen=True, slots=True)
class NestedAnswer:
    """What answered a call that another call made."""

    content: tuple[Block, ...]
    is_error: bool
    outcome: ResultOutcome


class PutDown(Exception):
    """A call waits for one of its own that somebody has to answer. It is begun anew then (`harness.nested`),
    so this passes through its handler and is no fault."""


CallTool = Callable[[str, Mapping[str, Any]], Awaitable[NestedAnswer]]


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What one call may know and touch."""

    call_id: str
    """Also the call's effect id: the same if a person has it run again, so a tool that speaks to
    another system sends it as the idempotency key."""
    workspace: Path
    """The conversation's own directory; it exists. Tools stay inside it."""
    todos: tuple[Todo, ...] = ()
    todos_untrusted_by: str = ""
    """What of them the agent may have from strangers."""
    memory: Mapping[str, tuple[SessionMemoryWritten, ...]] = field(default_factory=dict)
    """What the agent keeps for this conversation: of each part all versions, the oldest first."""
    entries: Sequence[Entry] = ()
    """What counts of the conversation's log, as it grows."""
    plan_mode: bool = False
    wakes_in_row: int = 0
    """Turns begun by the agent's own wakes since a person last spoke."""
    wakes_requested: int = 0
    """Wakes this turn has asked for already."""
    tainted_by: str = ""
    """What brought untrusted content into the run since a person last spoke; empty: nothing did."""
    ever_tainted_by: str = ""
    """The same since the conversation began."""
    tainted_beside: str = ""
    """What brought it in on a branch that was left."""
    made_after: Mapping[str, str] = field(default_factory=dict)
    """By call of the agent's: what had brought untrusted content in when it made it; by input what it
    brought itself."""
    offload: Callable[..., Awaitable[Any]] = asyncio.to_thread
    """Runs a plain function in a thread where the database may be used."""
    stopped: Callable[[], Awaitable[None]] = _never
    """Returns when a person stops the turn. A long call then has a moment to end in good order and
    to tell what it did; after that it is cancelled."""
    objection: Callable[[Mapping[str, Any]], Objection | None] = _no_objection
    """What stands against a call of the same tool with other input, which nobody has allowed. For calls
    that are led on to something else (a redirect)."""
    call_tool: CallTool = _no_calls
    """Has the server carry out a call of another tool, by its name, as if the model had asked for it; for
    a `composed` tool. Raises `PutDown`, which the handler lets through when it has ended what it began."""
    extras: Mapping[str, Any] = field(default_factory=dict)
    """Handed through from the runner to tools of higher floors, by name."""

    @property
    def read_anywhere(self) -> str:
        """See `History.read_anywhere`."""
        return self.ever_tainted_by or left_behind(self.tainted_beside)

    def brought_by(self, calls: Iterable[str]) -> str:
        """What strangers may have written of what the agent made by these calls, in words: before some of
        them it had read such words, and a person who has spoken since has not seen these. Empty: nothing
        of it."""
        source = next(filter(None, map(self.made_after.get, calls)), "")
        return f"{source}, when this was asked for" if source else ""


HandedOut = Callable[[Mapping[str, Any]], tuple[str, dict[str, Any]]]
"""How a worker of the environment knows a call: its own name for the tool, and its own arguments."""

Handler = Callable[[ToolContext, dict[str, Any]], "ToolOutput | str | Awaitable[ToolOutput | str]"]


def _no_question(_input: Mapping[str, Any], _together: int) -> str:
    return ""


def _never_asks(_input: Mapping[str, Any]) -> bool:
    return False


def _no_intent(_input: Mapping[str, Any]) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class Tool:
    name: str
    description: str
    input_schema: Mapping[str, Any]
    handler: Handler
    """Plain functions run in a thread; coroutines on the loop. Raise `ToolError` to tell the model."""
    effect: Effect
    idempotent: bool = False
    destructive: bool = False
    intent: Callable[[Mapping[str, Any]], str] = _no_intent
    """One short line for a card: what this call is about (a path, a pattern). Must not raise on any
    input that passed the schema; callers guard it for input that did not."""
    feature: str = ""
    """Offered only when the conversation has this feature on (`teams`, `plan_mode`); empty: always."""
    timeout: float = 120.0
    """Seconds of wall clock, after which the call is answered with an error."""
    output_limit: int = 0
    """Characters of a result that go into the prompt; 0: the general limit (`harness.overflow`)."""
    live: bool = False
    """What it prints is shown while it runs."""
    owner: str = "agentsite"
    always_asks: bool = False
    """Every call waits for a person, whatever the rules say."""
    general: bool = False
    """It does whatever it is told (a shell): where a rule asks before or denies another tool that
    reaches no further, its calls ask as well."""
    in_order: bool = False
    """Calls of one step wait for each other, because each builds on what the one before left in the
    log. Those that change the workspace always do."""
    untrusted: bool = False
    """What it answers was written by strangers (a web page): the model is told that it is data, and
    from then on calls that reach outside ask, until a person speaks again."""
    apart: bool = False
    """What it answers comes of its arguments, of what counts of the log, and of things that keep marks of
    their own (files, memories). The answers of all other tools count as untrusted once strangers' words
    stand on a branch that was left: by them comes back what was made there."""
    direct: bool = False
    """People and programs may call it themselves, without a model: it only reads."""
    writes_files: bool = False
    """It may change files of the workspace also where its effect reaches further (a shell with a way
    out); see `may_write`."""
    granted: bool = False
    """It comes with something that the agent was given, such as skills: no rule has to list or allow it.
    Rules that ask before it or deny it hold."""
    mcp_server: str = ""
    """The MCP server that has it. Rules address it as `mcp:<server>:<tool>` too, and only one that names
    such tools allows it; others may deny or ask."""
    host: str = ""
    """The machine that such a call goes to, for people who read of it."""
    handed_out: HandedOut | None = None
    """Its calls are judged here like all others, and carried out by somebody else (`carrier`): the
    handler is never called, the run rests until they are answered."""
    carrier: str = ""
    """The app that carries out what is `handed_out`; empty: the environment's workers do; `PEOPLE`: a person
    answers it."""
    asks_about: Callable[[Mapping[str, Any], int], str] = _no_question
    """Why a call of it waits for a person, in words; empty: because of itself it does not. With how many
    calls of it would begin together."""
    asks_once_tainted: Callable[[Mapping[str, Any]], bool] = _never_asks
    """Whether a call of it waits for a person wherever untrusted content ever came in, though it does not
    reach outside: it takes away what others are told, and whatever asks about it, an answer is for this call
    alone. Of no arguments: whether each call does."""
    asks_people: bool = False
    """Midway it may have a person asked, by `call_tool` of one that is `within_only`. It rests until she has
    answered and is begun anew then, so what it did before it must be able to tell, and not do again."""
    within_only: bool = False
    """No model is told of it and none can call it: only other calls make it."""
    composed: bool = False
    """It calls other tools (`call_tool`), and does nothing else: its calls may be begun anew at any time, for
    what they called is in the log. So its effect is READ; each call that it makes has its own."""
    trained: str = ""
    """The name of the schema that models of a service were trained on: it is told of only where service and
    model know that, and none of its calls is to be asked about, but for `asks_once_tainted`."""
    stands_for: tuple[str, ...] = ()
    """Tools whose work it does as well. While it is told of, they are not; rules that ask before one of them
    or deny it hold for it."""
    external: bool = False
    """Its answer comes from outside this server, from a person's form or an API caller: the handler
    is never called, the run rests until the answer is in the log (`harness.external`)."""
    spec: ToolSpec = field(init=False, repr=False, compare=False)
    """What a model is told of it; one for all requests."""
    checker: Checker = field(init=False, repr=False, compare=False)

    @property
    def may_write(self) -> bool:
        """Whether its calls may change files of the workspace."""
        return self.writes_files or self.effect is Effect.WORKSPACE

    def __post_init__(self) -> None:
        spec = ToolSpec(self.name, self.description, self.input_schema, self.trained)
        object.__setattr__(self, "spec", spec)
        object.__setattr__(self, "checker", Checker(self.input_schema))


@dataclass(frozen=True, slots=True)
class Outcome:
    """A performed call, ready to be stored."""

    content: tuple[Block, ...]
    is_error: bool
    display: Display | None = None
    events: tuple[Event, ...] = ()
    untrusted: bool = False
    untrusted_by: str = ""
    stopped: bool = False
    keeps: Keepsake | None = None


def check_input(tool: Tool, arguments: Mapping[str, Any]) -> None:
    """Raise `InvalidToolInput` naming each place where `arguments` break the tool's schema, or why
    that cannot be told. Takes up to a second; on an event loop, use `check_input_aside`."""
    try:
        _require_fit(tool, arguments, MOST)
    except TooCostly:
        raise InvalidToolInput(
            f"The input of {tool.name} is too large or too entangled to be checked against its "
            "schema. Send less at once, or have the schema simplified."
        ) from None


async def check_input_aside(
    tool: Tool, arguments: Mapping[str, Any], offload: Callable[..., Awaitable[Any]]
) -> None:
    """`check_input` on an event loop: what is not done at once is done in a thread."""
    try:
        if tool.checker.ready:
            _require_fit(tool, arguments, INLINE)
            return
    except TooCostly:
        pass
    await offload(check_input, tool, arguments)


def _require_fit(tool: Tool, arguments: Mapping[str, Any], steps: int) -> None:
    try:
        faults = tool.checker.faults(arguments, steps=steps)
    except Unsound as problem:
        raise InvalidToolInput(
            f"The input of {tool.name} cannot be checked, because the schema of the tool is unsound: "
            f"{problem}. Whoever looks after the agent can correct it."
        ) from None
    if faults:
        lines = "\n".join(f"- {fault}" for fault in faults)
        raise InvalidToolInput(f"The input of {tool.name} does not match its schema:\n{lines}")


async def perform(tool: Tool, context: ToolContext, arguments: dict[str, Any]) -> Outcome:
    """Check, run and contain one call. Raises nothing but cancellation, and `PutDown` of a composed tool.

    Whatever a handler raises becomes an error the model can read. A plain handler that
    outlives its timeout keeps its thread until it returns; its result is thrown away.
    """
    clock = asyncio.timeout(tool.timeout)
    try:
        await check_input_aside(tool, arguments, context.offload)
        async with clock:
            if inspect.iscoroutinefunction(tool.handler):
                given = await tool.handler(context, arguments)
            else:
                given = await context.offload(tool.handler, context, arguments)
        return _judged(_outcome(given), tool, context)
    except PutDown:
        raise
    except ToolError as problem:
        error = problem
    except Exception as problem:  # a tool's fault must not end the run
        if clock.expired():
            error = ToolTimedOut(f"{tool.name} did not finish within {tool.timeout:g} seconds.")
        else:
            error = ToolError(f"{tool.name} failed: {type(problem).__name__}: {problem}")
    text = error.message if not error.hint else f"{error.message}\n{error.hint}"
    source = storable(error.untrusted_by)
    failed = Outcome(
        as_blocks(storable(text)), is_error=True, untrusted=bool(source), untrusted_by=source
    )
    return _judged(failed, tool, context)


def _judged(outcome: Outcome, tool: Tool, context: ToolContext) -> Outcome:
    if outcome.untrusted or tool.apart or not context.tainted_beside:
        return outcome
    return replace(outcome, untrusted=True, untrusted_by=left_behind(context.tainted_beside))


def _outcome(given: object) -> Outcome:
    """What a handler returned, ready to be stored: a model reads what the log says. Raises `TypeError` for
    what no handler may return."""
    output = ToolOutput(given) if isinstance(given, str) else given
    if not isinstance(output, ToolOutput):
        raise TypeError(f"a tool returns text or a ToolOutput, not {type(given).__name__}")
    return Outcome(
        tuple(map(as_kept, as_blocks(output.content))),
        output.is_error,
        as_kept(output.display) if output.display is not None else None,
        tuple(map(as_kept, output.events)),
        output.untrusted,
        storable(output.untrusted_by),
        output.stopped,
        as_kept(output.keeps) if output.keeps is not None else None,
    )

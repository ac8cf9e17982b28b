"""The tools `bash` and `command_history`: commands in the conversation's sandbox, in a shell that lasts
from call to call.

The effect is WORKSPACE: what a command can change is its own workspace, and what it can reach is held
by the sandbox. An environment that opens the network makes it OUTSIDE: `under` gives the tools
that fit. What the sandbox is comes from the runner, as a `ShellAccess` among the context's extras.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from harness.errors import AgentError, Declined, ToolError
from harness.events import CommandDisplay
from harness.tools import Effect, Tool, ToolContext, ToolOutput
from sandbox.choice import choose
from sandbox.contract import (
    KilledBy,
    Mounts,
    OnOutput,
    Result,
    SandboxBackend,
    Shell,
    ShellBusy,
    Stream,
)
from sandbox.policy import Policy
from sandbox.shells import ShellRegistry
from tools_app.builtin.commandmarks import CommandMarks
from tools_app.provenance import provenance_of

DEFAULT_SECONDS, MOST_SECONDS = 120, 600
OUTPUT_LIMIT = 30_000
"""Characters of an answer; longer ones are kept in a file and previewed (`harness.overflow`)."""
SHOWN = 10_000
"""Characters of each stream that people see on the card; the middle of longer ones is left out."""
REFUSALS_SHOWN = 5
"""Refused connections that the model is told of."""
LISTED, MOST_LISTED = 20, 100
"""Commands that the history lists."""
EXTRA = "shell"
"""The name of the `ShellAccess` among a context's extras."""


@dataclass(frozen=True, slots=True)
class PastCommand:
    """A command of this conversation, by the id of its call."""

    id: str
    command: str
    state: str
    """`running`, `ok`, `error`, `denied`, `stopped` or `unknown`."""
    exit_code: int | None = None
    seconds: float | None = None
    answer: str = ""
    """What it answered; empty in lists."""
    untrusted_by: str = ""
    """What of it others wrote, in words."""
    allowed: int = 0
    refused: int = 0
    """Connections that its way out let through, and that it did not."""


class CommandLog(Protocol):
    """The commands that a conversation ran, from its log. Plain functions, for threads with tables."""

    def latest(self, number: int) -> Sequence[PastCommand]:
        """Newest first."""

    def find(self, command_id: str) -> PastCommand | None: ...


@dataclass(frozen=True, slots=True)
class ShellAccess:
    """What a conversation's commands run in."""

    key: str
    """The conversation."""
    registry: ShellRegistry
    backends: Sequence[SandboxBackend]
    policy: Policy
    mounts: Mounts
    unconfined: SandboxBackend | None = None
    """The backend “none”, where the operator's setting and the environment ask for it."""
    on_output: Callable[[str, Stream, bytes], None] | None = None
    """Told of the output of a call, by its id, while it arrives."""
    on_end: Callable[[str], None] | None = None
    """Told when the command of a call is over."""
    problem: AgentError | None = None
    """Why no command can run at all."""
    log: CommandLog | None = None
    look: Callable[[], Awaitable[ShellAccess]] | None = None
    """The same by what is in force by now, and never wider: what the tools are taken to reach was said of
    this one."""

    async def by_now(self) -> ShellAccess:
        """What a command is to run in that begins now: rules change while a run is under way."""
        return self if self.look is None else await self.look()

    def require_no_problem(self) -> None:
        """Raises `ToolError`."""
        if self.problem is not None:
            raise ToolError(self.problem.message, hint=self.problem.hint)

    async def backend(self) -> SandboxBackend:
        """The first that can hold the policy. Raises `ToolError` with the reasons where none can."""
        self.require_no_problem()
        return await choose(self.backends, self.policy, unconfined=self.unconfined)


def access_of(context: ToolContext) -> ShellAccess:
    access = context.extras.get(EXTRA)
    if not isinstance(access, ShellAccess):
        raise ToolError(
            "The command was not run: this conversation has no environment with a sandbox.",
            hint="Staff can give the agent one. Go on without commands, or tell the person.",
        )
    return access


async def bash(context: ToolContext, arguments: dict[str, Any]) -> ToolOutput:
    access = await access_of(context).by_now()
    seconds = float(arguments.get("timeout", DEFAULT_SECONDS))
    try:
        if arguments.get("restart", False) or access.problem is not None:
            await access.registry.close(access.key)
        access.require_no_problem()
        shell, new = await access.registry.get(access.key, _rules(access), lambda: _open(access))
        note = await _about_new_shell(context, access, arguments) if new else ""
        try:
            result, source = await _run_marked(
                context, access, shell, arguments["command"], seconds
            )
        finally:
            access.registry.touch(access.key)
            if access.on_end is not None:
                access.on_end(context.call_id)
    except Declined as problem:
        raise ToolError(problem.message, hint=problem.hint) from problem
    text = rendered(result, seconds)
    return ToolOutput(
        f"{note}\n{text}" if note else text,
        is_error=result.killed_by is not None,
        display=displayed(result),
        untrusted=bool(source),
        untrusted_by=source,
        stopped=result.killed_by is KilledBy.INTERRUPT,
    )


async def _run_marked(
    context: ToolContext, access: ShellAccess, shell: Shell, command: str, seconds: float
) -> tuple[Result, str]:
    """The result, and what may have brought into it what others wrote. Whatever a command leaves
    behind after its process has died counts as if it had brought something."""
    marks = CommandMarks(
        provenance_of(context),
        context.call_id,
        access.policy,
        may_be_unconfined=access.unconfined is not None,
        tainted_by=context.tainted_by,
    )
    await context.offload(marks.begin)
    try:
        result = await _run(context, access, shell, command, seconds)
    except ShellBusy:
        await context.offload(marks.nothing_ran)
        raise
    return result, await context.offload(marks.end, result)


async def _run(
    context: ToolContext, access: ShellAccess, shell: Shell, command: str, seconds: float
) -> Result:
    """A person's stop kills the command and everything it started; what it printed is kept."""
    on_output: OnOutput | None = None
    listener = access.on_output
    if listener is not None:

        def on_output(stream: Stream, data: bytes) -> None:
            listener(context.call_id, stream, data)

    running = asyncio.ensure_future(shell.run(command, timeout=seconds, on_output=on_output))
    stopped = asyncio.ensure_future(context.stopped())
    try:
        await asyncio.wait({running, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if not running.done():
            shell.interrupt()
        return await running
    except asyncio.CancelledError:
        running.cancel()
        await asyncio.wait({running})
        raise
    finally:
        stopped.cancel()


def _rules(access: ShellAccess) -> Hashable:
    """What an open shell must have been opened under, the sandboxes that it may be in among it."""
    sandboxes = tuple(backend.name for backend in access.backends)
    return access.policy.model_dump_json(), access.mounts, sandboxes, access.unconfined is not None


async def _open(access: ShellAccess) -> Shell:
    backend = await access.backend()
    return await backend.open_shell(access.policy, access.mounts)


async def _about_new_shell(
    context: ToolContext, access: ShellAccess, arguments: Mapping[str, Any]
) -> str:
    """Directory and variables of an earlier shell are gone, which must not come as a surprise."""
    if access.log is None or arguments.get("restart", False):
        return ""
    earlier = await context.offload(access.log.latest, 2)
    if not any(past.id != context.call_id for past in earlier):
        return ""
    return (
        "[This is a new shell: the earlier one was closed, with its directory, its variables and "
        "what it had left in the background.]"
    )


def rendered(result: Result, seconds: float) -> str:
    """A command's outcome in words for the model: output, errors, then how it ended."""
    parts = []
    if not result.confined:
        parts.append("[unconfined: no sandbox held this command back]")
    for name, captured in (("", result.stdout), ("stderr", result.stderr)):
        text = captured.text.rstrip("\n")
        if text:
            parts.append(f"[{name}]\n{text}" if name else text)
    parts.extend(f"[network: {refused}]" for refused in refusals_in(result))
    parts.append(f"[{_ending(result, seconds)}]")
    return "\n".join(parts)


def refusals_in(result: Result) -> Iterator[str]:
    """Why its way out was closed, for the model; each reason once."""
    decisions = result.network.decisions if result.network is not None else ()
    refused = [one for one in decisions if not one.allowed]
    for one in refused[:REFUSALS_SHOWN]:
        yield f"{one.method} {one.host}:{one.port} was refused: {one.reason}"
    if len(refused) > REFUSALS_SHOWN:
        yield f"{len(refused) - REFUSALS_SHOWN} more were refused"


def displayed(result: Result) -> CommandDisplay:
    """The same for people's eyes."""
    return CommandDisplay(
        stdout=shortened(result.stdout.text.rstrip("\n")),
        stderr=shortened(result.stderr.text.rstrip("\n")),
        exit_code=result.exit_code,
        ended_by=result.killed_by or "",
        seconds=round(result.duration, 3),
        directory=result.workdir,
        sandbox=result.backend,
        confined=result.confined,
        network=result.network,
    )


def shortened(text: str, limit: int = SHOWN) -> str:
    if len(text) <= limit:
        return text
    half = limit // 2
    left = len(text) - 2 * half
    return f"{text[:half]}\n[… {left:,} characters left out …]\n{text[-half:]}"


_KILLED = {
    KilledBy.INTERRUPT: "it was stopped by a person, with everything it started",
    KilledBy.MEMORY: "a process was killed because the sandbox's memory was used up",
    KilledBy.CPU: "a process was killed because its processor time was used up",
    KilledBy.FILE_SIZE: "a process was killed because a file reached the size limit, or the "
    "workspace is full",
    KilledBy.DISK: "it was killed because the workspace grew over its limit; remove files",
    KilledBy.OUTPUT: "it was killed because it printed without end",
    KilledBy.CLOSED: "its shell ended while it ran, perhaps for want of memory; the next command "
    "starts a new one",
}


def _ending(result: Result, seconds: float) -> str:
    took = f"{result.duration:.1f} s"
    code = "no exit code" if result.exit_code is None else f"exit code {result.exit_code}"
    where = f", now in {result.workdir}" if result.workdir else ""
    if result.killed_by is KilledBy.TIMEOUT:
        why = (
            f"it was killed with everything it started after {seconds:g} s; give a longer timeout "
            f"(at most {MOST_SECONDS}), run it in the background, or do less at once"
        )
        return f"{code}, {took}: {why}{where}"
    if result.killed_by is KilledBy.SIGNAL:
        return f"{code}, {took}: it was killed by signal {result.signal}{where}"
    if result.killed_by is not None:
        return f"{code}, {took}: {_KILLED[result.killed_by]}{where}"
    return f"{code}, {took}{where}"


# --- earlier commands -----------------------------------------------------------------------------


def command_history(context: ToolContext, arguments: dict[str, Any]) -> ToolOutput:
    """What was run here, or one earlier command with all it answered."""
    access = access_of(context)
    if access.log is None:
        raise ToolError("There is no history of commands here.")
    wanted = arguments.get("id")
    if wanted is None:
        past = access.log.latest(int(arguments.get("number", LISTED)))
        lines = [
            f"{each.id}  {_outcome(each)}  {' '.join(each.command.split())[:200]}" for each in past
        ]
        text = "\n".join([_busy(access), *(lines or ["No command was run yet."])])
        source = context.brought_by(each.id for each in past)
        return ToolOutput(text, untrusted=bool(source), untrusted_by=source)
    found = access.log.find(str(wanted))
    if found is None:
        raise ToolError(
            f"There is no command “{str(wanted)[:60]}” in this conversation.",
            hint="Call command_history without an id for the ids there are.",
        )
    source = found.untrusted_by or context.brought_by([found.id])
    return ToolOutput(
        f"$ {found.command}\n[{_outcome(found)}]\n{found.answer}",
        untrusted=bool(source),
        untrusted_by=source,
    )


def _busy(access: ShellAccess) -> str:
    shell = access.registry.find(access.key)
    if shell is None:
        return "No shell is open; the next command opens one."
    return f"The shell runs: {shell.busy[:200]}" if shell.busy else "The shell is ready."


def _outcome(past: PastCommand) -> str:
    parts = [past.state]
    if past.exit_code is not None:
        parts.append(f"exit code {past.exit_code}")
    if past.seconds is not None:
        parts.append(f"{past.seconds:.1f} s")
    if past.allowed or past.refused:
        parts.append(f"network: {past.allowed} allowed, {past.refused} refused")
    return ", ".join(parts)


def command_of(arguments: Mapping[str, Any]) -> str:
    """The command on a call's card, in one line."""
    return " ".join(str(arguments.get("command", "")).split())[:200]


COMMAND = {
    "type": "string",
    "minLength": 1,
    "maxLength": 60_000,
    "description": "What to run; several lines are allowed.",
}

BASH = Tool(
    name="bash",
    description=(
        "Run a command with bash in the conversation's sandbox. It begins in the workspace; the "
        "working directory and exported variables stay from call to call, other shell variables, "
        "functions and options do not. Answers with what was printed, the exit code and the time. "
        "There is no terminal and no input: use options such as -y. Programs left in the background "
        "with & live until a command is killed or the shell is closed; use background_run for what "
        "takes longer than one call."
    ),
    input_schema={
        "type": "object",
        "properties": {
            "command": COMMAND,
            "timeout": {
                "type": "number",
                "minimum": 1,
                "maximum": MOST_SECONDS,
                "description": f"Seconds after which it is killed. Default: {DEFAULT_SECONDS}.",
            },
            "restart": {
                "type": "boolean",
                "description": "Begin with a new shell, ending all that the old one left running.",
            },
        },
        "required": ["command"],
        "additionalProperties": False,
    },
    handler=bash,
    effect=Effect.WORKSPACE,
    apart=True,
    writes_files=True,
    destructive=True,
    general=True,
    intent=command_of,
    timeout=MOST_SECONDS + 30,
    in_order=True,
    output_limit=OUTPUT_LIMIT,
    live=True,
)

HISTORY = Tool(
    name="command_history",
    description=(
        "List the commands that bash has run in this conversation, newest first, with their ids, and "
        "whether the shell is busy; or, with an id, show one of them again with all it answered."
    ),
    input_schema={
        "type": "object",
        "properties": {
            "id": {"type": "string", "minLength": 1, "maxLength": 60},
            "number": {
                "type": "integer",
                "minimum": 1,
                "maximum": MOST_LISTED,
                "description": f"How many to list. Default: {LISTED}.",
            },
        },
        "additionalProperties": False,
    },
    handler=command_history,
    effect=Effect.READ,
    intent=lambda arguments: str(arguments.get("id", "")),
    output_limit=2 * OUTPUT_LIMIT,
)


def under(policy: Policy, tool: Tool, *, confined: bool = True) -> Tool:
    """A tool that runs commands, as it is under this policy: with a way out, what it does reaches
    other systems. Its description says what can be reached. `confined`: a sandbox holds the policy."""
    if not confined:
        reach = "No sandbox holds it: it can reach whatever this server can."
        return replace(tool, effect=Effect.OUTSIDE, description=f"{tool.description} {reach}")
    hosts = sorted({endpoint.host for endpoint in policy.endpoints})
    if not hosts:
        return replace(tool, description=f"{tool.description} There is no network.")
    reach = f"Of the network only these hosts can be reached: {', '.join(hosts[:20])}."
    if policy.unrestricted:
        reach = "Public hosts can be reached through the HTTP proxy that the environment names."
    return replace(tool, effect=Effect.OUTSIDE, description=f"{tool.description} {reach}")


TOOLS = (BASH, HISTORY)

"""The tools for background commands: start one, look at them, cancel one.

A background command has a sandbox of its own with the conversation's rules and workspace. What runs
and how it ended is kept by the runner's side, which is reached through a `BackgroundAccess` among the
context's extras.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from harness.errors import Declined, ToolError
from harness.events import BackgroundStarted
from harness.tools import Effect, Tool, ToolContext, ToolOutput
from tools_app.builtin.shell import COMMAND, command_of

DEFAULT_SECONDS, MOST_SECONDS = 600, 86_400
EXTRA = "background"
"""The name of the `BackgroundAccess` among a context's extras."""
SHOWN = 200
"""Characters of a command in a list and in an event."""


@dataclass(frozen=True, slots=True)
class BackgroundInfo:
    """One background command as it stands."""

    id: str
    call_id: str
    """The call that started it."""
    command: str
    state: str
    """`running`, `completed`, `failed`, `timed_out`, `cancelled` or `lost`."""
    exit_code: int | None
    seconds: float
    """How long it runs, or ran."""
    output_path: str
    """Relative to the workspace."""
    tail: str = ""
    """The end of what it has printed; empty in lists."""
    detail: str = ""
    untrusted_by: str = ""
    """What may have brought into its output what others wrote."""


class BackgroundAccess(Protocol):
    """The background commands of one conversation."""

    async def start(
        self, call_id: str, command: str, seconds: int, tainted_by: str
    ) -> BackgroundInfo:
        """The same call starts one command only. `tainted_by`: of its context. Raises `ToolError` and
        `Declined`."""

    async def overview(self) -> Sequence[BackgroundInfo]:
        """Newest first, the running ones before all others."""

    async def find(self, background_id: str) -> BackgroundInfo | None: ...

    async def cancel(self, background_id: str) -> BackgroundInfo | None:
        """Ask for its end; it is told like every end."""


async def background_run(context: ToolContext, arguments: dict[str, Any]) -> ToolOutput:
    access = _access(context)
    seconds = int(arguments.get("timeout", DEFAULT_SECONDS))
    try:
        started = await access.start(
            context.call_id, arguments["command"], seconds, context.tainted_by
        )
    except Declined as problem:
        raise ToolError(problem.message, hint=problem.hint) from problem
    return ToolOutput(
        f"Started as {started.id}. What it prints goes to {started.output_path}; you are told when it "
        "ends, so do not wait for it: go on, or end your turn.",
        events=(BackgroundStarted(background_id=started.id, command=_line(started.command)),),
    )


async def check_background(context: ToolContext, arguments: dict[str, Any]) -> ToolOutput | str:
    access = _access(context)
    wanted = arguments.get("id")
    if wanted is None:
        listed = await access.overview()
        lines = [f"{each.id}  {_stand(each)}  {_line(each.command)}" for each in listed]
        source = context.brought_by(each.call_id for each in listed)
        text = "\n".join(lines) or "No background command was started here."
        return ToolOutput(text, untrusted=bool(source), untrusted_by=source)
    found = await access.find(str(wanted))
    if found is None:
        raise _unknown(str(wanted))
    parts = [
        f"$ {found.command}",
        f"[{_stand(found)}; output in {found.output_path}]",
        found.detail,
        found.tail or "(nothing printed yet)",
    ]
    source = found.untrusted_by or context.brought_by([found.call_id])
    return ToolOutput(
        "\n".join(part for part in parts if part), untrusted=bool(source), untrusted_by=source
    )


async def cancel_background(context: ToolContext, arguments: dict[str, Any]) -> str:
    found = await _access(context).cancel(arguments["id"])
    if found is None:
        raise _unknown(arguments["id"])
    if found.state != "running":
        return f"{found.id} has ended already: {_stand(found)}."
    return f"{found.id} is being ended, with everything it started."


def _access(context: ToolContext) -> BackgroundAccess:
    access: BackgroundAccess | None = context.extras.get(EXTRA)
    if access is None:
        raise ToolError(
            "This conversation has nowhere to run background commands.",
            hint="Staff can give the agent an environment with a sandbox.",
        )
    return access


def _unknown(background_id: str) -> ToolError:
    return ToolError(
        f"There is no background command “{background_id[:60]}” in this conversation.",
        hint="Call check_background without an id for those there are.",
    )


def _stand(info: BackgroundInfo) -> str:
    words = {
        "running": f"running for {info.seconds:.0f} s",
        "completed": f"completed after {info.seconds:.1f} s",
        "failed": f"failed after {info.seconds:.1f} s",
        "timed_out": f"ended after {info.seconds:.0f} s because it took too long",
        "cancelled": "cancelled",
        "lost": "lost with its process: nobody knows how far it came",
    }[info.state]
    return words if info.exit_code is None else f"{words}, exit code {info.exit_code}"


def _line(command: str) -> str:
    return " ".join(command.split())[:SHOWN]


def _id_of(arguments: Mapping[str, Any]) -> str:
    return str(arguments.get("id", ""))


ID = {"type": "string", "minLength": 1, "maxLength": 60}

TOOLS = (
    Tool(
        name="background_run",
        description=(
            "Start a command that runs beside this conversation, for what takes longer than one call: "
            "a server, a long build or test. It has a sandbox of its own that begins in the "
            "workspace; directory and variables of bash are not there. Answers at once with an id. "
            "You are told when it ends. It survives the end of your turn and a stop by the person, "
            "not a restart of the server."
        ),
        input_schema={
            "type": "object",
            "properties": {
                "command": COMMAND,
                "timeout": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": MOST_SECONDS,
                    "description": f"Seconds after which it is ended. Default: {DEFAULT_SECONDS}. The "
                    "environment may allow less.",
                },
            },
            "required": ["command"],
            "additionalProperties": False,
        },
        handler=background_run,
        effect=Effect.WORKSPACE,
        apart=True,
        writes_files=True,
        destructive=True,
        general=True,
        intent=command_of,
        in_order=True,
    ),
    Tool(
        name="check_background",
        description=(
            "List this conversation's background commands with how they stand or ended; with an id, "
            "show one of them with the end of its output."
        ),
        input_schema={
            "type": "object",
            "properties": {"id": ID},
            "additionalProperties": False,
        },
        handler=check_background,
        effect=Effect.READ,
        intent=_id_of,
    ),
    Tool(
        name="cancel_background",
        description="End a background command, with everything it started.",
        input_schema={
            "type": "object",
            "properties": {"id": ID},
            "required": ["id"],
            "additionalProperties": False,
        },
        handler=cancel_background,
        effect=Effect.WORKSPACE,
        apart=True,
        destructive=True,
        idempotent=True,
        intent=_id_of,
        in_order=True,
    ),
)

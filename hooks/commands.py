"""Asks a hook that is a command: in a sandbox of its own, of the conversation's environment and under its
policy, with the question on its standard input and the answer on its standard output.
"""

from __future__ import annotations

from harness.errors import AgentError
from harness.ids import new_id
from tools_app.builtin.alone import run_alone
from tools_app.builtin.shell import ShellAccess
from tools_app.provenance import Provenance

from .failing import Failed

COMMAND_BODY = 50_000
"""Bytes of what a command is told; the sandbox takes little more at once."""
SHOWN = 200
"""Characters of what a command that failed printed last."""


async def run(
    command: str,
    body: str,
    seconds: float,
    *,
    shell: object,
    provenance: Provenance | None,
    tainted_by: str = "",
) -> str:
    """What it printed. Raises `Failed`. What it leaves in the workspace is marked as of any command."""
    if not isinstance(shell, ShellAccess):
        raise Failed("this conversation has no environment that runs commands")
    if len(body.encode("utf-8", "replace")) > COMMAND_BODY:
        raise Failed("what it is asked about is too long to be told")
    # One line of JSON, which no line of the document can be mistaken for.
    end = new_id("END")
    text = f"{{ {command}\n}} <<'{end}'\n{body}\n{end}"
    try:
        result, _foreign = await run_alone(
            text,
            seconds,
            shell=shell,
            key=new_id("hook"),
            provenance=provenance,
            tainted_by=tainted_by,
        )
    except AgentError as problem:
        raise Failed(problem.message) from None
    if result.killed_by is not None:
        raise Failed(f"it was ended: {result.killed_by}")
    if result.exit_code != 0:
        said = " ".join(result.stderr.text.split())[-SHOWN:]
        raise Failed(f"exit code {result.exit_code}{f': {said}' if said else ''}")
    return result.stdout.text

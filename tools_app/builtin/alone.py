"""Runs a command in a sandbox of its own, apart from the agent's shell, for hooks and for checks of outcomes.
What it leaves in the workspace is marked as of any command.
"""

from __future__ import annotations

from jobs.engine import engine
from sandbox.contract import NOTHING, Result, Unavailable
from tools_app.provenance import Provenance

from .commandmarks import CommandMarks
from .shell import ShellAccess


async def run_alone(
    command: str,
    seconds: float,
    *,
    shell: ShellAccess,
    key: str,
    provenance: Provenance | None,
    tainted_by: str = "",
) -> tuple[Result, str]:
    """How it ended, and what strangers' words it may bring. On the engine's loop. `key` names the command
    among the marks; `tainted_by`: see `CommandMarks`.

    Raises AgentError where no sandbox runs it.
    """
    shell = await shell.by_now()
    backend = await shell.backend()
    marks = CommandMarks(
        provenance,
        key,
        shell.policy,
        may_be_unconfined=shell.unconfined is not None,
        tainted_by=tainted_by,
        alone=True,
    )
    await engine.in_tool_thread(marks.begin)
    try:
        result = await backend.run(command, shell.policy, shell.mounts, timeout=seconds)
    except Unavailable:
        await engine.in_tool_thread(marks.nothing_ran)
        raise
    except BaseException:
        # It was late, or its run was stopped: until then it may have done anything.
        confined = shell.unconfined is None
        lost = Result(backend.name, confined, None, seconds, NOTHING, NOTHING)
        await engine.in_tool_thread(marks.end, lost)
        raise
    return result, await engine.in_tool_thread(marks.end, result)

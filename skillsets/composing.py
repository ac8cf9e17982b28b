"""Tools that skills bring along (composed skills): a function of the skill, in a sandbox of its own that
shows it the skill's files and nothing else. Whatever it does beyond reckoning it does by calling tools,
and these calls are the server's: judged, asked about and written down like the model's (`harness.nested`).

Which tools a version has stands in its manifest (`skills_app.manifest`).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from conversations.sandboxing import OWN_VIEW
from harness.content import Text
from harness.errors import AgentError, ToolError
from harness.schemachecks import Checker, TooCostly
from harness.schemas import Unsound
from harness.tools import Effect, PutDown, Tool, ToolContext
from sandbox.contract import KilledBy, Mount, Mounts, Result, SandboxBackend
from sandbox.narrowing import narrow_where_said
from sandbox.policy import FilesystemPolicy, Policy, ProcessPolicy, Resources
from skills_app.files import lay_out
from skills_app.installing import SITE, packages_folder
from skills_app.manifest import Exposed, Exposes
from skills_app.packages import packages_of, sound_place
from tools_app.builtin.shell import access_of

from .channel import RUNNER, Channel
from .models import UsedSkill
from .reading import EXTRA, FOLDER, why_not

PLACE = Path("/run/skill-call")
"""Where a sandbox with a view of its own shows the line to the server."""
TIMEOUT = 1_800.0
"""Seconds of one attempt, with all that it calls."""
OUTPUT_LIMIT = 50_000
STDERR_SHOWN = 2_000
"""Characters of what it printed that the model is told where it failed."""


@dataclass(frozen=True, slots=True)
class _Composed:
    """One tool of one version."""

    skill: str
    version: int
    tool: Exposed
    of: Exposes


def tools_of(used: Sequence[UsedSkill]) -> dict[str, Tool]:
    """By their names. Of two skills with one name the first counts, as it does for `read_skill`. Those of a
    skill that was stopped stay, so that calls which wait are told why, and say nothing but that."""
    found: dict[str, Tool] = {}
    for each in used:
        if not each.version.exposes:
            continue
        refusal = why_not(each)
        for tool in _tools(each.skill.name, each.version_id, json.dumps(each.version.exposes)):
            shown = replace(tool, description=refusal) if refusal else tool
            found.setdefault(tool.name, shown)
    return found


@lru_cache(maxsize=500)
def _tools(skill: str, version: int, stored: str) -> tuple[Tool, ...]:
    """A version never changes, and each of its tools keeps what was prepared of its schema."""
    exposes = Exposes.model_validate_json(stored)
    return tuple(
        Tool(
            name=tool.called_in(skill),
            description=f"{tool.description} (A tool of the skill {skill}.)",
            input_schema=tool.input,
            handler=partial(carry_out, composed=_Composed(skill, version, tool, exposes)),
            effect=Effect.READ,
            composed=True,
            granted=True,
            timeout=TIMEOUT,
            output_limit=OUTPUT_LIMIT,
            owner="skillsets",
        )
        for tool in exposes.tools
    )


async def carry_out(context: ToolContext, arguments: dict[str, Any], *, composed: _Composed) -> str:
    access = await access_of(context).by_now()
    policy = policy_for(access.policy, composed.of)
    backend = await access.backend()
    files, packages = await context.offload(_files_of, context.extras[EXTRA], composed)
    channel = Channel()
    own_view = backend.name in OWN_VIEW
    if not own_view and backend.name != "process":
        channel.close()
        raise ToolError(
            "The tools of skills need a sandbox that holds them.",
            hint="Staff can choose one in the environment. Go on without, or tell the person.",
        )
    attempt = _Attempt(context, composed, channel)
    mounts = _mounts(files, packages, channel.folder, composed.skill, own_view=own_view)
    seen = {
        "folder": str(mounts.workdir.target if own_view else mounts.workdir.source),
        "file": composed.tool.file,
        "function": composed.tool.function,
        "input": arguments,
        "seed": context.call_id,
    }
    line = PLACE if own_view else channel.folder
    found_in = ""
    if packages is not None:
        found_in = str((packages_folder(composed.skill) if own_view else packages) / SITE)
    running = asyncio.ensure_future(_run(backend, policy, mounts, line, found_in))
    try:
        await channel.begin(seen)
        return await attempt.to_its_end(running)
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError, AgentError):
            await running
        channel.close()


def policy_for(environment: Policy, exposes: Exposes) -> Policy:
    """What the skill's own process may: less than the environment in everything. No network, no workspace,
    nothing to write."""
    wanted = exposes.policy
    own = Policy(
        filesystem_policy=FilesystemPolicy(include_workdir=False, read_write=()),
        process=ProcessPolicy(env_allow=()),
        network_policies={},
        resources=Resources(
            cpu_seconds=wanted.cpu_seconds,
            wall_seconds=round(TIMEOUT),
            memory_mb=wanted.memory_mb,
        ),
    )
    narrowed = narrow_where_said(environment, own)
    # How long it may take is counted without its calls, here and not by the sandbox.
    resources = narrowed.resources.model_copy(update={"wall_seconds": round(TIMEOUT)})
    return narrowed.model_copy(update={"resources": resources})


def _mounts(
    files: Path, packages: Path | None, line: Path, skill: str, *, own_view: bool
) -> Mounts:
    workdir = Mount(files, Path(FOLDER) / skill, writable=False, label=f"the skill {skill}")
    # A pipe takes what is written into it also where its folder is read-only; Landlock knows no pipes.
    others = [Mount(line, PLACE, writable=not own_view, label="the line")]
    if packages is not None:
        label = f"the Python packages of the skill {skill}"
        others.append(Mount(packages, packages_folder(skill), writable=False, label=label))
    return Mounts(workdir, tuple(others))


async def _run(
    backend: SandboxBackend, policy: Policy, mounts: Mounts, line: Path, packages: str
) -> Result:
    # Sets come in the order of hashes, and an attempt that is begun anew must ask for the same.
    given = ["PYTHONHASHSEED=0", *([f"PYTHONPATH={packages}"] if packages else [])]
    command = ["env", *given, "python3", "-s", "-B", str(line / RUNNER), str(line)]
    return await backend.run(command, policy, mounts)


def _files_of(conversation: int, composed: _Composed) -> tuple[Path, Path | None]:
    """Its files, and the Python packages that they need. In a database thread. Raises ToolError for a skill
    that may not be used any more, and for packages that are not installed: nothing is fetched for a call."""
    used = _used(conversation, composed)
    try:
        needed = packages_of(used.version)
        packages = sound_place(needed) if needed is not None else None
        return lay_out(used.version), packages
    except AgentError as problem:
        raise ToolError(problem.message, hint=problem.hint) from problem


def _used(conversation: int, composed: _Composed) -> UsedSkill:
    rows = UsedSkill.objects.filter(conversation=conversation, version=composed.version)
    used = rows.select_related("skill", "version").first()
    if used is None:
        raise ToolError(f"This conversation has the skill {composed.skill} no more.")
    if refusal := why_not(used):
        raise ToolError(refusal)
    return used


class _Attempt:
    """One process, from its begin to what it answers."""

    def __init__(self, context: ToolContext, composed: _Composed, channel: Channel) -> None:
        self._context = context
        self._composed = composed
        self._channel = channel
        self._left = float(composed.of.policy.seconds)
        """Seconds that it may still take by itself."""

    async def to_its_end(self, running: asyncio.Future[Result]) -> str:
        stopped = asyncio.ensure_future(self._context.stopped())
        try:
            while True:
                message = await self._next(running, stopped)
                if "call" in message:
                    await self._carry(message)
                elif "error" in message:
                    raise ToolError(f"The skill's tool failed: {str(message['error'])[:4_000]}")
                else:
                    answer: str = await self._context.offload(self._answer, message.get("result"))
                    return answer
        finally:
            stopped.cancel()

    async def _next(
        self, running: asyncio.Future[Result], stopped: asyncio.Future[None]
    ) -> dict[str, Any]:
        loop = asyncio.get_running_loop()
        hearing = asyncio.ensure_future(self._channel.hear())
        began = loop.time()
        try:
            waited_for: set[asyncio.Future[Any]] = {hearing, running, stopped}
            await asyncio.wait(
                waited_for,
                timeout=max(self._left, 0.0),
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            self._left -= loop.time() - began
            if not hearing.done():
                hearing.cancel()
        if stopped.done():
            raise PutDown
        if hearing.done() and not hearing.cancelled():
            return hearing.result()
        if not running.done():
            raise ToolError(
                f"The skill's tool took longer than its {self._composed.of.policy.seconds} seconds."
            )
        last = await self._channel.heard_already()
        if last is None:
            raise ToolError(_how_it_ended(running.result()))
        return last

    async def _carry(self, message: Mapping[str, Any]) -> None:
        name, given, number = message["call"], message.get("input"), message.get("number")
        if not isinstance(name, str) or not isinstance(given, dict):
            raise ToolError("The skill's tool asked for something that is no call.")
        if name not in self._composed.of.calls:
            text = f"The skill {self._composed.skill} does not say that it calls {name[:100]}."
            await self._channel.say({"number": number, "text": text, "is_error": True})
            return
        # Somebody may have stopped the skill since it was begun.
        await self._context.offload(_used, self._context.extras[EXTRA], self._composed)
        answer = await self._context.call_tool(name, given)
        text = "\n".join(
            block.text if isinstance(block, Text) else f"[{block.type}]" for block in answer.content
        )
        await self._channel.say({"number": number, "text": text, "is_error": answer.is_error})

    def _answer(self, result: Any) -> str:
        """In a thread: a schema may take its time."""
        schema = self._composed.tool.output
        try:
            faults = Checker(schema).faults(result) if schema is not None else []
        except (TooCostly, Unsound):
            raise ToolError(
                "What the skill's tool answered is too large or too entangled to be checked against its "
                "schema."
            ) from None
        if faults:
            lines = "\n".join(f"- {fault}" for fault in faults)
            raise ToolError(f"What the skill's tool answered does not match its schema:\n{lines}")
        if isinstance(result, str):
            return result
        return json.dumps(result, ensure_ascii=False)


def _how_it_ended(result: Result) -> str:
    reasons = {
        KilledBy.MEMORY: "it used more memory than it may",
        KilledBy.CPU: "it used more processor time than it may",
        KilledBy.TIMEOUT: "it took too long",
    }
    how = f"exit code {result.exit_code}"
    if result.killed_by is not None:
        how = reasons.get(result.killed_by, f"it was killed: {result.killed_by}")
    printed = result.stderr.text.strip()[-STDERR_SHOWN:]
    return f"The skill's tool ended without an answer ({how}).\n{printed}".rstrip()

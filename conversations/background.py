"""Carries background commands: each in a sandbox of its own, on the engine's loop, beside the runs.

Neither a socket nor a run owns one. Its row (`backgroundrows`) tells everybody else how it stands;
its output is written to the workspace as it grows.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from django.utils import timezone

from harness.errors import AgentError
from jobs.engine import engine
from sandbox.contract import KilledBy, Result, SandboxBackend, Stream
from tools_app.builtin.background import BackgroundInfo
from tools_app.builtin.commandmarks import CommandMarks
from tools_app.builtin.shell import ShellAccess, refusals_in
from tools_app.workspace import Workspace

from . import backgroundrows
from .models import BackgroundCommand
from .provenance import TableProvenance

logger = logging.getLogger(__name__)

State = BackgroundCommand.State

BEAT_SECONDS = 2.0
"""How often a command gives a sign of life, and hears from elsewhere that it shall end."""
FLUSH_SECONDS = 1.0
"""How old the file of output may be."""
LISTED = 20
STOPPED_WITH_SERVER = "The server was stopped while it ran."

_carried: dict[int, asyncio.Event] = {}
"""By row: set it, on the engine's loop, to have the command ended."""


@dataclass(slots=True)
class _Output:
    """What a command prints, as it came; bounded by the policy."""

    workspace: Path
    path: str
    text: bytearray = field(default_factory=bytearray)
    written: int = 0

    def hear(self, _stream: Stream, data: bytes) -> None:
        self.text += data

    async def flush(self) -> None:
        if len(self.text) > self.written or not self.written:
            await self.write(bytes(self.text))
            self.written = len(self.text)

    async def write(self, data: bytes) -> None:
        write = Workspace(self.workspace).write_bytes
        try:
            await engine.in_tool_thread(write, self.path, data)
        except AgentError as problem:
            # A command may put something else in the way of its own file; its end still tells all.
            logger.info("output of a background command could not be kept: %s", problem.message)

    async def keep_flushing(self) -> None:
        while True:
            await asyncio.sleep(FLUSH_SECONDS)
            await self.flush()

    async def finish(self, result: Result) -> str:
        """The file as it shall stay; the end of it."""
        streams = (result.stdout, result.stderr)
        if any(captured.truncated for captured in streams):
            text = "\n".join(captured.text for captured in streams if captured.size)
            await self.write(text.encode(errors="replace"))
            return text
        await self.flush()
        return self.tail()

    def tail(self) -> str:
        return bytes(self.text[-4 * backgroundrows.TAIL :]).decode(errors="replace")


class ConversationsBackground:
    """See `tools_app.builtin.background.BackgroundAccess`; for one conversation, on the engine's loop."""

    def __init__(self, conversation_id: int, access: ShellAccess) -> None:
        self._conversation_id = conversation_id
        self._access = access

    async def start(
        self, call_id: str, command: str, seconds: int, tainted_by: str
    ) -> BackgroundInfo:
        access = await self._access.by_now()
        backend = await access.backend()  # refuses before there is a row
        seconds = min(seconds, access.policy.resources.wall_seconds)
        marks = CommandMarks(
            TableProvenance(self._conversation_id),
            call_id,
            access.policy,
            may_be_unconfined=access.unconfined is not None,
            tainted_by=tainted_by,
            alone=True,
        )
        row = await engine.in_database(
            backgroundrows.begin, self._conversation_id, call_id, command, seconds, marks
        )
        # Begun by an earlier try of the same call, it is its process's, which may well carry it.
        own = backgroundrows.carrier_of(row) == backgroundrows.Carrier.this()
        if own and row.state == State.RUNNING and row.pk not in _carried:
            _carried[row.pk] = asyncio.Event()
            engine.submit(partial(_carry, row, backend, access, marks))
        return _info(row)

    async def overview(self) -> Sequence[BackgroundInfo]:
        return await engine.in_database(self._overview)

    async def find(self, background_id: str) -> BackgroundInfo | None:
        return await engine.in_database(self._find, background_id)

    async def cancel(self, background_id: str) -> BackgroundInfo | None:
        found = await self.find(background_id)
        if found is not None and found.state == State.RUNNING:
            pk = await engine.in_database(ask_for_end, self._conversation_id, background_id)
            end_here(pk)
        return found

    def _overview(self) -> list[BackgroundInfo]:
        rows = BackgroundCommand.objects.filter(conversation_id=self._conversation_id)
        running = list(rows.running().order_by("-pk"))
        ended = rows.exclude(state=State.RUNNING).order_by("-pk")[:LISTED]
        return [_info(row) for row in [*running, *ended]]

    def _find(self, background_id: str) -> BackgroundInfo | None:
        rows = BackgroundCommand.objects.filter(conversation_id=self._conversation_id)
        row = rows.filter(uid=background_id.replace("\0", "")).first()
        if row is None:
            return None
        workspace = Workspace(self._access.mounts.workdir.source)
        try:
            tail = workspace.read_bytes(row.output_path)[-4 * backgroundrows.TAIL :]
            # Whatever wrote something else there marked it before.
            marks = TableProvenance(self._conversation_id).foreign()
            source = marks.about(workspace.stat(row.output_path))
        except AgentError:
            tail, source = b"", ""
        return _info(row, tail.decode(errors="replace")[-backgroundrows.TAIL :], source)


def _info(row: BackgroundCommand, tail: str = "", source: str = "") -> BackgroundInfo:
    until = row.ended_at or timezone.now()
    return BackgroundInfo(
        id=row.uid,
        call_id=row.call_uid,
        command=row.command,
        state=row.state,
        exit_code=row.exit_code,
        seconds=(until - row.started_at).total_seconds(),
        output_path=row.output_path,
        tail=tail,
        detail=row.detail,
        untrusted_by=row.untrusted_by or source,
    )


def ask_for_end(conversation_id: int, background_uid: str) -> int:
    """Note that the command shall end, for whatever process carries it; its key, 0 if it does not run."""
    running = BackgroundCommand.objects.running().filter(conversation_id=conversation_id)
    row = running.filter(uid=background_uid).first()
    if row is None:
        return 0
    running.filter(pk=row.pk, cancel_asked_at=None).update(cancel_asked_at=timezone.now())
    return row.pk


def end_here(pk: int) -> None:
    """Have the command ended now if this process carries it. From any thread."""
    if pk in _carried:
        engine.submit(partial(_end_now, pk))


async def _end_now(pk: int) -> None:
    wanted = _carried.get(pk)
    if wanted is not None:
        wanted.set()


async def _carry(
    row: BackgroundCommand, backend: SandboxBackend, access: ShellAccess, marks: CommandMarks
) -> None:
    """Run the command to whatever end it comes to, and write that down exactly once."""
    output = _Output(access.mounts.workdir.source, row.output_path)
    run = backend.run(
        row.command,
        access.policy,
        access.mounts,
        timeout=float(row.timeout_seconds),
        on_output=output.hear,
    )
    running = asyncio.ensure_future(run)
    wanted = _carried.setdefault(row.pk, asyncio.Event())
    helpers = [
        asyncio.ensure_future(wanted.wait()),
        asyncio.ensure_future(_beat(row.pk, wanted)),
        asyncio.ensure_future(output.keep_flushing()),
    ]
    try:
        await asyncio.wait({running, helpers[0]}, return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            await _came_to_its_end(row, running, output, marks)
        else:
            running.cancel()
            await asyncio.wait({running})
            await output.flush()
            await _write_end(row.pk, State.CANCELLED, tail=output.tail())
    except asyncio.CancelledError:
        # The process is being stopped, and the command goes with it.
        running.cancel()
        await asyncio.wait({running})
        await _write_end(row.pk, State.LOST, detail=STOPPED_WITH_SERVER, tail=output.tail())
        raise
    finally:
        for helper in helpers:
            helper.cancel()
        _carried.pop(row.pk, None)


async def _came_to_its_end(
    row: BackgroundCommand,
    running: asyncio.Future[Result],
    output: _Output,
    marks: CommandMarks,
) -> None:
    try:
        result = running.result()
    except AgentError as problem:
        await _write_end(row.pk, State.FAILED, detail=problem.words)
        return
    except Exception as problem:  # a fault of ours must not leave it running for ever
        logger.exception("background command %s broke", row.uid)
        await _write_end(
            row.pk, State.FAILED, detail=f"The server failed: {type(problem).__name__}."
        )
        return
    tail = await output.finish(result)
    if result.killed_by is KilledBy.TIMEOUT:
        state, detail = State.TIMED_OUT, f"It was ended after {row.timeout_seconds} s."
    elif result.killed_by is not None:
        state, detail = State.FAILED, f"It was killed: {result.killed_by}."
    else:
        state, detail = (State.COMPLETED if result.exit_code == 0 else State.FAILED), ""
    await _write_end(
        row.pk,
        state,
        exit_code=result.exit_code,
        detail=" ".join(
            filter(None, [detail, *(f"Network: {one}." for one in refusals_in(result))])
        ),
        tail=tail,
        network=result.network,
        untrusted_by=await engine.in_database(marks.end, result),
    )


async def _write_end(pk: int, state: str, **how: Any) -> None:
    await asyncio.shield(engine.in_database(partial(backgroundrows.end, pk, state, **how)))


async def _beat(pk: int, wanted: asyncio.Event) -> None:
    while True:
        await asyncio.sleep(BEAT_SECONDS)
        try:
            go_on = await engine.in_database(backgroundrows.sign_of_life, pk)
        except Exception:
            logger.exception("a background command could not give a sign of life")
            continue
        if not go_on:
            wanted.set()  # cancelled, deleted, or taken for lost: nobody would hear of it any more


async def end_lost_commands() -> None:
    """For the sweep: whatever process carried them is gone."""
    await engine.in_database(backgroundrows.end_lost)

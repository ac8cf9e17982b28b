"""A program that comes as an image and is spoken to through an engine's client, as by `docker run
--interactive`.

An image is named by its digest: by a tag it would be another one tomorrow. How its container is confined is
the backend's part; nothing is pulled.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from .capture import PIECE, Collector
from .contract import SandboxFailed
from .diskwatch import DiskWatch
from .programs import DISK_SECONDS, KEPT_ERRORS, MOST_ERRORS

IMAGE = re.compile(r"[a-z0-9][a-z0-9._/:-]{0,119}@sha256:[0-9a-f]{64}", re.ASCII)
CLOSE_SECONDS = 5.0


def is_image(argv: Sequence[str]) -> bool:
    return bool(argv) and IMAGE.fullmatch(argv[0]) is not None


@contextmanager
def variables_file(variables: Mapping[str, str]) -> Iterator[tuple[int, str]]:
    """For a client's `--env-file`: a file without a name. Among the client's own variables one could send
    it to another engine, and on its command line all of this machine would read them."""
    descriptor = os.memfd_create("variables")
    try:
        lines = "".join(f"{name}={value}\n" for name, value in variables.items())
        os.write(descriptor, lines.encode())
        os.lseek(descriptor, 0, os.SEEK_SET)
        yield descriptor, f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


class AttachedProgram:
    """See `contract.Program`. Its client holds a piece of what it says, and no more."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        remove: Callable[[], Awaitable[object]],
        disk: DiskWatch | None,
    ) -> None:
        self._process = process
        self._remove = remove
        self._disk = disk
        self._errors = Collector(KEPT_ERRORS)
        self._ending = ""
        self._writing = asyncio.Lock()
        self._watching = asyncio.create_task(self._watch())

    @property
    def alive(self) -> bool:
        return not self._ending

    @property
    def ending(self) -> str:
        return self._ending

    async def read(self) -> bytes:
        assert self._process.stdout is not None  # noqa: S101 - opened with pipes
        data = await self._process.stdout.read(PIECE)
        if not data:
            await asyncio.wait([self._watching], timeout=1.0)
        return data

    async def write(self, data: bytes) -> None:
        stream = self._process.stdin
        async with self._writing:
            if self._ending or stream is None:
                raise SandboxFailed(self._ending or "The program has ended.")
            try:
                stream.write(data)
                await stream.drain()
            except (BrokenPipeError, ConnectionResetError):
                raise SandboxFailed(self._ending or "The program has ended.") from None

    def last_errors(self) -> str:
        return self._errors.captured().text

    async def close(self) -> None:
        self._ending = self._ending or "It was closed."
        self._watching.cancel()
        with suppress(asyncio.CancelledError):
            await self._watching
        await self._end()

    async def _watch(self) -> None:
        """Until it has ended or must; then its container ends as well."""
        ended = asyncio.ensure_future(self._process.wait())
        flood = asyncio.ensure_future(self._hear_errors())
        demands: list[asyncio.Future[Any]] = [ended, flood]
        if self._disk is not None:
            demands.append(asyncio.ensure_future(self._disk.overfilled(period=DISK_SECONDS)))
        try:
            await asyncio.wait(demands, return_when=asyncio.FIRST_COMPLETED)
            if flood.done() and not ended.done():
                # Its errors are closed before it ends, or there were too many of them.
                with suppress(TimeoutError):
                    await asyncio.wait_for(asyncio.shield(ended), 1.0)
            if ended.done():
                self._ending = f"It ended with exit code {ended.result()}."
            elif flood.done():
                self._ending = "It was ended, because it wrote errors without end."
            else:
                self._ending = "It was ended: the workspace grew over its limit."
        finally:
            for each in demands:
                each.cancel()
        await self._end()

    async def _hear_errors(self) -> None:
        """Returns where there are no more, or too many."""
        assert self._process.stderr is not None  # noqa: S101 - opened with pipes
        while (data := await self._process.stderr.read(PIECE)) and self._errors.size < MOST_ERRORS:
            self._errors.add(data)

    async def _end(self) -> None:
        """The client first: it could still have a container begin that was not there to be removed."""
        with suppress(ProcessLookupError):
            self._process.kill()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), CLOSE_SECONDS)
        await self._remove()

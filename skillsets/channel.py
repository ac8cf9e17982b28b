"""The line between the server and one process of a skill in its sandbox: two pipes in a folder of their own,
which no other process is shown, and a secret that begins with the first line and that every answer repeats.

So who speaks on it is the process that was started for this call, or one that it started itself. What is
said, and what may be asked for, is `composing`'s part.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import shutil
import time
from collections.abc import Mapping
from contextlib import suppress
from hmac import compare_digest
from pathlib import Path
from typing import Any

from django.conf import settings

from harness.errors import ToolError
from reading.foreignjson import Unreadable, read_mended_json
from skillsets.inside import runner

UP, DOWN, RUNNER = "up", "down", "runner.py"
LONGEST = runner.LONGEST
AT_ONCE = 16_384
"""Bytes of a line that are read where everybody waits; a longer one is read in a thread."""
STALE_SECONDS = 86_400
"""After which a folder is taken away that a process left when it was killed."""


class Forged(ToolError):
    """Something else than the process that was begun for the call spoke."""

    code = "channel_forged"


class Channel:
    """Used on one event loop; `close` ends it, and may be called again."""

    def __init__(self) -> None:
        self._token = secrets.token_urlsafe(32)
        self.folder = _places() / secrets.token_hex(16)
        self.folder.mkdir(mode=0o711)
        for name in (UP, DOWN):
            os.mkfifo(self.folder / name, 0o600)
        shutil.copyfile(runner.__file__, self.folder / RUNNER)
        (self.folder / RUNNER).chmod(0o644)
        # Both ends, so that neither waits for the process to be there nor hears of its end.
        flags = os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC
        self._up = os.open(self.folder / UP, flags)
        self._down = os.open(self.folder / DOWN, flags)
        self._held = bytearray()
        self._looked_at = 0
        self._closed = False

    async def begin(self, given: Mapping[str, Any]) -> None:
        await self.say({"token": self._token, **given})

    async def say(self, message: Mapping[str, Any]) -> None:
        data = memoryview(json.dumps(message).encode() + b"\n")
        while data:
            try:
                data = data[os.write(self._down, data) :]
            except BlockingIOError:
                await self._when(writable=True)

    async def hear(self) -> dict[str, Any]:
        """The next message. Raises Forged for one without the secret, and for what is none at all."""
        while (line := self._line()) is None:
            await self._when(writable=False)
            self._fill()
        return await self._judged(line)

    async def heard_already(self) -> dict[str, Any] | None:
        """What a process said before it ended; None: nothing whole."""
        self._fill()
        line = self._line()
        return await self._judged(line) if line is not None else None

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            os.close(self._up)
            os.close(self._down)
            shutil.rmtree(self.folder, ignore_errors=True)

    def _fill(self) -> None:
        with suppress(BlockingIOError):
            while data := os.read(self._up, 65_536):
                self._held += data
                if len(self._held) > 2 * LONGEST:
                    raise Forged("It sent more than one line may hold.")

    def _line(self) -> bytes | None:
        end = self._held.find(b"\n", self._looked_at)
        if end < 0:
            self._looked_at = len(self._held)
            if len(self._held) > LONGEST:
                raise Forged("It sent more than one line may hold.")
            return None
        line = bytes(self._held[:end])
        del self._held[: end + 1]
        self._looked_at = 0
        return line

    async def _judged(self, line: bytes) -> dict[str, Any]:
        message = _read(line) if len(line) <= AT_ONCE else await asyncio.to_thread(_read, line)
        token = message.pop("token", None) if isinstance(message, dict) else None
        if not isinstance(token, str) or not compare_digest(token.encode(), self._token.encode()):
            raise Forged(
                "What it sent does not come from the process that was begun for this call."
            )
        found: dict[str, Any] = message
        return found

    async def _when(self, *, writable: bool) -> None:
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[None] = loop.create_future()

        def tell() -> None:
            if not ready.done():
                ready.set_result(None)

        if writable:
            loop.add_writer(self._down, tell)
        else:
            loop.add_reader(self._up, tell)
        try:
            await ready
        finally:
            if writable:
                loop.remove_writer(self._down)
            else:
                loop.remove_reader(self._up)


def _read(line: bytes) -> Any:
    """None of what is no JSON, or more of it than anybody answers."""
    try:
        return read_mended_json(line, limit=2 * LONGEST)
    except Unreadable:
        return None


def _places() -> Path:
    places = Path(settings.AGENTSITE_DATA_DIR) / "skill-calls"
    places.mkdir(mode=0o711, parents=True, exist_ok=True)
    late = time.time() - STALE_SECONDS
    for place in places.iterdir():
        with suppress(OSError):
            if place.stat().st_mtime < late:
                shutil.rmtree(place, ignore_errors=True)
    return places

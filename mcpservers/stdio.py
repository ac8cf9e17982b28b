"""What is said to an MCP server that is a program, and what it says: a message of the protocol a line.

Its lines are strangers' text: each is bounded by its length and its parts, and so is what it may say in a
while. A long one is read in a thread, for where it is heard all runs wait. Where the program runs is
`programs`' question. Heavy, for the official client.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from mcp.client._transport import TransportStreams
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter
from pydantic import ValidationError

from reading.foreignjson import Unreadable, read_mended_json
from reading.jsonparts import Parts
from sandbox.contract import Program, SandboxFailed

from .transport import GiveUp

MOST_ODD = 100
"""Lines that are no message: some servers print what they do where they should not."""
A_LINE = 50
"""What a line costs beside its parts: each is handed on by itself."""
BYTES = 100
"""Of a line that cost as much as a part."""
LONG = 32_768
"""Bytes of a line that is read in a thread."""
BURST = 4
A_SECOND = 0.25
"""Of the parts of the largest answer: what a program may say at once, and in a second after that."""


class _GivenUp(Exception):
    pass


class _Allowance:
    """What a program may still say now."""

    def __init__(self, most_parts: int) -> None:
        self._most = float(most_parts * BURST)
        self._a_second = most_parts * A_SECOND
        self._left = self._most
        self._filled = time.monotonic()

    def spend(self, cost: float) -> bool:
        now = time.monotonic()
        self._left = min(self._most, self._left + (now - self._filled) * self._a_second)
        self._filled = now
        self._left -= cost
        return self._left >= 0


@asynccontextmanager
async def spoken_to(
    program: Program, *, most_bytes: int, most_parts: int, give_up: GiveUp
) -> AsyncIterator[TransportStreams]:
    """A transport of the official client over the program, which its owner closes. `give_up` is told why it
    is not worth going on."""
    heard_in, heard = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    said, said_out = anyio.create_memory_object_stream[SessionMessage](0)

    async def listen() -> None:
        async with heard_in:
            try:
                async for line in _lines(program, most_bytes):
                    message = await judge.heard(line)
                    if message is not None:
                        await heard_in.send(message)
                give_up(program.ending or "It closed its output.")
            except _GivenUp as problem:
                give_up(str(problem))
            except (anyio.ClosedResourceError, anyio.BrokenResourceError):
                return  # nobody listens any more

    async def speak() -> None:
        async with said_out:
            try:
                async for each in said_out:
                    text = each.message.model_dump_json(by_alias=True, exclude_unset=True)
                    await program.write(text.encode() + b"\n")
            except SandboxFailed as problem:
                give_up(problem.message)
                await heard_in.aclose()

    judge = _Judge(most_bytes, most_parts)
    async with anyio.create_task_group() as group:
        group.start_soon(listen)
        group.start_soon(speak)
        try:
            yield heard, said
        finally:
            group.cancel_scope.cancel()
    for stream in (heard, said):
        await stream.aclose()


class _Judge:
    def __init__(self, most_bytes: int, most_parts: int) -> None:
        self._most_bytes = most_bytes
        self._most_parts = most_parts
        self._allowance = _Allowance(most_parts)
        self._odd = 0

    async def heard(self, line: bytes) -> SessionMessage | None:
        """None for a line that is passed over. Raises _GivenUp."""
        if len(line) <= LONG:
            return self._message(line)
        return await asyncio.to_thread(self._message, line)

    def _message(self, line: bytes) -> SessionMessage | None:
        parts = Parts()
        for at in range(0, len(line), LONG):
            parts.take(line[at : at + LONG])
        if parts.seen > self._most_parts:
            raise _GivenUp(f"Its answer has more than {self._most_parts:,} parts.")
        if not self._allowance.spend(A_LINE + len(line) / BYTES + parts.seen):
            raise _GivenUp("It says too much to be heard.")
        if not line.strip():
            return None
        try:
            value = read_mended_json(line, limit=self._most_bytes)
            return SessionMessage(jsonrpc_message_adapter.validate_python(value, by_name=False))
        except (Unreadable, ValidationError):
            self._odd += 1
        if self._odd > MOST_ODD:
            raise _GivenUp("It prints what is no message of the protocol.")
        return None


async def _lines(program: Program, most: int) -> AsyncIterator[bytes]:
    """Each as soon as it is whole; what comes behind the last is none. Raises _GivenUp for one longer than
    `most`."""
    begun = bytearray()
    while piece := await program.read():
        first, *others = piece.split(b"\n")
        begun += first
        for other in others:
            if len(begun) > most:
                raise _too_long(most)
            yield bytes(begun)
            begun = bytearray(other)
        if len(begun) > most:
            raise _too_long(most)


def _too_long(most: int) -> _GivenUp:
    return _GivenUp(f"Its answer is larger than {most:,} bytes.")

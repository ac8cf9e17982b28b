"""Reading what a command prints without keeping more than its beginning and its end."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

from .contract import Captured, OnOutput, Stream

PIECE = 64 * 1024
PIPE = 1024 * 1024
"""Bytes that a pipe holds at most, unless an administrator allowed more."""


class Collector:
    """Keeps at most `limit` bytes: the first half as it came, then the most recent other half."""

    def __init__(self, limit: int, on_data: Callable[[bytes], None] | None = None) -> None:
        self._head_limit = limit - limit // 2
        self._tail_limit = limit // 2
        self._limit = limit
        self._head = bytearray()
        self._tail = bytearray()
        self._on_data = on_data
        self.size = 0

    def add(self, data: bytes) -> None:
        if self._on_data is not None and self.size < self._limit:
            self._on_data(data[: self._limit - self.size])
        self.size += len(data)
        room = self._head_limit - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        if data and self._tail_limit:
            self._tail += data[-self._tail_limit :]
            # Cut only now and then: each cut copies the whole tail.
            if len(self._tail) > 2 * self._tail_limit:
                del self._tail[: len(self._tail) - self._tail_limit]

    def captured(self) -> Captured:
        tail = bytes(self._tail[-self._tail_limit :]) if self._tail_limit else b""
        return Captured(bytes(self._head), tail, self.size)


def collectors(limit: int, on_output: OnOutput | None) -> tuple[Collector, Collector]:
    """For what a command prints on both its streams, each told of as it arrives."""

    def to(stream: Stream) -> Callable[[bytes], None] | None:
        return None if on_output is None else lambda data: on_output(stream, data)

    return Collector(limit, to("stdout")), Collector(limit, to("stderr"))


class PipeReader:
    """Feeds a collector from a pipe on the running loop.

    After `detach` it goes on reading and throws away, so that a program left in the background does
    not die of a closed pipe.
    """

    def __init__(self, collector: Collector | None = None) -> None:
        self._collector = collector
        self._loop = asyncio.get_running_loop()
        self._broken: asyncio.Future[None] = self._loop.create_future()
        self._read_end, self.write_end = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self._read_end, False)
        self._loop.add_reader(self._read_end, self._read)

    @property
    def ended(self) -> bool:
        """Has every program closed the pipe?"""
        return self._read_end < 0

    def collect(self, collector: Collector) -> None:
        """Begin to keep what comes."""
        self._collector = collector

    def started(self) -> None:
        """The program has its own copy of the write end."""
        if self.write_end >= 0:
            os.close(self.write_end)
            self.write_end = -1

    async def broken(self) -> None:
        """Waits for ever, or raises what a listener raised."""
        await asyncio.shield(self._broken)

    def drain(self) -> None:
        """Take what is in the pipe now, and no more than a pipe can hold."""
        for _piece in range(PIPE // PIECE + 1):
            if self.ended or not self._read():
                return

    def _read(self) -> bool:
        try:
            data = os.read(self._read_end, PIECE)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if not data:
            self.close()
            return False
        if self._collector is not None:
            try:
                self._collector.add(data)
            except Exception as problem:
                self._collector = None
                if not self._broken.done():
                    self._broken.set_exception(problem)
                    self._broken.exception()  # looked at, whether or not somebody waits
        return True

    def detach(self) -> None:
        self._collector = None

    def close(self) -> None:
        self.started()
        if self._read_end >= 0:
            self._loop.remove_reader(self._read_end)
            os.close(self._read_end)
            self._read_end = -1

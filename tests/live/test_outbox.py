"""The outbox: order, bounds, and what a slow browser gets instead of the text it missed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest

from chat.protocol import Changed, Pong, encode
from live.arriving import OpenBlock, Snapshot
from live.items import Delta
from live.outbox import MAX_WAITING_TEXT, Outbox
from tests.patience import PATIENCE


class Line:
    """A connection whose other end reads only when it is told to."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.snapshot_sent = asyncio.Event()
        self.open = asyncio.Event()
        self.open.set()

    async def write(self, item: Any) -> None:
        await self.open.wait()
        self.sent.append(orjson.loads(encode(item)))
        if self.sent[-1]["type"] == "snapshot":
            self.snapshot_sent.set()

    @property
    def types(self) -> list[str]:
        return [frame["type"] for frame in self.sent]


class Answer:
    """A block that grows piece by piece, as a run makes it grow."""

    def __init__(self, block: str = "b") -> None:
        self.block = block
        self.text = ""

    def piece(self, text: str) -> Delta:
        piece = Delta(self.block, "text", len(self.text), text)
        self.text += text
        return piece

    async def snapshot(self) -> Snapshot:
        return Snapshot([OpenBlock(self.block, "text", None, self.text)])


@asynccontextmanager
async def running(line: Line, answer: Answer) -> AsyncIterator[Outbox]:
    outbox = Outbox(line.write, answer.snapshot)
    task = asyncio.create_task(outbox.run())
    try:
        yield outbox
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_frames_leave_in_the_order_they_came():
    line, answer = Line(), Answer()
    async with running(line, answer) as outbox:
        outbox.put_text(answer.piece("a"))
        outbox.put(Changed(1, (), (), {}))
        outbox.put_text(answer.piece("b"))
        await outbox.deliver(Pong())
    assert line.types == ["delta", "changes", "delta", "pong"]


async def test_waiting_pieces_of_one_block_leave_as_one():
    line, answer, other = Line(), Answer(), Answer("other")
    async with running(line, answer) as outbox:
        for text in ("one ", "twö ", "three"):
            outbox.put_text(answer.piece(text))
        outbox.put_text(other.piece("else"))
        await outbox.deliver(Pong())
    assert [frame.get("text") for frame in line.sent] == ["one twö three", "else", None]
    assert line.sent[0]["offset"] == 0


async def test_pieces_with_a_gap_between_them_are_not_joined():
    line, answer = Line(), Answer()
    async with running(line, answer) as outbox:
        outbox.put_text(Delta("b", "text", 0, "ab"))
        outbox.put_text(Delta("b", "text", 3, "d"))
        await outbox.deliver(Pong())
    assert [frame.get("offset") for frame in line.sent] == [0, 3, None]


async def test_a_slow_browser_loses_pieces_but_no_changes_and_then_gets_a_snapshot():
    line, answer = Line(), Answer()
    async with running(line, answer) as outbox:
        line.open.clear()
        for number in range(3):
            for _ in range(MAX_WAITING_TEXT // 1_000):
                outbox.put_text(answer.piece("x" * 999 + "\n"))
            outbox.put(Changed(number, (), (), {}))
        line.open.set()
        await asyncio.wait_for(line.snapshot_sent.wait(), PATIENCE)
        outbox.put_text(answer.piece("the end"))
        await outbox.deliver(Pong())
    assert [frame["seq"] for frame in line.sent if frame["type"] == "changes"] == [0, 1, 2]
    assert line.types[-3:] == ["snapshot", "delta", "pong"]
    held = line.sent[-3]["blocks"][0]["text"]
    last = line.sent[-2]
    assert held[: last["offset"]] + last["text"] == answer.text


async def test_what_waits_for_a_browser_that_never_reads_stays_bounded():
    line, answer = Line(), Answer()
    async with running(line, answer) as outbox:
        line.open.clear()
        for _ in range(20_000):
            outbox.put_text(answer.piece("word "))
        waiting = sum(len(item[0].text) for item in outbox._waiting if isinstance(item[0], Delta))
        assert waiting <= MAX_WAITING_TEXT


async def test_asking_to_catch_up_gives_a_snapshot_even_when_nothing_else_happens():
    line, answer = Line(), Answer()
    answer.piece("so far")
    async with running(line, answer) as outbox:
        outbox.catch_up()
        await asyncio.wait_for(line.snapshot_sent.wait(), PATIENCE)
    assert line.sent == [
        {
            "type": "snapshot",
            "blocks": [
                {
                    "block": "b",
                    "kind": "text",
                    "continues": None,
                    "text": "so far",
                    "html": "",
                    "drawn": 0,
                }
            ],
        }
    ]


async def test_a_broken_line_ends_the_writer_and_lets_nobody_wait_for_ever():
    class BrokenLine(Line):
        async def write(self, item: Any) -> None:
            raise ConnectionError("gone")

    answer = Answer()
    outbox = Outbox(BrokenLine().write, answer.snapshot)
    first = asyncio.ensure_future(outbox.deliver(Pong()))
    second = asyncio.ensure_future(outbox.deliver(Pong()))
    await asyncio.sleep(0)
    with pytest.raises(ConnectionError):
        await outbox.run()
    async with asyncio.timeout(PATIENCE):
        await asyncio.gather(first, second)
        await outbox.deliver(Pong())

"""Reads of many at once: made once, and never older than the asking."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest

from live.joining import Joining
from tests.patience import PATIENCE


class Table:
    """Something that grows, and counts how often it was read; a read stands still at `gate`."""

    def __init__(self) -> None:
        self.rows = 0
        self.reads = 0
        self.begun = threading.Event()
        self.gate = threading.Event()
        self.gate.set()

    def read(self) -> int:
        seen = self.rows
        self.reads += 1
        self.begun.set()
        assert self.gate.wait(PATIENCE)
        return seen


def in_threads(function: Callable[[], int]) -> asyncio.Future[int]:
    return asyncio.ensure_future(asyncio.to_thread(function))


async def test_who_asks_at_once_is_answered_by_one_read():
    table, joining = Table(), Joining[int]()
    answers = await asyncio.gather(
        *(joining.read("log", table.read, in_threads) for _ in range(200))
    )
    assert set(answers) == {0}
    assert table.reads == 1


async def test_a_read_that_has_begun_answers_nobody_who_comes_later():
    table, joining = Table(), Joining[int]()
    table.gate.clear()
    early = asyncio.create_task(joining.read("log", table.read, in_threads))
    await asyncio.to_thread(table.begun.wait, PATIENCE)
    table.rows = 1
    late = asyncio.create_task(joining.read("log", table.read, in_threads))
    await asyncio.sleep(0)
    table.gate.set()
    assert (await early, await late) == (0, 1)


async def test_different_keys_are_different_reads():
    table, joining = Table(), Joining[int]()
    await asyncio.gather(
        joining.read("a", table.read, in_threads), joining.read("b", table.read, in_threads)
    )
    assert table.reads == 2


async def test_an_error_reaches_all_and_the_next_read_is_a_new_one():
    joining = Joining[int]()

    def refuse() -> int:
        raise PermissionError

    told = await asyncio.gather(
        *(joining.read("log", refuse, in_threads) for _ in range(3)), return_exceptions=True
    )
    assert [type(each) for each in told] == [PermissionError] * 3
    assert await joining.read("log", lambda: 7, in_threads) == 7


async def test_one_who_leaves_takes_the_answer_from_nobody():
    table, joining = Table(), Joining[int]()
    table.gate.clear()
    first, second = (
        asyncio.create_task(joining.read("log", table.read, in_threads)) for _ in range(2)
    )
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    table.gate.set()
    assert await second == 0

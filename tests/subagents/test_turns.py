"""Many that are asked for in one reply begin a few at a time; nobody else's wait for them."""

from __future__ import annotations

import asyncio
import threading

import pytest

from subagents.jobs import AT_ONCE, _in_turn
from tests.patience import PATIENCE


@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
async def test_of_one_tree_a_few_are_at_work_and_of_others_as_ever():
    gate, began = threading.Event(), threading.Semaphore(0)
    at_work: list[int] = []

    def work(pk: int) -> None:
        at_work.append(pk)
        began.release()
        gate.wait(PATIENCE)

    def begin(root: int, pk: int) -> asyncio.Task[None]:
        return asyncio.ensure_future(_in_turn(("begin", root), work, pk))

    try:
        many = [begin(1, number) for number in range(AT_ONCE + 3)]
        other = begin(2, 100)
        for _each in range(AT_ONCE + 1):
            assert await asyncio.to_thread(began.acquire, timeout=PATIENCE)
        assert sorted(at_work) == [*range(AT_ONCE), 100]
    finally:
        gate.set()
    await asyncio.gather(*many, other)
    assert sorted(at_work) == [*range(AT_ONCE + 3), 100]

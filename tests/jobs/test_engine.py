"""Work on the engine: in turn, each once, and brought to a stop in order."""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from functools import partial
from typing import Any

import pytest

from jobs.engine import Engine
from jobs.engine import engine as own_engine
from tests.patience import PATIENCE


@pytest.fixture
def engine(settings) -> Iterator[Engine]:
    settings.AGENTSITE_CONCURRENT_RUNS = 3
    made = Engine()
    yield made
    made.stop()


class Work:
    """Counts how many are at it at once; each goes on when the gate opens."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.now = self.most = self.done = 0
        self.cut_off = 0

    def one(self) -> Callable[[], Coroutine[Any, Any, None]]:
        async def work() -> None:
            self.now += 1
            self.most = max(self.most, self.now)
            try:
                while not self.gate.is_set():  # noqa: ASYNC110 - set by another thread
                    await asyncio.sleep(0.005)
                self.done += 1
            except asyncio.CancelledError:
                self.cut_off += 1
                raise
            finally:
                self.now -= 1

        return work


def wait_for(futures: list[Future[None]]) -> None:
    for future in futures:
        future.result(PATIENCE)


def test_no_more_than_the_setting_are_at_work_at_once_and_all_come_to_their_turn(engine: Engine):
    work = Work()
    begun = [engine.begin(f"job {number}", work.one()) for number in range(10)]
    wait_for(begun[:3])
    assert not begun[3].done()
    assert (engine.running, engine.waiting) == (3, 7)
    work.gate.set()
    wait_for(begun)
    asyncio.run(asyncio.wait_for(settled(engine), PATIENCE))
    assert (work.most, work.done) == (3, 10)
    assert (engine.running, engine.waiting) == (0, 0)


async def settled(engine: Engine) -> None:
    while engine.running or engine.waiting:  # noqa: ASYNC110 - changes in another thread
        await asyncio.sleep(0.01)


def test_what_waits_already_is_not_queued_twice_but_what_runs_may_be(engine: Engine):
    work = Work()
    wait_for([engine.begin(f"job {number}", work.one()) for number in range(3)])
    waiting = [engine.begin("same", work.one()) for _ in range(50)]
    again = engine.begin("job 0", work.one())
    assert not again.done()
    work.gate.set()
    wait_for([*waiting, again])
    asyncio.run(asyncio.wait_for(settled(engine), PATIENCE))
    assert work.done == 3 + 1 + 1


def test_draining_lets_what_runs_end_and_refuses_what_waits(engine: Engine):
    work = Work()
    running = [engine.begin(f"job {number}", work.one()) for number in range(3)]
    wait_for(running)
    waiting = engine.begin("late", work.one())
    engine.start_draining()
    with pytest.raises(CancelledError):
        waiting.result(PATIENCE)
    with pytest.raises(CancelledError):
        engine.begin("too late", work.one()).result(PATIENCE)
    assert engine.draining
    work.gate.set()
    engine.drain(PATIENCE)
    assert (work.done, work.cut_off) == (3, 0)


def test_what_does_not_end_in_time_is_cut_off(engine: Engine):
    work = Work()
    wait_for([engine.begin("long", work.one())])
    engine.drain(0.1)
    assert (work.done, work.cut_off) == (0, 1)


def test_what_is_cut_off_still_says_its_last_words_in_the_tables_threads(engine: Engine):
    said: list[str] = []

    async def work() -> None:
        try:
            await asyncio.sleep(600)
        finally:
            await engine.in_database(said.append, threading.current_thread().name)

    wait_for([engine.begin("long", lambda: work())])
    engine.drain(0.1)
    assert len(said) == 1
    assert engine._threads is None, "no pool was left that nobody ends"


def test_what_unwinds_starts_no_second_loop_and_a_stopped_engine_can_be_used_again(engine: Engine):
    asked: list[Future[None]] = []
    work = Work()

    async def cut_off() -> None:
        try:
            await asyncio.sleep(600)
        finally:
            asked.extend([engine.begin("another", work.one()), engine.submit(work.one())])

    wait_for([engine.begin("long", lambda: cut_off())])
    engine.stop()
    assert [future.cancelled() for future in asked] == [True, True]
    assert engine._loop is None
    work.gate.set()
    wait_for([engine.submit(work.one())])
    assert work.done == 1


def test_what_an_ended_loop_left_behind_is_waited_for_by_nobody(engine: Engine):
    begun, asked = threading.Event(), threading.Event()

    async def stubborn() -> None:
        while not asked.is_set():
            begun.set()
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(600)

    engine.submit(stubborn)
    assert begun.wait(PATIENCE)
    engine.stop(grace=0.1)
    engine.submit(partial(engine.settle, PATIENCE)).result(PATIENCE)
    asked.set()


def test_who_waits_in_vain_for_work_to_end_is_told_where_it_is(engine: Engine):
    work = Work()
    wait_for([engine.begin("long", work.one())])
    with pytest.raises(
        TimeoutError, match=r"engine\.py:\d+ _take_turn > test_engine\.py:\d+ work > "
    ):
        engine.submit(lambda: engine.settle(0.05)).result(PATIENCE)
    work.gate.set()


def test_one_that_fails_gives_its_turn_to_the_next(engine: Engine):
    async def fail() -> None:
        raise ValueError("a fault")

    wait_for([engine.begin(f"job {number}", fail) for number in range(10)])


async def test_database_threads_know_the_ids_that_log_lines_bear(engine: Engine):
    bound = contextvars.ContextVar("bound", default="")
    bound.set("run 7")
    try:
        assert await engine.in_database(bound.get) == "run 7"
    finally:
        await asyncio.to_thread(engine.stop)


def test_a_forked_process_has_an_engine_of_its_own():
    async def nothing() -> None:
        pass

    own_engine.submit(nothing).result(PATIENCE)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            own_engine.submit(nothing).result(PATIENCE)
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    own_engine.submit(nothing).result(PATIENCE)
    own_engine.stop()

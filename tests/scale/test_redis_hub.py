"""Two processes' hubs with a Redis between them: each test names what one says and the other hears."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial

import pytest

from agentsite.local_services import LocalRedis
from live.items import BlockClosed, Delta, Interrupted, Item, Lagged, Nudge, OpenText
from live.local_hub import Subscription
from live.redis_hub import RedisHub
from tests.patience import PATIENCE

UID = "sesn_one"


class Reader:
    """A socket: what it heard, and the text it would show."""

    def __init__(self, subscription: Subscription) -> None:
        self._subscription = subscription
        self.heard: list[Item] = []
        self.text = ""
        self.gaps = 0

    async def until(self, holds: Callable[[], object], seconds: float = PATIENCE) -> None:
        async with asyncio.timeout(seconds):
            while not holds():
                self.take(await anext(self._subscription))

    async def quiet(self, seconds: float = 0.3) -> None:
        try:
            await self.until(lambda: False, seconds)
        except TimeoutError:
            pass

    async def resync(self, hub: RedisHub, text: str) -> None:
        """As a socket does each time it is told that it lags, until it shows `text`."""
        async with asyncio.timeout(PATIENCE):
            while self.text != text:
                self.heard.clear()
                await self.until(lambda: self.count(Lagged))
                self.show(await hub.snapshot(UID))

    def take(self, item: Item) -> None:
        self.heard.append(item)
        if isinstance(item, Delta):
            if item.offset > len(self.text):
                self.gaps += 1
            self.text = self.text[: item.offset] + item.text

    def show(self, snapshot: tuple[OpenText, ...]) -> None:
        self.text = "".join(block.text for block in snapshot)

    def shows(self, text: str) -> bool:
        return self.text == text

    def count(self, kind: type) -> int:
        return sum(isinstance(item, kind) for item in self.heard)


@asynccontextmanager
async def hubs(redis: LocalRedis, count: int = 2) -> AsyncIterator[list[RedisHub]]:
    made = [RedisHub(redis.url) for _ in range(count)]
    try:
        yield made
    finally:
        for hub in made:
            await asyncio.to_thread(hub.stop)


async def follow(hub: RedisHub, uid: str = UID) -> Reader:
    reader = Reader(hub.subscribe(uid))
    reader.show(await hub.snapshot(uid))
    return reader


async def test_text_of_one_process_is_read_in_another_with_its_offsets(redis):
    async with hubs(redis) as (worker, web):
        reader = await follow(web)
        worker.begin(UID)
        worker.open(UID, "b", "text")
        for word in ("One ", "two ", "three"):
            worker.extend(UID, "b", word)
        await reader.until(lambda: reader.text == "One two three")
        worker.close(UID, "b")
        await reader.until(lambda: reader.count(BlockClosed))
        assert reader.gaps == 0
        assert await web.snapshot(UID) == ()


async def test_who_connects_in_mid_answer_misses_nothing(redis):
    """Read while it is written: snapshot and what follows join without a gap, whenever it begins."""
    written: list[str] = []
    followed = asyncio.Event()
    async with hubs(redis) as (worker, web):
        worker.begin(UID)
        worker.open(UID, "b", "text")

        async def write() -> None:
            while not followed.is_set():
                written.append(f"{len(written)} ")
                worker.extend(UID, "b", written[-1])
                await asyncio.sleep(0.001)

        writing = asyncio.ensure_future(write())
        readers = []
        for _ in range(8):
            readers.append(await follow(web))
            await asyncio.sleep(0.05)
        followed.set()
        await writing
        for reader in readers:
            await reader.until(partial(reader.shows, "".join(written)))
            assert reader.gaps == 0


async def test_hints_cross_over_and_a_worker_hears_interrupts_only(redis):
    async with hubs(redis) as (web, worker):
        hints = Reader(worker.subscribe(UID, only_interrupts=True))
        reader = await follow(worker)
        await hints.quiet(0.2)
        web.nudge(UID, 7)
        web.interrupt(UID)
        await reader.until(lambda: Nudge(7) in reader.heard)
        await hints.until(lambda: hints.count(Interrupted))
        assert {type(item) for item in hints.heard} == {Interrupted}


async def test_a_reader_is_not_told_twice_what_its_own_process_says(redis):
    async with hubs(redis, 1) as (hub,):
        reader = await follow(hub)
        await reader.quiet(0.1)
        hub.nudge(UID, 3)
        await reader.until(lambda: Nudge(3) in reader.heard)
        await reader.quiet()
        assert reader.heard.count(Nudge(3)) == 1


async def test_conversations_do_not_hear_each_other(redis):
    async with hubs(redis) as (worker, web):
        reader = await follow(web)
        other = await follow(web, "sesn_two")
        worker.begin(UID)
        worker.open(UID, "b", "text")
        worker.extend(UID, "b", "Mine.")
        await reader.until(lambda: reader.text == "Mine.")
        await other.quiet()
        assert other.count(Delta) == 0
        assert await web.snapshot("sesn_two") == ()


async def test_while_redis_is_away_readers_are_sent_to_the_log_and_writers_do_not_wait(redis):
    async with hubs(redis) as (worker, web):
        reader = await follow(web)
        worker.begin(UID)
        worker.open(UID, "b", "text")
        worker.extend(UID, "b", "Before. ")
        await reader.until(lambda: reader.text == "Before. ")
        redis.stop()
        reader.heard.clear()
        for _ in range(1_000):
            worker.extend(UID, "b", "x")
            worker.nudge(UID, 1)
        await reader.until(lambda: reader.count(Nudge) >= 2)
        assert reader.count(Delta) == 0
        assert await web.snapshot(UID) == ()

        redis.start()
        await reader.resync(web, "Before. " + "x" * 1_000)
        worker.extend(UID, "b", " After.")
        await reader.until(lambda: reader.text.endswith(" After."))
        assert reader.text == "Before. " + "x" * 1_000 + " After."


async def test_a_new_writer_ends_what_a_dead_one_left_half_said(redis):
    async with hubs(redis, 3) as (dead, alive, web):
        dead.begin(UID)
        dead.open(UID, "old", "text")
        dead.extend(UID, "old", "Half of")
        reader = await follow(web)
        await reader.until(lambda: reader.text == "Half of")
        alive.begin(UID)
        await reader.until(lambda: BlockClosed("old") in reader.heard)
        alive.open(UID, "new", "text")
        alive.extend(UID, "new", "Whole.")
        await reader.until(lambda: reader.text == "Whole.")
        # The dead one was only asleep: what it does now touches nothing of its successor's.
        dead.extend(UID, "old", " something")
        dead.close(UID, "old")
        await reader.quiet()
        assert [block.text for block in await web.snapshot(UID)] == ["Whole."]


async def test_a_redis_that_is_not_there_at_the_start_is_found_when_it_comes(redis):
    redis.stop()
    async with hubs(redis) as (worker, web):
        reader = await follow(web)
        worker.begin(UID)
        worker.open(UID, "b", "text")
        worker.extend(UID, "b", "Nobody hears this. ")
        redis.start()
        await reader.resync(web, "Nobody hears this. ")
        worker.extend(UID, "b", "But all of it is told.")
        await reader.until(lambda: reader.text == "Nobody hears this. But all of it is told.")


@pytest.mark.parametrize("text", ["\ud800", "a\ud800b", "\0", "😀"])
async def test_no_text_breaks_the_line(redis, text):
    async with hubs(redis) as (worker, web):
        reader = await follow(web)
        worker.begin(UID)
        worker.open(UID, "b", "text")
        worker.extend(UID, "b", text)
        worker.extend(UID, "b", " after")
        await reader.until(lambda: reader.text.endswith(" after"))
        assert len(reader.text) == len(text) + len(" after")
        assert reader.gaps == 0

"""Streaming text on its way to sockets: the first piece at once, the rest in strides, all of it in order."""

from __future__ import annotations

import asyncio
import threading
from itertools import pairwise

import pytest

from conversations.livetext import AT_ONCE, LiveText
from conversations.models import Run
from harness.ports import LiveBlock
from live.hub import BlockClosed, Delta, Subscription
from live.local_hub import LocalHub

WINDOW = 0.03
STEP = WINDOW / 200


class Clock:
    """The time of the loop that a test runs on: it passes when the test says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    async def pass_time(self, seconds: float) -> None:
        begun = self.now
        for number in range(1, round(seconds / STEP) + 1):
            self.now = begun + number * STEP
            await asyncio.sleep(0)


@pytest.fixture
async def clock(monkeypatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(asyncio.get_running_loop(), "time", clock)
    return clock


@pytest.fixture(autouse=True)
def _window(settings) -> None:
    settings.AGENTSITE_DELTA_MILLISECONDS = int(WINDOW * 1000)


def live(hub: LocalHub, uid: str) -> tuple[LiveText, LiveBlock]:
    text = LiveText(hub, uid, 1, Run())
    block = LiveBlock(f"{uid}.block", "text", "request")
    text.begin(block)
    return text, block


def say(live: LiveText, block: LiveBlock, text: str) -> None:
    block.text.append(text)
    live.delta(block, text)


async def what_is_due_happens() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def striding(text: LiveText) -> asyncio.Future[None]:
    stride = asyncio.ensure_future(text.stride())
    await asyncio.sleep(0)
    return stride


async def said(reader: Subscription) -> list[tuple[int, str]]:
    """What is there for the reader: nothing is waited for."""
    await what_is_due_happens()
    pieces = []
    with pytest.raises(TimeoutError):
        while True:
            async with asyncio.timeout(0):
                item = await anext(reader)
            assert isinstance(item, Delta)
            pieces.append((item.offset, item.text))
    return pieces


async def test_the_first_piece_goes_out_at_once_and_what_follows_together(clock):
    hub = LocalHub()
    reader = hub.subscribe("one")
    text, block = live(hub, "one")
    for word in ("Said ", "at ", "once"):
        say(text, block, word)
    assert await said(reader) == [(0, "Said ")]
    await clock.pass_time(WINDOW - STEP)
    assert await said(reader) == []
    await clock.pass_time(STEP)
    assert await said(reader) == [(5, "at once")]
    say(text, block, "!")
    assert await said(reader) == []
    await clock.pass_time(WINDOW)
    assert await said(reader) == [(12, "!")]


async def test_what_several_runs_gathered_goes_out_in_the_same_stride(clock):
    hub = LocalHub()
    readers = [hub.subscribe(uid) for uid in ("one", "two")]
    runs = [live(hub, uid) for uid in ("one", "two")]
    for (text, block), reader in zip(runs, readers, strict=True):
        say(text, block, "a")
        assert await said(reader) == [(0, "a")]
    say(runs[0][0], runs[0][1], "b")
    await clock.pass_time(WINDOW / 8)
    say(runs[1][0], runs[1][1], "c")
    await clock.pass_time(WINDOW * 7 / 8 - STEP)
    assert [await said(reader) for reader in readers] == [[], []]
    await clock.pass_time(STEP)
    assert [await said(reader) for reader in readers] == [[(1, "b")], [(1, "c")]]


async def test_what_was_gathered_goes_out_as_soon_as_nothing_more_is_there_to_say(clock):
    hub = LocalHub()
    reader = hub.subscribe("one")
    text, block = live(hub, "one")
    for word in ("Said ", "at ", "once"):
        say(text, block, word)
    stride = await striding(text)
    assert await said(reader) == [(0, "Said "), (5, "at once")]
    assert not stride.done()
    await clock.pass_time(WINDOW)
    await what_is_due_happens()
    assert stride.done()
    say(text, block, "!")
    await clock.pass_time(WINDOW)
    assert await said(reader) == [(12, "!")]


async def test_the_strides_of_several_runs_end_together(clock):
    hub = LocalHub()
    runs = [live(hub, uid) for uid in ("one", "two")]
    strides = [await striding(runs[0][0])]
    await clock.pass_time(WINDOW / 8)
    strides.append(await striding(runs[1][0]))
    await clock.pass_time(WINDOW * 7 / 8 - STEP)
    await what_is_due_happens()
    assert [stride.done() for stride in strides] == [False, False]
    await clock.pass_time(STEP)
    await what_is_due_happens()
    assert [stride.done() for stride in strides] == [True, True]


async def test_text_that_cannot_be_sent_on_keeps_nobody_else_in_their_stride(clock, caplog):
    class Failing(LocalHub):
        def extend(self, conversation_uid: str, block: str, text: str) -> Delta | None:
            if text == "lost":
                raise ValueError("no way out")
            return super().extend(conversation_uid, block, text)

    hub = Failing()
    (failing, block), (other, _) = live(hub, "one"), live(hub, "two")
    say(failing, block, "a")
    say(failing, block, "lost")
    stride = await striding(other)
    await clock.pass_time(WINDOW)
    await what_is_due_happens()
    assert stride.done()
    assert "could not be sent on" in caplog.text


@pytest.mark.parametrize("runs", [3, AT_ONCE + 1, 3 * AT_ONCE])
async def test_no_run_of_a_crowd_is_read_more_often_than_the_window_says_or_much_later(
    runs: int, clock
):
    ends: dict[int, list[float]] = {number: [] for number in range(runs)}

    async def stream(number: int) -> None:
        text, _block = live(LocalHub(), f"{number}")
        while True:
            await text.stride()
            ends[number].append(clock.now)

    streams = []
    for number in range(runs):
        streams.append(asyncio.ensure_future(stream(number)))
        await clock.pass_time(WINDOW / runs)
    await clock.pass_time(2 * WINDOW)
    begun = clock.now
    await clock.pass_time(10 * WINDOW)
    for task in streams:
        task.cancel()
    await asyncio.gather(*streams, return_exceptions=True)

    for times in ends.values():
        seen = [at for at in times if at >= begun]
        assert 9 <= len(seen) <= 11
        assert max(b - a for a, b in pairwise(seen)) < 1.2 * WINDOW
    groups = {at for times in ends.values() for at in times if at >= begun}
    assert len(groups) <= 10 * (runs / AT_ONCE + 5)


async def test_after_a_standstill_a_crowd_goes_on_in_groups(clock):
    ended: list[int] = []
    seen: list[int] = []

    async def stride(number: int) -> None:
        await live(LocalHub(), f"{number}")[0].stride()
        ended.append(number)

    strides = [asyncio.ensure_future(stride(number)) for number in range(3 * AT_ONCE)]
    await asyncio.sleep(0)
    clock.now += 10 * WINDOW
    for _ in range(30):
        await asyncio.sleep(0)
        seen.append(len(ended))

    assert ended == list(range(len(strides)))
    assert max(b - a for a, b in pairwise([0, *seen])) == AT_ONCE


async def test_a_stride_that_is_given_up_keeps_nobody_else_in_theirs(clock):
    hub = LocalHub()
    runs = [live(hub, uid) for uid in ("one", "two")]
    given_up, other = [await striding(text) for text, _block in runs]
    given_up.cancel()
    await clock.pass_time(WINDOW)
    await what_is_due_happens()
    assert other.done()
    assert given_up.cancelled()


async def test_a_block_that_has_ended_says_nothing_any_more(clock):
    hub = LocalHub()
    reader = hub.subscribe("one")
    text, block = live(hub, "one")
    say(text, block, "a")
    say(text, block, "lost")
    assert await said(reader) == [(0, "a")]
    text.end(block)
    await clock.pass_time(2 * WINDOW)
    assert isinstance(await anext(reader), BlockClosed)
    assert await said(reader) == []


async def test_a_reader_gets_all_that_several_threads_say_each_in_its_order():
    hub = LocalHub()
    reader = hub.subscribe("one")
    hub.open("one", "block", "text")

    def say(name: str) -> None:
        for number in range(200):
            hub.extend("one", "block", f"{name}{number} ")

    threads = [threading.Thread(target=say, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    heard: list[str] = []
    while any(thread.is_alive() for thread in threads):
        heard += [word.strip() for _offset, word in await said(reader)]
    heard += [word.strip() for _offset, word in await said(reader)]
    for name in "abc":
        assert [word for word in heard if word[0] == name] == [f"{name}{n}" for n in range(200)]


async def test_a_reader_that_gave_up_waiting_misses_nothing_that_comes_later():
    hub = LocalHub()
    hub.open("one", "block", "text")
    reader = hub.subscribe("one")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(anext(reader), 0.01)
    for word in ("a", "b"):
        hub.extend("one", "block", word)
    assert await said(reader) == [(0, "a"), (1, "b")]
    waiting = asyncio.ensure_future(anext(reader))
    await asyncio.sleep(0)
    waiting.cancel()
    hub.extend("one", "block", "c")
    assert await said(reader) == [(2, "c")]


def test_a_reader_whose_loop_has_ended_is_left_out_and_keeps_nobody_else_from_reading():
    hub = LocalHub()
    hub.open("one", "block", "text")

    async def listen() -> Subscription:
        return hub.subscribe("one")

    gone = asyncio.run(listen())
    hub.extend("one", "block", "lost")

    async def read() -> list[tuple[int, str]]:
        reader = hub.subscribe("one")
        hub.extend("one", "block", "heard")
        return await said(reader)

    assert asyncio.run(read()) == [(4, "heard")]
    assert gone is not None

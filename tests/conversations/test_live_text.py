"""Streaming text on its way to sockets: the first piece at once, the rest in strides, all of it in order."""

from __future__ import annotations

import asyncio
import threading
from itertools import pairwise

import pytest

from conversations.hub import BlockClosed, Delta, Subscription
from conversations.livetext import AT_ONCE, LiveText
from conversations.local_hub import LocalHub
from conversations.models import Run
from harness.ports import LiveBlock

WINDOW = 0.03


@pytest.fixture(autouse=True)
def _window(settings) -> None:
    settings.AGENTSITE_DELTA_MILLISECONDS = int(WINDOW * 1000)


def live(hub: LocalHub, uid: str) -> tuple[LiveText, LiveBlock]:
    text = LiveText(hub, uid, 1, Run())
    block = LiveBlock(f"{uid}.block", "text", "request")
    text.begin(block)
    return text, block


async def piece(reader: Subscription) -> tuple[int, str]:
    async with asyncio.timeout(5):
        item = await anext(reader)
    assert isinstance(item, Delta)
    return item.offset, item.text


async def test_the_first_piece_goes_out_at_once_and_what_follows_together():
    hub = LocalHub()
    reader = hub.subscribe("one")
    text, block = live(hub, "one")
    for word in ("Said ", "at ", "once"):
        text.delta(block, word)
    await asyncio.sleep(0)
    assert await piece(reader) == (0, "Said ")
    before = asyncio.get_running_loop().time()
    assert await piece(reader) == (5, "at once")
    assert asyncio.get_running_loop().time() - before > WINDOW / 2
    text.delta(block, "!")
    assert await piece(reader) == (12, "!")


async def test_what_several_runs_gathered_goes_out_in_the_same_stride(settings):
    settings.AGENTSITE_DELTA_MILLISECONDS = 500  # longer than a busy machine leaves this aside
    hub = LocalHub()
    readers = [hub.subscribe(uid) for uid in ("one", "two")]
    runs = [live(hub, uid) for uid in ("one", "two")]
    for (text, block), reader in zip(runs, readers, strict=True):
        text.delta(block, "a")
        assert await piece(reader) == (0, "a")
    runs[0][0].delta(runs[0][1], "b")
    await asyncio.sleep(WINDOW / 8)
    runs[1][0].delta(runs[1][1], "c")
    assert await piece(readers[0]) == (1, "b")
    async with asyncio.timeout(0):  # it is there already: nothing is waited for
        assert await piece(readers[1]) == (1, "c")


async def test_what_was_gathered_goes_out_as_soon_as_nothing_more_is_there_to_say():
    hub = LocalHub()
    reader = hub.subscribe("one")
    text, block = live(hub, "one")
    for word in ("Said ", "at ", "once"):
        text.delta(block, word)
    striding = asyncio.ensure_future(text.stride())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    async with asyncio.timeout(0):  # it is there already: nothing is waited for
        assert await piece(reader) == (0, "Said ")
        assert await piece(reader) == (5, "at once")
    assert not striding.done()
    await striding
    text.delta(block, "!")
    assert await piece(reader) == (12, "!")


async def test_the_strides_of_several_runs_end_together():
    hub = LocalHub()
    runs = [live(hub, uid) for uid in ("one", "two")]
    first = asyncio.ensure_future(runs[0][0].stride())
    await asyncio.sleep(WINDOW / 8)
    second = asyncio.ensure_future(runs[1][0].stride())
    await first
    await asyncio.sleep(0)
    assert second.done()


async def test_text_that_cannot_be_sent_on_keeps_nobody_else_in_their_stride(caplog):
    class Failing(LocalHub):
        def extend(self, conversation_uid: str, block: str, text: str) -> Delta | None:
            if text == "lost":
                raise ValueError("no way out")
            return super().extend(conversation_uid, block, text)

    hub = Failing()
    (failing, block), (other, _) = live(hub, "one"), live(hub, "two")
    failing.delta(block, "a")
    failing.delta(block, "lost")
    async with asyncio.timeout(5):
        await other.stride()
    assert "could not be sent on" in caplog.text


@pytest.mark.parametrize("runs", [3, AT_ONCE + 1, 3 * AT_ONCE])
async def test_no_run_of_a_crowd_is_read_more_often_than_the_window_says_or_much_later(
    runs: int, monkeypatch
):
    loop = asyncio.get_running_loop()
    clock = [loop.time()]
    monkeypatch.setattr(loop, "time", lambda: clock[0])
    ends: dict[int, list[float]] = {number: [] for number in range(runs)}

    async def pass_time(seconds: float) -> None:
        for _ in range(round(seconds / WINDOW * 200)):
            clock[0] += WINDOW / 200
            await asyncio.sleep(0)

    async def stream(number: int) -> None:
        text, _block = live(LocalHub(), f"{number}")
        while True:
            await text.stride()
            ends[number].append(clock[0])

    streams = []
    for number in range(runs):
        streams.append(asyncio.ensure_future(stream(number)))
        await pass_time(WINDOW / runs)
    await pass_time(2 * WINDOW)
    begun = clock[0]
    await pass_time(10 * WINDOW)
    for task in streams:
        task.cancel()
    await asyncio.gather(*streams, return_exceptions=True)

    for times in ends.values():
        seen = [at for at in times if at >= begun]
        assert 9 <= len(seen) <= 11
        assert max(b - a for a, b in pairwise(seen)) < 1.2 * WINDOW
    groups = {at for times in ends.values() for at in times if at >= begun}
    assert len(groups) <= 10 * (runs / AT_ONCE + 5)


async def test_after_a_standstill_a_crowd_goes_on_in_groups(monkeypatch):
    loop = asyncio.get_running_loop()
    ended: list[int] = []
    seen: list[int] = []

    async def stride(number: int) -> None:
        await live(LocalHub(), f"{number}")[0].stride()
        ended.append(number)

    strides = [asyncio.ensure_future(stride(number)) for number in range(3 * AT_ONCE)]
    await asyncio.sleep(0)
    clock = loop.time() + 10 * WINDOW
    monkeypatch.setattr(loop, "time", lambda: clock)
    for _ in range(30):
        await asyncio.sleep(0)
        seen.append(len(ended))

    assert ended == list(range(len(strides)))
    assert max(b - a for a, b in pairwise([0, *seen])) == AT_ONCE


async def test_a_stride_that_is_given_up_keeps_nobody_else_in_theirs():
    hub = LocalHub()
    runs = [live(hub, uid) for uid in ("one", "two")]
    given_up, other = (asyncio.ensure_future(text.stride()) for text, _block in runs)
    await asyncio.sleep(0)
    given_up.cancel()
    async with asyncio.timeout(5):
        await other
    assert given_up.cancelled()


async def test_a_block_that_has_ended_says_nothing_any_more():
    hub = LocalHub()
    reader = hub.subscribe("one")
    text, block = live(hub, "one")
    text.delta(block, "a")
    text.delta(block, "lost")
    text.end(block)
    assert await piece(reader) == (0, "a")
    assert isinstance(await anext(reader), BlockClosed)
    await asyncio.sleep(2 * WINDOW)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await anext(reader)


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
    said = [(await piece(reader))[1].strip() for _ in range(600)]
    for thread in threads:
        thread.join()
    for name in "abc":
        assert [word for word in said if word[0] == name] == [f"{name}{n}" for n in range(200)]


async def test_a_reader_that_gave_up_waiting_misses_nothing_that_comes_later():
    hub = LocalHub()
    hub.open("one", "block", "text")
    reader = hub.subscribe("one")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(anext(reader), 0.01)
    for word in ("a", "b"):
        hub.extend("one", "block", word)
    assert await piece(reader) == (0, "a")
    assert await piece(reader) == (1, "b")
    waiting = asyncio.ensure_future(anext(reader))
    await asyncio.sleep(0)
    waiting.cancel()
    hub.extend("one", "block", "c")
    assert await piece(reader) == (2, "c")


def test_a_reader_whose_loop_has_ended_is_left_out_and_keeps_nobody_else_from_reading():
    hub = LocalHub()
    hub.open("one", "block", "text")

    async def listen() -> Subscription:
        return hub.subscribe("one")

    gone = asyncio.run(listen())
    hub.extend("one", "block", "lost")

    async def read() -> tuple[int, str]:
        reader = hub.subscribe("one")
        hub.extend("one", "block", "heard")
        return await piece(reader)

    assert asyncio.run(read()) == (4, "heard")
    assert gone is not None

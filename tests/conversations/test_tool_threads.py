"""One person's slow tools leave threads to everybody else's."""

from __future__ import annotations

import asyncio
import threading

from django.conf import settings

from conversations.runner import TOOLS_AT_ONCE, ToolThreads
from tests.patience import PATIENCE


async def test_all_runs_of_one_person_leave_threads_to_others():
    over = threading.Event()
    runs = [ToolThreads(1) for _n in range(settings.AGENTSITE_TOOL_THREADS // TOOLS_AT_ONCE + 1)]
    slow = [
        asyncio.ensure_future(run(over.wait, PATIENCE))
        for run in runs
        for _call in range(TOOLS_AT_ONCE)
    ]
    await asyncio.sleep(0)
    try:
        async with asyncio.timeout(PATIENCE):
            assert await ToolThreads(2)(lambda: "done") == "done"
        assert not any(call.done() for call in slow)
    finally:
        over.set()
    assert all(await asyncio.gather(*slow))


async def test_a_tool_that_was_given_up_keeps_its_person_s_place_until_it_ends():
    share = settings.AGENTSITE_TOOL_THREADS // 2
    over, begun = threading.Event(), threading.Semaphore(0)
    ran: list[str] = []

    def slow() -> None:
        begun.release()
        over.wait(PATIENCE)

    given_up = [asyncio.ensure_future(ToolThreads(1)(slow)) for _n in range(share)]
    for _call in given_up:
        assert await asyncio.to_thread(begun.acquire, timeout=PATIENCE)
    for call in given_up:
        call.cancel()
    await asyncio.gather(*given_up, return_exceptions=True)
    try:
        more = [asyncio.ensure_future(ToolThreads(1)(slow)) for _n in range(share)]
        waiting = asyncio.ensure_future(ToolThreads(1)(lambda: ran.append("interrupted")))
        async with asyncio.timeout(PATIENCE):
            assert await ToolThreads(2)(lambda: "done") == "done"
        assert not begun.acquire(blocking=False)
        for call in (*more, waiting):
            call.cancel()
        await asyncio.gather(*more, waiting, return_exceptions=True)
    finally:
        over.set()
    async with asyncio.timeout(PATIENCE):
        assert await ToolThreads(1)(lambda: "hers") == "hers"
    assert ran == []

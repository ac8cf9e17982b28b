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

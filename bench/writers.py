"""B9's other side: many writers at once, in the environment of an installation (`bench.commands`).

The product's way is the one a run's journal takes, claim and all; the obvious way is `acreate`.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentsite.settings")
django.setup()

from asgiref.sync import sync_to_async  # noqa: E402
from django.utils import timezone  # noqa: E402

from bench.commands import answer_tasks  # noqa: E402
from conversations import claims  # noqa: E402
from conversations.journal import TableJournal  # noqa: E402
from conversations.models import Conversation, Event, Run  # noqa: E402
from harness.content import as_blocks  # noqa: E402
from harness.events import AgentToolResult, dump  # noqa: E402
from harness.history import Entry  # noqa: E402
from harness.ids import new_event_id  # noqa: E402
from jobs.engine import engine  # noqa: E402

Write = Callable[[], Awaitable[object]]


class Writers:
    def __init__(self) -> None:
        self._claimed: dict[str, tuple[int, Run]] = {}

    async def perform(self, task: dict[str, Any]) -> dict[str, Any]:
        """Events a second that `uids` (one writer each) bring into the log in `seconds`."""
        uids, seconds = task["uids"], task["seconds"]
        rows = await sync_to_async(self._rows)(uids)
        if task["how"] == "acreate":
            return {"rate": await _rate([self._plain(pk) for pk, _run in rows], seconds)}
        # A run's journal lives on the engine's loop.
        done: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        loop = asyncio.get_running_loop()
        lasts = await sync_to_async(_lasts)([pk for pk, _run in rows])

        async def on_engine() -> None:
            writers = [self._journal(pk, run, lasts[pk]) for pk, run in rows]
            rate = await _rate(writers, seconds)
            loop.call_soon_threadsafe(done.set_result, rate)

        engine.submit(on_engine)
        return {"rate": await done}

    def _rows(self, uids: list[str]) -> list[tuple[int, Run]]:
        for uid in uids:
            if uid not in self._claimed:
                pk = Conversation.objects.values_list("pk", flat=True).get(uid=uid)
                run = claims.claim(pk)
                if run is None:
                    raise RuntimeError(f"somebody else runs conversation {uid}")
                self._claimed[uid] = (pk, run)
        return [self._claimed[uid] for uid in uids]

    def _journal(self, conversation_id: int, run: Run, last_seq: int) -> Write:
        journal = TableJournal(conversation_id, run, last_seq)

        async def write() -> None:
            await journal.append(Entry.of(_event()))

        return write

    def _plain(self, conversation_id: int) -> Write:
        # Far behind the numbers of the product's own events, and of earlier rounds.
        number = time.time_ns() // 1000

        async def write() -> None:
            nonlocal number
            number += 1
            event, uid, now = _event(), new_event_id(), timezone.now()
            await Event.objects.acreate(
                conversation_id=conversation_id,
                seq=number,
                uid=uid,
                type=event.type,
                subject=uid,
                payload=dump(event),
                processed_at=now,
                created_at=now,
            )

        return write


def _lasts(pks: list[int]) -> dict[int, int]:
    return dict(Conversation.objects.filter(pk__in=pks).values_list("pk", "last_seq"))


def _event() -> AgentToolResult:
    return AgentToolResult(tool_use_id=new_event_id(), content=as_blocks("Noted. " * 20))


async def _rate(writers: list[Write], seconds: float) -> float:
    count = 0
    began = time.monotonic()

    async def one(write: Write) -> None:
        nonlocal count
        while time.monotonic() - began < seconds:
            await write()
            count += 1

    await asyncio.gather(*(one(write) for write in writers))
    return count / (time.monotonic() - began)


if __name__ == "__main__":
    asyncio.run(answer_tasks(Writers().perform))

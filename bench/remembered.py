"""B17's other side: one organisation with as many memories as it is told, searched as a message searches; a
helper process (`bench.commands`) in the environment of an installation.

Rows are written as they are, without the actions: what is measured is finding them.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Iterator
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentsite.settings")
django.setup()

from asgiref.sync import sync_to_async  # noqa: E402
from django.db import connection  # noqa: E402
from django.db.models import Max, Min  # noqa: E402
from django.utils import timezone  # noqa: E402

from accounts.actions.organisations import create_organisation  # noqa: E402
from accounts.models import User  # noqa: E402
from bench.commands import answer_tasks  # noqa: E402
from memory.models import Memory, MemoryStore  # noqa: E402
from memory.retrieval.words import indexed  # noqa: E402
from memory.searching import search_memories  # noqa: E402

OF_A_STORE = 2_000
WORDS = 30_000
LONG = (12, 30)
"""Words of a memory, from and to; they are as rare as words of a language are."""
BATCH = 2_000


class Remembered:
    def __init__(self) -> None:
        self._chance = random.Random(17)  # noqa: S311 - no secret
        self._owner = User()

    async def perform(self, task: dict[str, Any]) -> dict[str, Any]:
        if task["what"] == "fill":
            await sync_to_async(self._fill)(task["count"])
            return {}
        return {"ms": await sync_to_async(self._ask)(task["count"])}

    def _fill(self, count: int) -> None:
        self._owner = User.objects.create_user("owner@bench.example", email="owner@bench.example")
        organisation = create_organisation(actor=self._owner, name="Remembers")
        rows: list[Memory] = []
        store = MemoryStore()
        for number in range(count):
            if number % OF_A_STORE == 0:
                store = MemoryStore.objects.create(organisation=organisation, name=f"s{number}")
            text = " ".join(self._words(self._chance.randint(*LONG)))
            rows.append(
                Memory(
                    store=store,
                    path=f"/{number}.md",
                    content=text,
                    size=len(text),
                    terms=indexed(text),
                    audience=store.audience,
                )
            )
            if len(rows) == BATCH:
                Memory.objects.bulk_create(rows)
                rows = []
        Memory.objects.bulk_create(rows)
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")

    def _ask(self, count: int) -> list[float]:
        """Milliseconds of each search, for words of which half stand together in one memory."""
        every, found = MemoryStore.objects.all(), []
        there = Memory.objects.aggregate(first=Min("pk"), last=Max("pk"))
        for _ in range(count):
            some = Memory.objects.get(pk=self._chance.randint(there["first"], there["last"]))
            words = [*self._chance.sample(some.content.split(), 6), *self._words(6)]
            began = time.perf_counter()
            search_memories(
                self._owner, " ".join(words), every, limit=20, at=timezone.now(), for_agents=True
            )
            found.append((time.perf_counter() - began) * 1000)
        return found

    def _words(self, count: int) -> Iterator[str]:
        """By Zipf's law: the n-th word is as likely as 1/n."""
        for _ in range(count):
            yield _word(int(WORDS ** self._chance.random()))


def _word(number: int) -> str:
    """Of consonants, so that no ending is taken off."""
    letters = ""
    while number:
        number, place = divmod(number, 12)
        letters += "bcdfghjklmpt"[place]
    return f"z{letters}z"


if __name__ == "__main__":
    asyncio.run(answer_tasks(Remembered().perform))

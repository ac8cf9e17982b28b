"""B17's other side: one organisation among others with as many memories as it is told, half as many passages
of documents, and vectors by letters of all of them, searched as a message searches; a helper process
(`bench.commands`) in the environment of an installation.

Rows are written as they are, without the actions: what is measured is finding them.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import django
import numpy

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentsite.settings")
django.setup()

from asgiref.sync import sync_to_async  # noqa: E402
from django.conf import settings  # noqa: E402
from django.db import connection  # noqa: E402
from django.db.models import Max, Min  # noqa: E402
from django.utils import timezone  # noqa: E402

from accounts.actions.organisations import create_organisation  # noqa: E402
from accounts.models import Organisation, User  # noqa: E402
from bench.commands import answer_tasks  # noqa: E402
from documents.models import Collection as Documents  # noqa: E402
from documents.models import Document, Passage, PassageVector  # noqa: E402
from documents.searching import search_passages  # noqa: E402
from memory.embedding.contract import Scale  # noqa: E402
from memory.embedding.letters import Letters  # noqa: E402
from memory.embedding.nearest import Stored, as_stored, as_vectors, nearest  # noqa: E402
from memory.fences import Among  # noqa: E402
from memory.models import Memory, MemoryStore, MemoryVector  # noqa: E402
from memory.retrieval.words import indexed  # noqa: E402
from memory.searching import search_memories  # noqa: E402

OF_A_STORE = 2_000
OTHERS = 1_000
"""Organisations beside it, with a few memories each."""
OF_OTHERS = 5
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
        settings.AGENTSITE_EMBEDDINGS = "letters"
        if task["what"] == "compare":
            return {"found": await sync_to_async(self._compared)(task["count"])}
        settings.AGENTSITE_EMBEDDINGS = "letters" if task["vectors"] else ""
        ms, busy = await sync_to_async(self._ask)(task["count"])
        return {"ms": ms, "busy": busy}

    def _fill(self, count: int) -> None:
        self._owner = User.objects.create_user("owner@bench.example", email="owner@bench.example")
        organisation = create_organisation(actor=self._owner, name="Remembers")
        others = [
            Organisation(name=f"Other {number}", slug=f"other-{number}") for number in range(OTHERS)
        ]
        for other in others:
            other.save()
        for at in range(0, OTHERS, BATCH // OF_OTHERS):
            self._remember(others[at : at + BATCH // OF_OTHERS], OF_OTHERS)
        for _ in range(count // OF_A_STORE):
            self._remember([organisation], OF_A_STORE)
        self._read(organisation, count // 2)
        with connection.cursor() as cursor:
            # PostgreSQL does it by itself sooner or later: later would be while it is measured.
            cursor.execute("VACUUM ANALYZE" if connection.vendor == "postgresql" else "ANALYZE")

    def _remember(self, organisations: Sequence[Organisation], each: int) -> None:
        """So many memories in one new store of each."""
        rows = []
        for organisation in organisations:
            store = MemoryStore.objects.create(organisation=organisation, name="Store")
            for number in range(each):
                text = self._text()
                rows.append(
                    Memory(
                        store=store,
                        path=f"/{number}.md",
                        content=text,
                        sha256=f"{number:064}",
                        size=len(text),
                        terms=indexed(text),
                        audience=store.audience,
                    )
                )
        made = Memory.objects.bulk_create(rows)
        MemoryVector.objects.bulk_create(
            MemoryVector(
                memory=row,
                model=Letters.name,
                sha256=row.sha256,
                audience=row.audience,
                code=stored.code,
                data=stored.data,
            )
            for row, stored in zip(made, _vectors([row.content for row in rows]), strict=True)
        )

    def _read(self, organisation: Organisation, count: int) -> None:
        """Documents of that many passages."""
        collection = Documents.objects.create(organisation=organisation, name="Handbooks")
        for place in range(0, count, BATCH):
            document = Document.objects.create(
                collection=collection, name=f"{place}.md", state="ready", edition=1
            )
            rows = []
            for number in range(min(BATCH, count - place)):
                text = self._text()
                rows.append(
                    Passage(
                        document=document,
                        edition=1,
                        number=number + 1,
                        text=text,
                        terms=indexed(text),
                        audience=collection.audience,
                    )
                )
            made = Passage.objects.bulk_create(rows)
            PassageVector.objects.bulk_create(
                PassageVector(
                    passage=row,
                    model=Letters.name,
                    audience=row.audience,
                    code=stored.code,
                    data=stored.data,
                )
                for row, stored in zip(made, _vectors([row.text for row in rows]), strict=True)
            )

    def _ask(self, count: int) -> tuple[list[float], list[float]]:
        """Milliseconds of each search, and those that its thread was busy."""
        every, found, busy = MemoryStore.objects.all(), [], []
        documents = Documents.objects.all()
        for words in self._questions(count):
            began, begun = time.perf_counter(), time.thread_time()
            search_memories(self._owner, words, every, limit=20, at=timezone.now(), for_agents=True)
            search_passages(self._owner, words, documents, limit=10)
            found.append((time.perf_counter() - began) * 1000)
            busy.append((time.thread_time() - begun) * 1000)
        return found, busy

    def _questions(self, count: int) -> Iterator[str]:
        """Words of which half stand together in one memory."""
        hers = Memory.objects.filter(store__organisation__memberships__user=self._owner)
        there = hers.aggregate(first=Min("pk"), last=Max("pk"))
        for _ in range(count):
            some = Memory.objects.get(pk=self._chance.randint(there["first"], there["last"]))
            yield " ".join([*self._chance.sample(some.content.split(), 6), *self._words(6)])

    def _compared(self, count: int) -> list[float]:
        """Of the ten memories whose vectors are nearest when all are compared exactly, the share
        that is found without words, for each question."""
        rows = MemoryVector.objects.filter(
            memory__store__organisation__memberships__user=self._owner
        )
        audience = rows.values_list("audience", flat=True)[:1].get()
        keys, data = zip(*rows.values_list("memory", "data"), strict=True)
        every = as_vectors(data)
        scale, found = Scale(Letters.floor, Letters.alike), []

        def read(keys: Collection[int]) -> list[tuple[int, bytes | memoryview]]:
            return list(rows.filter(Among("memory", keys)).values_list("memory", "data"))

        for words in self._questions(count):
            (asked,) = Letters().embed([words])
            best = {keys[place] for place in numpy.argsort(-(every @ asked))[:10].tolist()}
            near = nearest(
                asked,
                scale,
                MemoryVector,
                read,
                of="memory",
                model=Letters.name,
                audiences=[audience],
                keys=(),
            )
            found.append(len(best & near.keys()) / len(best))
        return found

    def _text(self) -> str:
        return " ".join(self._words(self._chance.randint(*LONG)))

    def _words(self, count: int) -> Iterator[str]:
        """By Zipf's law: the n-th word is as likely as 1/n."""
        for _ in range(count):
            yield _word(int(WORDS ** self._chance.random()))


def _vectors(texts: list[str]) -> Iterator[Stored]:
    return map(as_stored, Letters().embed(texts))


def _word(number: int) -> str:
    """Of consonants, so that no ending is taken off."""
    letters = ""
    while number:
        number, place = divmod(number, 12)
        letters += "bcdfghjklmpt"[place]
    return f"z{letters}z"


if __name__ == "__main__":
    asyncio.run(answer_tasks(Remembered().perform))

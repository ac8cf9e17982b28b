"""Text that is still arriving is stored now and then, of all runs together, and only for those that hold
their conversation."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from conversations import claims, livetext
from conversations.livetext import LiveText
from conversations.models import Conversation, PartialBlock, Run
from conversations.partials import Partial, save_partials, take_partials
from harness.ids import new_event_id
from harness.ports import LiveBlock
from jobs.engine import engine
from live.local_hub import LocalHub
from tests.conversations.conftest import Converse
from tests.patience import PATIENCE

pytestmark = pytest.mark.django_db(transaction=True)


def claimed(conversation: Conversation) -> Run:
    run = claims.claim(conversation.pk)
    assert run is not None
    return run


def said(run: Run, text: str, block: LiveBlock | None = None) -> Partial:
    block = block or LiveBlock(new_event_id(), "text", "request")
    return Partial(run.conversation_id, run.pk, block, text)


def left(conversation: Conversation) -> list[str]:
    return [text for _block, text in take_partials(conversation.pk)]


def test_what_a_block_says_by_now_takes_the_place_of_what_it_said(converse: Converse):
    run = claimed(converse()[0])
    first = said(run, "Half")
    save_partials([first])
    save_partials([said(run, "Half of it", first.block), said(run, "And more")])
    assert left(run.conversation) == ["Half of it", "And more"]


def test_a_run_that_lost_its_conversation_stores_nothing_and_keeps_nobody_else_from_it(
    converse: Converse,
):
    lost, held = claimed(converse()[0]), claimed(converse()[0])
    Run.objects.filter(pk=lost.pk).update(state=Run.State.LOST)
    save_partials([said(lost, "late"), said(held, "in time")])
    assert (left(lost.conversation), left(held.conversation)) == ([], ["in time"])


def test_many_runs_are_stored_with_the_statements_of_one(converse: Converse):
    runs = [claimed(converse()[0]) for _ in range(4)]
    with CaptureQueriesContext(connection) as one:
        save_partials([said(runs[0], "alone")])
    with CaptureQueriesContext(connection) as many:
        save_partials([said(run, "together") for run in runs])
    assert len(many) == len(one)
    assert PartialBlock.objects.count() == 5


@pytest.fixture
def soon(monkeypatch) -> None:
    monkeypatch.setattr(livetext, "CHECKPOINT_SECONDS", 0.02)


async def stored(run: Run, *texts: str) -> None:
    """Wait until this is what is left of the run."""
    async with asyncio.timeout(PATIENCE):
        while await engine.in_database(lambda: left(run.conversation)) != list(texts):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def say(live: LiveText, block: LiveBlock, text: str) -> None:
    block.text.append(text)
    live.delta(block, text)


def test_every_run_that_streams_is_stored_until_it_ends(converse: Converse, soon):
    runs = [claimed(converse()[0]) for _ in range(2)]
    first_is_over = asyncio.Event()

    async def stream(number: int, *words: str) -> None:
        text = LiveText(LocalHub(), f"of {number}", runs[number].conversation_id, runs[number])
        keeping = asyncio.ensure_future(text.keep_checkpoints())
        block = LiveBlock(new_event_id(), "text", "request")
        text.begin(block)
        for count, word in enumerate(words, 1):
            say(text, block, word)
            await stored(runs[number], "".join(words[:count]))
            if number:
                await first_is_over.wait()
        keeping.cancel()

    async def short() -> None:
        await stream(0, "short")
        first_is_over.set()

    async def both() -> None:
        # The first one ends while the second one still streams.
        await asyncio.gather(short(), stream(1, "long", " and", " longer"))

    engine.submit(both).result(PATIENCE)
    assert left(runs[0].conversation) == ["short"]
    assert left(runs[1].conversation) == ["long and longer"]


def test_what_cannot_be_stored_now_is_stored_the_next_time(converse: Converse, soon, caplog):
    run = claimed(converse()[0])
    gone = claimed(converse()[0])

    async def stream() -> None:
        hub = LocalHub()
        text = LiveText(hub, f"of {run.pk}", run.conversation_id, run)
        keeping = asyncio.ensure_future(text.keep_checkpoints())
        block = LiveBlock(new_event_id(), "text", "request")
        text.begin(block)
        say(text, block, "kept")
        # A run of a conversation that there is not breaks the write for all.
        broken = LiveText(hub, "nowhere", 0, gone)
        breaking = asyncio.ensure_future(broken.keep_checkpoints())
        other = LiveBlock(new_event_id(), "text", "request")
        broken.begin(other)
        say(broken, other, "lost")
        async with asyncio.timeout(PATIENCE):
            while "could not be checkpointed" not in caplog.text:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert await engine.in_database(lambda: left(run.conversation)) == []
        breaking.cancel()
        await stored(run, "kept")
        keeping.cancel()

    engine.submit(stream).result(PATIENCE)
    assert left(run.conversation) == ["kept"]


def test_however_many_runs_there_are_their_statements_are_a_few(converse: Converse):
    """Each thread keeps what it has prepared: a statement for every number of runs would be held."""
    runs = [claimed(converse()[0]) for _ in range(8)]
    asked: set[str] = set()

    def note(execute: Any, sql: str, *given: Any) -> Any:
        asked.add(sql)
        return execute(sql, *given)

    with connection.execute_wrapper(note):
        save_partials([said(run, "together") for run in runs])
        of_eight = set(asked)
        for count in range(5, 8):
            save_partials([said(run, "together") for run in runs[:count]])
    assert of_eight
    assert asked == of_eight
    assert PartialBlock.objects.count() == 8 + 5 + 6 + 7

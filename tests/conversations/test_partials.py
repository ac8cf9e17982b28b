"""Text that is still arriving is stored now and then, of all runs together, and only for those that hold
their conversation."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from conversations import claims
from conversations.livetext import LiveText
from conversations.local_hub import LocalHub
from conversations.models import Conversation, PartialBlock, Run
from conversations.partials import Partial, save_partials, take_partials
from harness.ids import new_event_id
from harness.ports import LiveBlock
from jobs.engine import engine
from tests.conversations.conftest import Converse

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


def test_every_run_that_streams_is_stored_until_it_ends(converse: Converse):
    runs = [claimed(converse()[0]) for _ in range(2)]

    async def stream(text: LiveText, *words: str) -> None:
        keeping = asyncio.ensure_future(text.keep_checkpoints())
        block = LiveBlock(new_event_id(), "text", "request")
        text.begin(block)
        for word in words:
            text.delta(block, word)
            await asyncio.sleep(1.2)
        keeping.cancel()

    async def both() -> None:
        hub = LocalHub()
        texts = [LiveText(hub, f"of {run.pk}", run.conversation_id, run) for run in runs]
        # The first one ends while the second one still streams.
        await asyncio.gather(stream(texts[0], "short"), stream(texts[1], "long", " and", " longer"))

    engine.submit(both).result(10)
    assert left(runs[0].conversation) == ["short"]
    assert left(runs[1].conversation) == ["long and longer"]


def test_what_cannot_be_stored_now_is_stored_the_next_time(converse: Converse):
    run = claimed(converse()[0])
    gone = claimed(converse()[0])

    async def stream() -> None:
        hub = LocalHub()
        text = LiveText(hub, f"of {run.pk}", run.conversation_id, run)
        keeping = asyncio.ensure_future(text.keep_checkpoints())
        block = LiveBlock(new_event_id(), "text", "request")
        text.begin(block)
        text.delta(block, "kept")
        # A run of a conversation that there is not breaks the write for all.
        broken = LiveText(hub, "nowhere", 0, gone)
        breaking = asyncio.ensure_future(broken.keep_checkpoints())
        other = LiveBlock(new_event_id(), "text", "request")
        broken.begin(other)
        broken.delta(other, "lost")
        await asyncio.sleep(1.3)
        breaking.cancel()
        await asyncio.sleep(1.3)
        keeping.cancel()

    engine.submit(stream).result(10)
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

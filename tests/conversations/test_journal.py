"""Appends of many runs in one commit keep what one append promises: fencing, order, no gaps, telling."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path

import pytest
from asgiref.sync import async_to_sync
from django.db import connection, transaction

from conversations import claims, log
from conversations.journal import TableJournal
from conversations.models import Conversation, Event, Run
from harness.content import as_blocks
from harness.errors import LeaseLost
from harness.events import (
    AgentToolResult,
    SessionStatusRunning,
    load,
)
from harness.history import Entry
from harness.ids import new_event_id
from jobs.engine import engine
from live.hub import Nudge, Subscription, hub
from tests.conversations.conftest import Converse
from tests.patience import PATIENCE

pytestmark = pytest.mark.django_db(transaction=True)


def result(text: str = "Noted.") -> Entry:
    return Entry.of(AgentToolResult(tool_use_id=new_event_id(), content=as_blocks(text)))


def claimed(conversation: Conversation) -> Run:
    run = claims.claim(conversation.pk)
    assert run is not None
    return run


def numbers(conversation: Conversation) -> list[int]:
    return list(conversation.events.order_by("seq").values_list("seq", flat=True))


def test_each_conversation_gets_its_own_numbers_without_gaps(converse: Converse):
    first, second = converse()[0], converse()[0]
    runs = [claimed(first), claimed(second)]
    log.append(second.pk, [result()], run=runs[1])
    one, two = log.append_together(
        [log.Asked(runs[0], [result("a"), result("b")]), log.Asked(runs[1], [result("c")])]
    )
    assert isinstance(one, log.Stored)
    assert isinstance(two, log.Stored)
    assert (one.first_seq, two.first_seq) == (1, 2)
    assert (numbers(first), numbers(second)) == ([1, 2], [1, 2])
    for conversation, run in zip((first, second), runs, strict=True):
        conversation.refresh_from_db()
        assert conversation.last_seq == 2
        last = conversation.events.get(seq=2)
        assert last.run == run
        assert last.processed_at == last.created_at == conversation.active_at


def test_who_lost_the_conversation_stores_nothing_and_keeps_nobody_else_out(converse: Converse):
    mine, hers = converse()[0], converse()[0]
    lost, held = claimed(mine), claimed(hers)
    Run.objects.filter(pk=lost.pk).update(state=Run.State.LOST)
    answers = log.append_together([log.Asked(lost, [result()]), log.Asked(held, [result()])])
    assert isinstance(answers[0], LeaseLost)
    assert isinstance(answers[1], log.Stored)
    assert numbers(mine) == []
    assert numbers(hers) == [1]
    mine.refresh_from_db()
    assert mine.last_seq == 0


def test_of_two_runs_of_one_conversation_the_second_comes_by_itself(converse: Converse):
    conversation, _ = converse()
    run = claimed(conversation)
    first, second = log.append_together([log.Asked(run, [result()]), log.Asked(run, [result()])])
    assert isinstance(first, log.Stored)
    assert second is None
    assert numbers(conversation) == [1]


def test_a_conversation_that_is_gone_is_left_to_the_append_that_says_so(converse: Converse):
    conversation, _ = converse()
    run = claimed(conversation)
    Conversation.objects.filter(pk=conversation.pk).delete()
    assert log.append_together([log.Asked(run, [result()])]) == [None]
    with pytest.raises(Conversation.DoesNotExist):
        log.append(conversation.pk, [result()], run=run)


def test_nobody_waits_for_a_conversation_that_somebody_else_holds(converse: Converse):
    if not connection.features.has_select_for_no_key_update:
        return  # a transaction of SQLite holds all of them
    held, free = converse()[0], converse()[0]
    runs = [claimed(held), claimed(free)]
    has_it, may_go = threading.Event(), threading.Event()

    def hold() -> None:
        with transaction.atomic():
            Conversation.objects.select_for_update().get(pk=held.pk)
            has_it.set()
            may_go.wait(PATIENCE)
        connection.close()

    holder = threading.Thread(target=hold)
    holder.start()
    try:
        assert has_it.wait(PATIENCE)
        answers = log.append_together([log.Asked(run, [result()]) for run in runs])
    finally:
        may_go.set()
        holder.join()
    assert answers[0] is None
    assert isinstance(answers[1], log.Stored)
    assert (numbers(held), numbers(free)) == ([], [1])


def test_readers_of_each_conversation_are_nudged_after_the_commit(converse: Converse):
    conversations = [converse()[0], converse()[0]]
    runs = [claimed(each) for each in conversations]

    async def nudged(subscription: Subscription) -> int:
        async for item in subscription:
            if isinstance(item, Nudge):
                return item.seq
        raise AssertionError("it ended")

    async def listen() -> list[int]:
        # Between processes a subscription takes a while to begin; what was before it is not told.
        hearing = [asyncio.ensure_future(nudged(hub.subscribe(each.uid))) for each in conversations]
        async with asyncio.timeout(PATIENCE):
            while not all(each.done() for each in hearing):
                asked = [log.Asked(run, [result()]) for run in runs]
                await asyncio.to_thread(log.append_together, asked)
                await asyncio.wait(hearing, timeout=0.2)
        return [each.result() for each in hearing]

    heard = async_to_sync(listen)()
    for seq, conversation in zip(heard, conversations, strict=True):
        # 0 says: look for yourself. Some hubs say so to whoever begins to listen.
        assert seq in (0, *numbers(conversation))


def on_engine(work) -> None:
    engine.submit(work).result(PATIENCE)


def test_fifty_journals_at_once_lose_nothing_and_mix_nothing_up(converse: Converse):
    conversations = [converse()[0] for _ in range(5)]
    runs = [claimed(each) for each in conversations]
    told: dict[int, list[str]] = {each.pk: [] for each in conversations}

    async def write() -> None:
        async def one(conversation: Conversation, run: Run) -> None:
            journal = TableJournal(conversation.pk, run, 0)
            for number in range(10):
                entries = [result(f"{conversation.uid} {number}")]
                if number % 3 == 0:  # one that takes the other road, in between
                    entries = [Entry.of(SessionStatusRunning())]
                for news in await journal.append(*entries):
                    told[conversation.pk].append(news.uid)
                    assert news.seq == len(told[conversation.pk])

        await asyncio.gather(*map(one, conversations, runs))

    on_engine(write)
    for conversation in conversations:
        assert numbers(conversation) == list(range(1, 11))
        stored = conversation.events.order_by("seq").values_list("uid", flat=True)
        assert list(stored) == told[conversation.pk]


def test_a_journal_tells_what_others_appended_in_between(converse: Converse):
    conversation, _ = converse()
    run = claimed(conversation)
    seen: list[list[int]] = []

    async def write() -> None:
        journal = TableJournal(conversation.pk, run, 0)
        seen.append([entry.seq for entry in await journal.append(result())])
        await engine.in_database(log.append, conversation.pk, [result()])
        seen.append([entry.seq for entry in await journal.append(result())])
        seen.append([entry.seq for entry in await journal.append()])

    on_engine(write)
    assert seen == [[1], [2, 3], []]


def test_what_holds_only_unchanged_is_stored_only_behind_what_is_known(converse: Converse):
    conversation, _ = converse()
    run = claimed(conversation)
    seen: list[list[int]] = []

    async def write() -> None:
        journal = TableJournal(conversation.pk, run, 0)
        seen.append([entry.seq for entry in await journal.append_if_unchanged(result())])
        await engine.in_database(log.append, conversation.pk, [result()])
        own = [result(), result()]
        news = await journal.append_if_unchanged(*own)
        seen.append([entry.seq for entry in news])
        assert not {entry.uid for entry in own} & {entry.uid for entry in news}
        assert journal.known_seq() == 2
        seen.append([entry.seq for entry in await journal.append_if_unchanged(*own)])

    on_engine(write)
    assert seen == [[1], [2], [3, 4]]
    assert numbers(conversation) == [1, 2, 3, 4]


def test_one_that_cannot_be_stored_fails_alone(converse: Converse):
    good, bad = converse()[0], converse()[0]
    runs = {good.pk: claimed(good), bad.pk: claimed(bad)}
    known = result()
    log.append(bad.pk, [known], run=runs[bad.pk])
    failures: dict[int, BaseException | None] = {}

    async def write() -> None:
        async def one(conversation: Conversation, entry: Entry, known_seq: int) -> None:
            journal = TableJournal(conversation.pk, runs[conversation.pk], known_seq)
            try:
                await journal.append(entry)
                failures[conversation.pk] = None
            except Exception as problem:
                failures[conversation.pk] = problem

        await asyncio.gather(one(good, result(), 0), one(bad, known, 1))

    on_engine(write)
    assert failures[good.pk] is None
    assert type(failures[bad.pk]).__name__ == "IntegrityError"
    assert (numbers(good), numbers(bad)) == ([1], [1])


def test_a_journal_whose_run_lost_its_claim_says_so(converse: Converse):
    conversation, _ = converse()
    run = claimed(conversation)
    Run.objects.filter(pk=run.pk).update(state=Run.State.LOST)
    caught: list[BaseException] = []

    async def write() -> None:
        try:
            await TableJournal(conversation.pk, run, 0).append(result())
        except LeaseLost as lost:
            caught.append(lost)

    on_engine(write)
    assert caught
    assert numbers(conversation) == []


GOLDEN = Path(__file__).parents[1] / "golden" / "events"
PLAIN = [
    event
    for path in sorted(GOLDEN.rglob("*.json"))
    if (event := load(json.loads(path.read_text(encoding="utf-8")))).plain
]


def test_most_kinds_of_what_a_run_stores_are_plain():
    assert len({event.type for event in PLAIN}) >= 5


@pytest.mark.parametrize("event", PLAIN, ids=lambda event: event.type)
def test_a_plain_event_changes_nothing_but_the_log(
    event, converse: Converse, django_assert_num_queries
):
    conversation, _ = converse()
    assert event.plain
    before = {name: value for name, value in vars(conversation).items() if name != "_state"}
    row = Event(conversation=conversation, seq=1, uid=new_event_id(), type=event.type)
    with django_assert_num_queries(0):
        log._project(conversation, row, event, None)
    after = {name: value for name, value in vars(conversation).items() if name != "_state"}
    assert after == before

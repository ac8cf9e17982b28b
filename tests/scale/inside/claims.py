"""Run by `test_on_postgresql`: races that only a server database has."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import connection
from django.db.models.functions import Now

from accounts.models import User
from conversations import claims, log
from conversations.actions.messages import post_message, stop
from conversations.models import Run
from harness.errors import AgentError, LeaseLost
from harness.events import SessionStatusRunning
from harness.history import Entry
from tests.conversations.conftest import (  # noqa: F401 - fixtures
    Converse,
    converse,
    environment,
    make_agent,
)

pytestmark = pytest.mark.django_db(transaction=True)


def at_once(count: int, work: Callable[[int], object]) -> list[object]:
    """What each of so many threads returned or raised, all let go at the same moment."""
    start = threading.Barrier(count)
    results: list[object] = []

    def run(number: int) -> None:
        start.wait()
        try:
            results.append(work(number))
        except Exception as problem:
            results.append(problem)
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_of_many_claimants_exactly_one_wins_each_time(converse: Converse):  # noqa: F811
    conversation, _ = converse()
    for _ in range(10):
        won = at_once(16, lambda _number: claims.claim(conversation.pk))
        runs = [run for run in won if isinstance(run, Run)]
        assert len(runs) == 1
        assert [item for item in won if item is not None] == runs
        claims.release(runs[0])


def test_appends_claims_sweeps_and_messages_at_once_never_deadlock_and_leave_no_gap(
    alice: User,
    converse: Converse,  # noqa: F811
    settings,
):
    settings.AGENTSITE_QUEUED_MESSAGES = 10_000
    several = [converse()[0] for _ in range(3)]

    def work(number: int) -> None:
        for turn in range(12):
            conversation = several[(number + turn) % 3]
            match number % 4:
                case 0:
                    run = claims.claim(conversation.pk)
                    if run is not None:
                        log.append(conversation.pk, [Entry.of(SessionStatusRunning())], run=run)
                        claims.renew(run)
                        claims.release(run)
                case 1:
                    post_message(actor=alice, conversation=conversation, text="x", interrupt=True)
                case 2:
                    expired = Run.objects.filter(state="running")
                    expired.update(lease_until=Now() - timedelta(seconds=1))
                    claims.lost_conversations()
                case 3:
                    stop(actor=alice, conversation=conversation)

    problems = [item for item in at_once(12, work) if item is not None]
    assert [p for p in problems if not isinstance(p, LeaseLost | AgentError)] == []
    for conversation in several:
        seqs = list(conversation.events.order_by("seq").values_list("seq", flat=True))
        assert seqs == list(range(1, len(seqs) + 1))
        assert seqs


def test_an_append_under_way_is_in_the_log_before_the_next_run_reads_it(
    converse: Converse,  # noqa: F811
):
    """The claim waits for it, so no run begins behind an event it does not know."""
    conversation, _ = converse()
    first = claims.claim(conversation.pk)
    assert first is not None
    Run.objects.filter(pk=first.pk).update(lease_until=Now() - timedelta(seconds=1))
    results = at_once(
        2,
        lambda number: (
            log.append(conversation.pk, [Entry.of(SessionStatusRunning())], run=first)
            if number
            else claims.claim(conversation.pk)
        ),
    )
    taker = next(item for item in results if isinstance(item, Run))
    stored = conversation.events.filter(run=first).count()
    refused = any(isinstance(item, LeaseLost) for item in results)
    assert stored + refused == 1
    assert taker.pk != first.pk

"""Jobs by name: here without a broker, in the queue with one, and never the caller's trouble."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
from django.db import transaction

from jobs import broker, here, registry
from jobs.dispatch import dispatch
from jobs.engine import engine
from tests.patience import PATIENCE

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def heard() -> Iterator[tuple[list[dict[str, object]], threading.Event]]:
    """A job called `tests.hear`: what it was told, and a mark that it was."""
    told: list[dict[str, object]] = []
    mark = threading.Event()

    async def hear(**arguments: object) -> None:
        told.append(arguments)
        mark.set()

    registry.job("tests.hear")(hear)
    yield told, mark
    registry._jobs.pop("tests.hear")
    engine.stop()


def test_a_job_runs_after_the_transaction_that_asked_for_it(heard):
    told, mark = heard
    with transaction.atomic():
        dispatch("tests.hear", word="now")
        assert not mark.wait(0.2)
    assert mark.wait(PATIENCE)
    assert told == [{"word": "now"}]


def test_what_is_rolled_back_is_not_asked_for(heard):
    told, mark = heard
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        dispatch("tests.hear", word="never")
        _ = 1 / 0
    assert not mark.wait(0.3)
    assert told == []


def test_an_unknown_name_is_refused_at_once_with_the_known_ones():
    with pytest.raises(LookupError, match=r"conversations\.wake"):
        dispatch("conversations.wakee")


def test_a_later_job_runs_later(heard):
    _told, mark = heard
    asked = time.monotonic()
    dispatch("tests.hear", delay=0.3)
    assert mark.wait(PATIENCE)
    assert time.monotonic() - asked >= 0.3


def test_a_broker_out_of_reach_is_nobodys_error(heard, settings, monkeypatch):
    """The row that asked is stored; the sweep finds it."""
    settings.AGENTSITE_BROKER_URL = "redis://127.0.0.1:1"
    monkeypatch.setattr(broker.app.conf, "broker_url", settings.AGENTSITE_BROKER_URL)
    dispatch("tests.hear")
    _told, mark = heard
    assert not mark.wait(0.2)


def test_the_worker_hands_a_message_over_and_returns(heard):
    told, mark = heard
    broker.run_job("tests.hear", {"word": "sent"})
    assert mark.wait(PATIENCE)
    assert told == [{"word": "sent"}]


def test_beat_is_told_of_what_recurs(settings):
    settings.AGENTSITE_SWEEP_SECONDS = 7
    broker.schedule_recurring()
    sweep = broker.app.conf.beat_schedule["conversations.sweep"]
    assert (sweep["task"], sweep["schedule"]) == ("jobs.run", 7.0)
    assert sweep["options"]["expires"] == 7
    assert sweep["kwargs"] == {"name": "conversations.sweep", "arguments": {}}


def test_under_tests_nothing_recurs_unless_one_asks_for_it():
    assert registry.recurring() == []


def test_a_recurring_job_that_fails_is_started_again(settings):
    settings.AGENTSITE_SWEEP_SECONDS = 0
    started = threading.Semaphore(0)

    async def stumble() -> None:
        started.release()
        raise ValueError("a fault")

    registry.job("tests.stumble", every="TESTS_EVERY")(stumble)
    try:
        settings.TESTS_EVERY = 1
        here.start_recurring()
        assert started.acquire(timeout=PATIENCE)
        assert started.acquire(timeout=PATIENCE)
    finally:
        registry._jobs.pop("tests.stumble")
        engine.stop()

"""What hosts found out about themselves holds while they live, and no longer."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from functools import partial

import pytest
from django.core.cache import cache

from agents import commandtrial
from agents.models import Agent, Environment
from agentsite.seeding import seed
from conversations.actions.conversations import create_conversation
from conversations.sandboxing import FOUND as SANDBOXES
from conversations.sandboxing import session_root
from jobs import hostreports
from jobs.engine import engine
from jobs.hostreports import keep, report, reports
from tests.patience import PATIENCE, until

SUBJECT = commandtrial.FOUND


@pytest.fixture(autouse=True)
def nobody_reported() -> Iterator[None]:
    cache.delete_many([SUBJECT, SANDBOXES])
    yield
    cache.delete_many([SUBJECT, SANDBOXES])


@pytest.fixture
def gone(monkeypatch) -> None:
    """A host that reported good news and ended."""
    with monkeypatch.context() as short:
        short.setattr(hostreports, "SECONDS", 0.01)
        keep(SUBJECT, "gone", ("", ""))
        keep(SANDBOXES, "gone", [{"name": "bubblewrap", "available": True}])
    time.sleep(0.02)


def test_a_host_that_is_gone_silences_no_warning(gone):
    keep(SUBJECT, "here", ("no bwrap.", "install it"))
    assert commandtrial.commands_problem() == commandtrial.Trial("no bwrap.", "install it")


@pytest.mark.django_db
def test_a_host_that_is_gone_says_nothing_about_where_files_lie(gone, alice, acme, settings):
    settings.AGENTSITE_SANDBOXES = ["bubblewrap", "process"]
    seed()
    agent, environment = Agent.objects.earliest("pk"), Environment.objects.earliest("pk")
    conversation = create_conversation(
        actor=alice, organisation=acme, agent=agent, environment=environment
    )
    keep(SANDBOXES, "here", [{"name": "process", "available": True}])
    assert session_root(conversation).endswith(conversation.uid)


def test_of_two_that_report_at_once_none_is_lost_for_long():
    keep(SUBJECT, "one", ("", ""))
    keep(SUBJECT, "other", ("", ""))
    cache.set(SUBJECT, ["one"])
    keep(SUBJECT, "other", ("", ""))
    assert list(reports(SUBJECT)) == ["one", "other"]


@pytest.mark.django_db(transaction=True)
def test_a_report_lasts_as_long_as_its_process(monkeypatch):
    monkeypatch.setattr(hostreports, "SECONDS", 0.4)
    monkeypatch.setattr(hostreports, "AGAIN", 0.05)
    engine.submit(partial(report, SUBJECT, ("", ""))).result(PATIENCE)
    time.sleep(0.5)
    until(lambda: list(reports(SUBJECT)) == [socket.gethostname()])
    engine.stop()
    until(lambda: reports(SUBJECT) == {})

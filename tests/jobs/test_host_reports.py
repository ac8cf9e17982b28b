"""What hosts found out about themselves holds while they live, and no longer."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import pytest
from django.core.cache import cache

from agents import commandtrial
from agents.models import Agent, Environment
from agentsite.seeding import seed
from conversations.actions.conversations import create_conversation
from conversations.models import Conversation
from conversations.sandboxing import FOUND as SANDBOXES
from conversations.sandboxing import session_root
from jobs import hostreports
from jobs.engine import engine
from jobs.hostreports import keep, report, reports
from sandbox.guarantees import Guarantee
from tests.patience import PATIENCE, until
from tools_app.workspace import PUBLIC_ROOT

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
        keep(SANDBOXES, "gone", [found("bubblewrap", Guarantee)])
    time.sleep(0.02)


@pytest.fixture
def conversation(alice, acme, settings) -> Conversation:
    settings.AGENTSITE_SANDBOXES = ["bubblewrap", "process"]
    seed()
    agent, environment = Agent.objects.earliest("pk"), Environment.objects.earliest("pk")
    return create_conversation(actor=alice, organisation=acme, agent=agent, environment=environment)


def found(name: str, holds: Iterable[Guarantee]) -> dict[str, Any]:
    return {"name": name, "available": True, "holds": list(holds)}


class Told:
    """Notes each time that it is put into the cache."""

    def __init__(self, name: str, said: list[str]) -> None:
        self.name, self.said = name, said

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        self.said.append(self.name)
        return str, (self.name,)


def test_a_host_that_is_gone_silences_no_warning(gone):
    keep(SUBJECT, "here", ("no bwrap.", "install it"))
    assert commandtrial.commands_problem() == commandtrial.Trial("no bwrap.", "install it")


@pytest.mark.django_db
def test_a_host_that_is_gone_says_nothing_about_where_files_lie(gone, conversation):
    keep(SANDBOXES, "here", [found("process", [])])
    assert session_root(conversation).endswith(conversation.uid)


@pytest.mark.django_db
def test_files_lie_where_the_sandbox_has_them_that_holds_the_policy(conversation):
    """The first that works is passed over by commands as well, where it promises too little."""
    narrow, wide = found("bubblewrap", []), found("process", Guarantee)
    keep(SANDBOXES, "here", [narrow, wide])
    require = f"require: [{Guarantee.MEMORY_TOTAL}]"
    Environment.objects.update(policy=f"version: 1\n{require}\n")
    conversation.environment.refresh_from_db()
    assert session_root(conversation).endswith(conversation.uid)
    keep(SANDBOXES, "here", [found("bubblewrap", Guarantee), wide])
    assert session_root(conversation) == PUBLIC_ROOT


@pytest.mark.django_db
def test_what_a_host_of_older_code_reported_promises_nothing_and_fails_nothing(conversation):
    keep(SANDBOXES, "older", [{"name": "bubblewrap", "available": True}])
    assert session_root(conversation) == PUBLIC_ROOT
    keep(SANDBOXES, "newer", [found("process", Guarantee)])
    assert session_root(conversation).endswith(conversation.uid)


def test_of_two_that_report_at_once_none_is_lost_for_long():
    keep(SUBJECT, "one", ("", ""))
    keep(SUBJECT, "other", ("", ""))
    cache.set(SUBJECT, ["one"])
    keep(SUBJECT, "other", ("", ""))
    assert list(reports(SUBJECT)) == ["one", "other"]


@pytest.mark.django_db(transaction=True)
def test_what_a_process_told_before_is_not_said_again(monkeypatch):
    monkeypatch.setattr(hostreports, "AGAIN", 0.02)
    said: list[str] = []
    for name in ("first", "second"):
        engine.submit(partial(report, SUBJECT, Told(name, said))).result(PATIENCE)
    before = said.index("second")
    until(lambda: len(said) > before + 5)
    engine.stop()
    assert set(said[before:]) == {"second"}


@pytest.mark.django_db(transaction=True)
def test_a_report_lasts_as_long_as_its_process(monkeypatch):
    monkeypatch.setattr(hostreports, "SECONDS", 0.4)
    monkeypatch.setattr(hostreports, "AGAIN", 0.05)
    engine.submit(partial(report, SUBJECT, ("", ""))).result(PATIENCE)
    time.sleep(0.5)
    until(lambda: list(reports(SUBJECT)) == [socket.gethostname()])
    engine.stop()
    until(lambda: reports(SUBJECT) == {})

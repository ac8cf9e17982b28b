"""Run by `test_on_postgresql`: a cap on what is about to begin keeps nobody's usage from being written."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.conf import LazySettings
from django.db import connection, transaction

from accounts.models import Organisation, User
from agents.models import Environment
from conversations.ratelimits import count_message
from evals.actions.evaluations import start_evaluation
from evals.models import Suite
from harness.content import Text
from harness.events import UserMessage
from pipelines.actions.runs import start_run
from programs.actions.sessions import begin_session, cap_session
from spending.models import Usage
from tests.comparisons.conftest import Compare, Line, compare, line  # noqa: F401 - fixtures
from tests.conversations.conftest import (  # noqa: F401 - fixtures
    Converse,
    MakeAgent,
    converse,
    environment,
    make_agent,
    until,
)
from tests.evals.conftest import add_cases, suite  # noqa: F401 - fixtures
from tests.patience import PATIENCE
from tests.pipelines.conftest import worker  # noqa: F401 - fixture
from tests.scale.inside.locks import in_a_thread, somebody_waits_for_a_lock

pytestmark = pytest.mark.django_db(transaction=True)


def holds_the_table() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_locks WHERE relation = %s::regclass AND pid = pg_backend_pid()"
            " AND mode = 'ShareRowExclusiveLock'",
            [Usage._meta.db_table],
        )
        return bool(cursor.fetchone()[0])


@pytest.fixture
def begin(
    alice: User,
    acme: Organisation,
    make_agent: MakeAgent,  # noqa: F811
    environment: Environment,  # noqa: F811
) -> Callable[..., Any]:
    agent = make_agent(provider="scripted", model="none")

    def begun(**values: Any) -> Any:
        return begin_session(
            caller=None,
            actor=alice,
            organisation=acme,
            agent=agent,
            environment=environment,
            **values,
        )

    return begun


def test_a_cap_on_what_begins_locks_no_table(
    begin: Callable[..., Any],
    alice: User,
    line: Line,  # noqa: F811
    compare: Compare,  # noqa: F811
    add_cases: Callable[..., Suite],  # noqa: F811
    make_agent: MakeAgent,  # noqa: F811
    environment: Environment,  # noqa: F811
):
    here: dict[str, Any] = {"actor": alice, "environment": environment, "limit": 100}
    version = make_agent("Clerk", provider="demo").current
    pipelines = line("A"), line("B")
    assert version is not None
    add_cases()
    ways: list[Callable[[], object]] = [
        lambda: begin(cap=100),
        lambda: start_run(pipeline=pipelines[0], question="How high?", **here),
        lambda: compare(*pipelines, scripted=False, limit=100),
        lambda: start_evaluation(suite=Suite.objects.get(), version=version, **here),
    ]
    for way in ways:
        with transaction.atomic():
            way()
            assert not holds_the_table()
            transaction.set_rollback(True)


def test_a_cap_on_a_conversation_that_may_have_spent_something_locks_it(
    alice: User,
    converse: Converse,  # noqa: F811
):
    conversation, _ = converse()
    with transaction.atomic():
        cap_session(actor=alice, conversation=conversation, limit=100)
        assert holds_the_table()


def test_a_capped_session_with_a_message_and_a_call_that_ends_do_not_deadlock(
    alice: User, acme: Organisation, begin: Callable[..., Any], settings: LazySettings
):
    """As a brief does: its message is counted, then what its call took is written."""
    settings.AGENTSITE_MESSAGES_PER_MINUTE = 100
    counted, capped = threading.Event(), threading.Event()

    def call() -> None:
        with transaction.atomic():
            count_message(alice)
            counted.set()
            until(lambda: capped.is_set() or somebody_waits_for_a_lock())
            Usage.objects.create(
                user=alice,
                organisation=acme,
                provider="scripted",
                model="m",
                purpose="brief",
                model_request_id="request_1",
            )

    def session() -> None:
        assert counted.wait(PATIENCE)
        begin(cap=100, messages=[UserMessage(content=(Text(text="Hello"),))])
        capped.set()

    with ThreadPoolExecutor(2) as threads:
        calling, beginning = (threads.submit(in_a_thread(work)) for work in (call, session))
        calling.result(PATIENCE)
        beginning.result(PATIENCE)

"""Run by `test_on_postgresql`: everybody locks a conversation before its rows, and an endpoint before what is
sent to it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models import QuerySet
from django.db.models.signals import post_save
from django.utils import timezone

from accounts.actions.people import delete_account
from accounts.models import Organisation, User
from agents.models import Environment
from conversations import backgroundrows
from conversations.actions.redacting import redact_content
from conversations.models import BackgroundCommand, Conversation
from evals import running as running_trials
from evals.actions.evaluations import start_evaluation, stop_evaluation
from evals.checks.facts import Facts
from evals.models import Evaluation, Judgement, Suite
from harness.errors import Conflict
from mcpservers.actions import connections
from mcpservers.actions.connections import Departure
from mcpservers.actions.servers import add_server
from mcpservers.models import McpConnection, McpFlow, McpServer
from pipelines import running as running_pipelines
from pipelines.models import PipelineRun
from schedules import ending
from schedules import running as running_orders
from schedules.models import OrderRun, StandingOrder
from teams_app.actions.mail import write_as_person
from teams_app.actions.teams import spawn_teammate
from teams_app.members import members_of
from tests.comparisons.conftest import Compare, Line, compare, line  # noqa: F401 - fixtures
from tests.conversations.conftest import (  # noqa: F401 - fixtures
    Converse,
    MakeAgent,
    converse,
    environment,
    make_agent,
    still,
    until,
)
from tests.evals.conftest import add_cases, spec, suite  # noqa: F401 - fixtures
from tests.patience import PATIENCE
from tests.pipelines.conftest import (  # noqa: F401 - fixtures
    QUESTION,
    Start,
    asked,
    start,
    step,
    worker,
)
from tests.schedules.conftest import (  # noqa: F401 - fixtures
    MONDAY,
    MakeOrder,
    agent,
    draft,
    make_order,
    scripted,
)
from vaults.auth import Refresh
from vaults.oauth import Granted
from webhooks import deliveries
from webhooks.actions.endpoints import redeliver
from webhooks.models import WebhookAttempt, WebhookDelivery, WebhookEndpoint
from webhooks.requests import Outcome

pytestmark = pytest.mark.django_db(transaction=True)


def somebody_waits_for_a_lock() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        return bool(cursor.fetchone()[0])


def running(conversation: Conversation) -> BackgroundCommand:
    return BackgroundCommand.objects.create(
        conversation=conversation,
        call_uid="call_1",
        command="sleep 1",
        timeout_seconds=60,
        output_path="background/1.log",
        pid=1,
        seen_at=timezone.now(),
        started_at=timezone.now(),
    )


def in_a_thread(work: Callable[[], object]) -> Callable[[], object]:
    """`work`, giving its connection back."""

    def run() -> object:
        try:
            return work()
        finally:
            connection.close()

    return run


def test_the_end_of_a_background_command_and_the_deletion_of_its_conversation_do_not_deadlock(
    converse: Converse,  # noqa: F811
):
    conversation, _ = converse()
    row = running(conversation)
    locked = threading.Event()

    def delete() -> None:
        with transaction.atomic():
            held = Conversation.objects.select_for_update().get(pk=conversation.pk)
            locked.set()
            until(somebody_waits_for_a_lock)
            held.delete()

    def end() -> bool:
        assert locked.wait(PATIENCE)
        return backgroundrows.end(row.pk, BackgroundCommand.State.COMPLETED, exit_code=0)

    with ThreadPoolExecutor(2) as threads:
        deleting, ending = (threads.submit(in_a_thread(work)) for work in (delete, end))
        deleting.result(PATIENCE)
        assert ending.result(PATIENCE) is False
    assert not BackgroundCommand.objects.exists()


def test_a_command_that_ends_while_conversations_are_deleted_in_another_way_does_not_deadlock(
    alice: User,
    converse: Converse,  # noqa: F811
):
    """Also where the conversation goes with somebody else, its row is locked before what is its own."""
    conversation, _ = converse()
    row = running(conversation)
    locked = threading.Event()

    def end() -> bool:
        with transaction.atomic():
            Conversation.objects.select_for_update(no_key=True).get(pk=conversation.pk)
            locked.set()
            until(somebody_waits_for_a_lock)
            return backgroundrows.end(row.pk, BackgroundCommand.State.COMPLETED, exit_code=0)

    def delete() -> None:
        assert locked.wait(PATIENCE)
        Conversation.objects.filter(owner=alice).delete()

    with ThreadPoolExecutor(2) as threads:
        ending, deleting = (threads.submit(in_a_thread(work)) for work in (end, delete))
        assert ending.result(PATIENCE) is True
        deleting.result(PATIENCE)
    assert not Conversation.objects.exists()


def test_a_step_of_a_pipeline_that_begins_while_its_run_is_deleted_does_not_deadlock(
    start: Start,  # noqa: F811
):
    run = start({"name": "release", "approval": "May it?"}, step("send"))
    until(lambda: run.steps.filter(state="asking").exists())
    still()
    run.steps.update(state="done", outcome={"word": "approved"})
    locked = threading.Event()

    def delete() -> None:
        with transaction.atomic():
            held = Conversation.objects.select_for_update().get(pk=run.root_id)
            locked.set()
            until(somebody_waits_for_a_lock)
            held.delete()

    def begin() -> None:
        assert locked.wait(PATIENCE)
        running_pipelines.go_on(run.pk)

    with ThreadPoolExecutor(2) as threads:
        deleting, beginning = (threads.submit(in_a_thread(work)) for work in (delete, begin))
        deleting.result(PATIENCE)
        beginning.result(PATIENCE)
    assert not Conversation.objects.exists()
    assert not PipelineRun.objects.exists()


@pytest.mark.parametrize("at", ["beginning", "concluding"])
def test_a_trial_that_begins_or_is_judged_while_its_evaluation_is_deleted_does_not_deadlock(
    alice: User,
    environment: Environment,  # noqa: F811
    make_agent: MakeAgent,  # noqa: F811
    add_cases: Callable[..., Suite],  # noqa: F811
    at: str,
):
    judge = {"type": "judge", "rubric": "Is it kind?"}
    script = {"replies": [{"say": "Good morning"}], "judge": ['{"reason": "kind", "points": 4}']}
    add_cases(spec(checks=[judge], script=script))
    version = make_agent("Clerk", provider="demo").current
    assert version is not None
    evaluation = start_evaluation(
        actor=alice,
        suite=Suite.objects.get(),
        version=version,
        environment=environment,
        scripted=True,
    )
    until(lambda: evaluation.trials.filter(state="passed").exists())
    still()
    trial, root = evaluation.trials.get(), evaluation.root
    assert root is not None
    Evaluation.objects.update(state="running", ended_at=None)
    again = "waiting" if at == "beginning" else "running"
    evaluation.trials.update(state=again, ended_at=None)
    Judgement.objects.all().delete()
    locked = threading.Event()

    def delete() -> None:
        with transaction.atomic():
            held = Conversation.objects.select_for_update().get(pk=root.pk)
            locked.set()
            until(somebody_waits_for_a_lock)
            held.delete()

    def go_on() -> None:
        facts = Facts(answer="", stop="end_turn")
        assert locked.wait(PATIENCE)
        if at == "beginning":
            running_trials.start_due(evaluation.pk)
        else:
            running_trials.conclude(trial.pk, facts)

    with ThreadPoolExecutor(2) as threads:
        deleting, going = (threads.submit(in_a_thread(work)) for work in (delete, go_on))
        deleting.result(PATIENCE)
        going.result(PATIENCE)
    assert not Conversation.objects.exists()


@pytest.mark.parametrize("first", ["judging", "stopping"])
def test_a_trial_that_is_judged_while_its_evaluation_is_stopped_does_not_deadlock_and_keeps_its_verdict(
    alice: User,
    environment: Environment,  # noqa: F811
    make_agent: MakeAgent,  # noqa: F811
    add_cases: Callable[..., Suite],  # noqa: F811
    first: str,
):
    add_cases(spec())
    version = make_agent("Clerk", provider="demo").current
    assert version is not None
    evaluation = start_evaluation(
        actor=alice,
        suite=Suite.objects.get(),
        version=version,
        environment=environment,
        scripted=True,
    )
    until(lambda: Evaluation.objects.filter(pk=evaluation.pk, state="done").exists())
    still()
    trial = evaluation.trials.get()
    place = trial.conversation_id
    assert place is not None
    Evaluation.objects.update(state="running", ended_at=None)
    evaluation.trials.update(state="running", ended_at=None)
    locked, facts = threading.Event(), Facts(answer="", stop="end_turn")

    def judge() -> None:
        with transaction.atomic():
            if first == "judging":
                running_trials.conclude(trial.pk, facts)
            else:
                Conversation.objects.select_for_update(no_key=True).get(pk=place)
            locked.set()
            until(lambda: stopping.done() or somebody_waits_for_a_lock())
            if first == "stopping":
                running_trials.conclude(trial.pk, facts)

    def stop() -> None:
        assert locked.wait(PATIENCE)
        stop_evaluation(actor=alice, evaluation=evaluation)

    with ThreadPoolExecutor(2) as threads:
        stopping = threads.submit(in_a_thread(stop))
        judging = threads.submit(in_a_thread(judge))
        stopping.result(PATIENCE)
        judging.result(PATIENCE)
    still()
    trial.refresh_from_db()
    assert trial.state == ("passed" if first == "judging" else "broken")


def test_a_step_of_a_pipeline_that_begins_while_words_are_taken_out_is_asked_without_them(
    alice: User,
    start: Start,  # noqa: F811
):
    first = step("a", "The word is swordfish.")
    asks = {"name": "release", "approval": "May it?"}
    run = start(first, asks, step("send", prompt="Send {{a}}"))
    until(lambda: run.steps.filter(state="asking").exists())
    still()
    run.steps.filter(place=2).update(state="done", outcome={"word": "approved"})
    conversation = run.steps.get(place=1).conversation
    assert conversation is not None
    said = conversation.events.get(type="agent.message")
    locked, begun = threading.Event(), threading.Event()

    def take_out() -> None:
        with transaction.atomic():
            redact_content(actor=alice, conversation=conversation, event_uid=said.uid)
            locked.set()
            until(lambda: begun.is_set() or somebody_waits_for_a_lock())

    def begin() -> None:
        assert locked.wait(PATIENCE)
        running_pipelines.go_on(run.pk)
        begun.set()

    with ThreadPoolExecutor(2) as threads:
        taking, beginning = (threads.submit(in_a_thread(work)) for work in (take_out, begin))
        taking.result(PATIENCE)
        beginning.result(PATIENCE)
    assert "swordfish" not in asked(run, 3)


def test_a_question_that_a_pipeline_is_being_asked_is_taken_out_with_that_of_another(
    alice: User,
    line: Line,  # noqa: F811
    compare: Compare,  # noqa: F811
):
    asks = {"name": "release", "approval": "May it?"}
    held = line("Held", asks, step("send", prompt="Answer {{question}}"))
    comparison = compare(line("Plain"), held)
    plain, waits = (each.run for each in comparison.entries.order_by("place"))
    assert plain is not None
    assert waits is not None
    until(lambda: waits.steps.filter(state="asking").exists())
    until(lambda: plain.steps.filter(state="done").exists())
    still()
    waits.steps.update(state="done", outcome={"word": "approved"})
    answered = plain.steps.get()
    told = answered.conversation
    assert told is not None
    begun = threading.Event()

    def begin() -> None:
        with transaction.atomic():
            running_pipelines.go_on(waits.pk)
            begun.set()
            until(somebody_waits_for_a_lock)

    def take_out() -> None:
        assert begun.wait(PATIENCE)
        until(taken_out)

    def taken_out() -> bool:
        try:
            redact_content(actor=alice, conversation=told, event_uid=answered.asked_event)
        except Conflict:  # the step that was asked is at work
            return False
        return True

    with ThreadPoolExecutor(2) as threads:
        beginning, taking = (threads.submit(in_a_thread(work)) for work in (begin, take_out))
        beginning.result(PATIENCE)
        taking.result(PATIENCE)
    assert QUESTION not in asked(waits, 2)


@pytest.mark.parametrize("at", ["beginning", "ending"])
def test_a_look_at_schedules_waits_for_no_run_that_another_one_is_at(
    make_order: MakeOrder,  # noqa: F811
    at: str,
):
    order, nine = make_order(), MONDAY + timedelta(hours=3)
    running_orders.take_due(nine)
    run = OrderRun.objects.get(order=order)
    if at == "ending":
        run.state, run.error, run.ended_at, run.is_settled = "failed", "x", nine, False
        run.save()
    look = running_orders.begin_queued if at == "beginning" else ending.settle_ends

    with ThreadPoolExecutor(1) as threads:
        with transaction.atomic():
            StandingOrder.objects.select_for_update(no_key=True).get(pk=order.pk)
            OrderRun.objects.select_for_update(no_key=True).get(pk=run.pk)
            looking = threads.submit(in_a_thread(lambda: look(nine)))
            until(lambda: looking.done() or somebody_waits_for_a_lock())
            assert looking.done()
        looking.result(PATIENCE)
    run.refresh_from_db()
    assert (run.state, run.is_settled) == (
        ("queued", True) if at == "beginning" else ("failed", False)
    )
    look(nine)
    run.refresh_from_db()
    assert (run.state, run.is_settled) == (
        ("started", True) if at == "beginning" else ("failed", True)
    )


def test_what_came_of_a_delivery_and_who_has_it_sent_again_do_not_deadlock(
    alice: User,
    acme: Organisation,
):
    now = timezone.now()
    endpoint = WebhookEndpoint.objects.create(
        organisation=acme, url="https://hooks.invalid/", event_types=["*"], failing_since=now
    )
    delivery = WebhookDelivery.objects.create(
        endpoint=endpoint, event_id="whe_1", body="{}", next_attempt_at=now, created_at=now
    )
    claimed = deliveries.Claimed(delivery.pk, endpoint.url, "{}", {}, now)
    kept, sent = threading.Event(), threading.Event()

    def pause(**_given: object) -> None:
        kept.set()
        until(lambda: sent.is_set() or somebody_waits_for_a_lock())

    def send_again() -> None:
        assert kept.wait(PATIENCE)
        redeliver(actor=alice, delivery=delivery)
        sent.set()

    post_save.connect(pause, sender=WebhookAttempt)
    try:
        with ThreadPoolExecutor(2) as threads:
            record = partial(deliveries.record, claimed, Outcome(status=200))
            for done in [threads.submit(in_a_thread(work)) for work in (record, send_again)]:
                done.result(PATIENCE)
    finally:
        post_save.disconnect(pause, sender=WebhookAttempt)
    endpoint.refresh_from_db()
    assert endpoint.failing_since is None


def in_one_order(first: Callable[[], object], rows: Sequence[QuerySet[Any]]) -> None:
    """`first`, while another process locks these rows one after the other: the first of them before, the
    others once somebody waits for it."""
    locked = threading.Event()

    def lock() -> None:
        with transaction.atomic():
            list(rows[0].select_for_update(no_key=True))
            locked.set()
            until(somebody_waits_for_a_lock)
            for others in rows[1:]:
                list(others.select_for_update(no_key=True))

    def act() -> None:
        assert locked.wait(PATIENCE)
        first()

    with ThreadPoolExecutor(2) as threads:
        for done in [threads.submit(in_a_thread(work)) for work in (lock, act)]:
            done.result(PATIENCE)


@pytest.mark.parametrize("what", ["added", "connected"])
def test_an_mcp_server_and_a_run_that_begins_meanwhile_do_not_deadlock(
    alice: User, acme: Organisation, what: str
):
    place: dict[str, Any] = {"actor": alice, "organisation": acme, "scope": McpServer.Scope.PERSON}
    add = partial(add_server, name="tools", url="https://tools.example.org/", look=False, **place)
    act: Callable[[], object] = add
    if what == "connected":
        server, url = add(), "https://tools.example.org/"
        names: dict[str, Any] = dict.fromkeys(
            ("issuer", "verifier", "client_id", "client_secret", "token_endpoint", "scope"), "a"
        )
        names |= dict.fromkeys(("revocation_endpoint", "redirect_uri", "resource", "back"), "")
        away = Departure(names_itself=True, client_auth="none", steps=0, url=url, **names)
        flow = McpFlow(server=server, user=alice, organisation=acme)
        refresh = Refresh(token_endpoint=url, client_id="a", client_auth="none")
        act = partial(connections._keep, alice, flow, away, refresh, Granted("a-token-of-hers"))
    in_one_order(act, [Organisation.objects.filter(pk=acme.pk), User.objects.filter(pk=alice.pk)])
    assert McpServer.objects.filter(owner=alice).count() == 1
    assert McpConnection.objects.count() == (what == "connected")


def test_what_a_person_writes_to_her_team_and_says_in_it_meanwhile_does_not_deadlock(
    alice: User,
    converse: Converse,  # noqa: F811
    settings: Any,
):
    settings.AGENTSITE_MESSAGES_PER_MINUTE = 10
    lead, _ = converse(lambda _request: "Yes.", features={"teams": True})
    mate = spawn_teammate(actor=alice, lead=lead, name="anna", role="", text="Begin.")
    anna = members_of(mate.team)[1]
    still()
    write = partial(write_as_person, actor=alice, team=mate.team, receivers=[anna], text="Go on")
    held = Conversation.objects.filter(pk=mate.conversation_id)
    in_one_order(write, [held, User.objects.filter(pk=alice.pk)])
    still()
    assert mate.conversation.events.filter(type="user.message").count() == 2


def test_an_account_is_deleted_while_a_run_of_hers_begins_without_a_deadlock(
    alice: User,
    staff: User,
    converse: Converse,  # noqa: F811
):
    conversation, _ = converse()
    held = Conversation.objects.filter(pk=conversation.pk)
    hers = User.objects.filter(pk=alice.pk)
    in_one_order(partial(delete_account, actor=staff, user=alice), [held, hers])
    assert not hers.exists()

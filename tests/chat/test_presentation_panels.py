"""The panels: status, tasks, meter and title, all from what is stored."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from django.utils import timezone

from accounts.models import User
from chat.presentation import frames
from conversations.actions.messages import stop
from conversations.models import Conversation
from harness.content import Text
from harness.errors import Conflict
from harness.events import (
    BudgetReached,
    EndTurn,
    Event,
    Refusal,
    RequiresAction,
    RetriesExhausted,
    SessionError,
    SessionErrorBody,
    SessionStatusIdle,
    SessionStatusRescheduled,
    SessionStatusRunning,
    SessionStatusTerminated,
    SessionUpdated,
    Todo,
    TodosUpdated,
    UserInterrupt,
    UserMessage,
)
from spending.amounts import money
from spending.models import Usage
from tests.chat.drawing import conversation, make_conversation, record
from tests.chat.test_presentation_units import read

__all__ = ["conversation"]


def panel(conversation: Conversation, name: str) -> str:
    return str(frames.page(conversation).panels[name])


RUNNING = SessionStatusRunning()


@pytest.mark.parametrize(
    ("events", "state", "words"),
    [
        ([], "idle", "Ready"),
        ([RUNNING], "running", "Working…"),
        ([RUNNING, UserInterrupt()], "running", "Stopping…"),
        ([SessionStatusTerminated()], "terminated", "Ended"),
        ([RUNNING, SessionStatusIdle(stop_reason=EndTurn())], "idle", "Ready"),
        ([SessionStatusIdle(stop_reason=EndTurn(), interrupted=True)], "stopped", "Stopped"),
        (
            [SessionStatusIdle(stop_reason=RequiresAction(event_ids=("a",)))],
            "waiting",
            "Waiting for you",
        ),
        ([SessionStatusIdle(stop_reason=RetriesExhausted())], "failed", "Failed"),
        ([SessionStatusIdle(stop_reason=BudgetReached())], "limit", "Stopped at a limit"),
        ([SessionStatusIdle(stop_reason=Refusal())], "refused", "The model declined"),
        ([SessionStatusIdle(stop_reason=Refusal()), RUNNING], "running", "Working…"),
    ],
)
def test_the_status_says_what_the_log_says(
    conversation: Conversation, events: list[Event], state: str, words: str
) -> None:
    if events:
        record(conversation, *events)

    reader = read(panel(conversation, "status"))

    assert reader.text == words
    assert reader.having(data_status=state)


def put_off(conversation: Conversation, reason: str, seconds: float) -> str:
    """Puts the request off; when it is tried again, as people read the time."""
    body = SessionErrorBody(type="x", code="overloaded", message=reason, retry_status="retrying")
    wait = SessionStatusRescheduled(delay_seconds=seconds)
    row = record(conversation, SessionError(error=body), wait)[-1]
    due = row.created_at + timedelta(seconds=seconds)
    return due.astimezone(timezone.get_default_timezone()).strftime("%H:%M")


def test_a_wait_says_until_when_and_why_and_only_the_last_one(conversation: Conversation) -> None:
    record(conversation, RUNNING)
    put_off(conversation, "The service is busy.", 60)
    record(conversation, RUNNING)
    due = put_off(conversation, "Too many requests.", 3_600)

    reader = read(panel(conversation, "status"))

    assert reader.text == f"Trying again at {due}: Too many requests."
    assert reader.having(data_status="rescheduling")

    record(conversation, RUNNING)
    assert read(panel(conversation, "status")).text == "Working…"


def message(text: str = "a") -> UserMessage:
    return UserMessage(content=(Text(text=text),))


def test_a_message_that_no_run_has_taken_yet_is_said_to_start(conversation: Conversation) -> None:
    record(conversation, message())
    reader = read(panel(conversation, "status"))
    assert (reader.text, bool(reader.having(data_status="starting"))) == ("Starting…", True)

    record(conversation, message("b"))
    assert read(panel(conversation, "status")).text == "Starting… 1 message queued"


@pytest.mark.parametrize(
    ("events", "may_stop"),
    [
        ([], False),
        ([message()], True),
        ([RUNNING], True),
        ([RUNNING, SessionStatusRescheduled()], True),
        ([RUNNING, SessionStatusIdle(stop_reason=EndTurn())], False),
        ([RUNNING, SessionStatusIdle(stop_reason=RequiresAction(event_ids=("a",)))], True),
        ([RUNNING, SessionStatusIdle(stop_reason=RetriesExhausted())], False),
        ([message(), SessionStatusTerminated()], False),
    ],
)
def test_the_status_offers_a_stop_exactly_where_the_action_takes_one(
    conversation: Conversation, alice: User, events: list[Event], may_stop: bool
) -> None:
    if events:
        record(conversation, *events)
    assert ("data-may-stop" in panel(conversation, "status")) == may_stop
    try:
        stopped = stop(actor=alice, conversation=conversation) is not None
    except Conflict:
        stopped = False
    assert stopped == may_stop


def test_the_status_counts_queued_messages(conversation: Conversation) -> None:
    record(conversation, RUNNING, UserMessage(content=(Text(text="a"),)))

    assert read(panel(conversation, "status")).text == "Working… 1 message queued"


def test_the_task_list_shows_what_is_done_in_progress_and_left(conversation: Conversation) -> None:
    todos = (
        Todo(content="Read", active_form="Reading", status="completed"),
        Todo(content="Write <b>", active_form="Writing <b>", status="in_progress"),
        Todo(content="Check", active_form="Checking"),
    )
    record(conversation, TodosUpdated(todos=()), TodosUpdated(todos=todos))

    reader = read(panel(conversation, "todos"))

    assert "1 of 3 done" in reader.text
    assert "Writing <b>" in reader.text
    labels = [attrs["aria-label"] for _tag, attrs in reader.tags if "aria-label" in attrs]
    assert labels == ["done:", "in progress:", "to do:"]


def test_an_empty_task_list_leaves_no_panel(conversation: Conversation) -> None:
    record(conversation, TodosUpdated(todos=(Todo(content="a", active_form="b"),)))
    record(conversation, TodosUpdated(todos=()))

    assert panel(conversation, "todos") == ""


def test_the_title_is_plain_text(conversation: Conversation) -> None:
    assert panel(conversation, "title") == "Untitled"
    record(conversation, SessionUpdated(title="A < B"))

    assert panel(conversation, "title") == "A < B"
    assert frames.changes(conversation, 0).panels == {"title": "A < B"}


def test_the_switches_say_how_each_stands_and_only_when_one_was_turned(
    conversation: Conversation,
) -> None:
    off = {"teams": False, "tracing": False, "approval": False, "plan_mode": False, "memory": True}
    record(conversation, SessionUpdated(title="No switch"))
    assert "features" not in frames.changes(conversation, 0).panels
    assert frames.page(conversation).panels["features"] == off

    record(conversation, SessionUpdated(features={"plan_mode": True}))
    assert frames.changes(conversation, 1).panels == {"features": {**off, "plan_mode": True}}


# --- meter ----------------------------------------------------------------------------------------


def spend(conversation: Conversation, cost: str | None, **tokens: int) -> None:
    Usage.objects.create(
        organisation=conversation.organisation,
        conversation=conversation,
        model_request_id=f"r{Usage.objects.count()}",
        purpose="main",
        provider="p",
        model="m",
        cost=None if cost is None else Decimal(cost),
        **tokens,
    )


def test_the_meter_adds_up_what_was_spent_here_and_only_here(
    conversation: Conversation, mallory, elsewhere
) -> None:
    spend(
        conversation,
        "0.5",
        input_tokens=1_000,
        output_tokens=20,
        cache_creation_input_tokens=500,
        cache_read_input_tokens=30_000,
    )
    spend(conversation, "0.75", input_tokens=1, output_tokens=1)
    spend(make_conversation(mallory, elsewhere), "100", input_tokens=999_999)

    text = read(panel(conversation, "meter")).text

    assert "Fresh input1,501" in text
    assert "Cached input30,000" in text
    assert "Output21" in text
    assert "Cost (estimated)$1.25" in text


@pytest.mark.parametrize(
    ("costs", "said"),
    [
        ([], "nothing spent yet"),
        (["0"], "$0.00"),
        ([None], "unknown"),
        (["0", None], "unknown"),
        (["0.25", None], "unknown (at least $0.25)"),
    ],
)
def test_an_unknown_price_is_said_to_be_unknown(
    conversation: Conversation, costs: list[str | None], said: str
) -> None:
    for cost in costs:
        spend(conversation, cost)

    assert read(panel(conversation, "meter")).text.endswith(f"Cost (estimated){said}")


@pytest.mark.parametrize(
    ("tokens", "said", "warned"),
    [(0, "about 0%", False), (159_000, "about 80%", True), (50_000, "about 25%", False),
     (900_000, "about 100%", True)],
)  # fmt: skip
def test_the_context_s_fill_is_an_estimate_and_warns_in_time(
    conversation: Conversation, tokens: int, said: str, warned: bool
) -> None:
    Conversation.objects.filter(pk=conversation.pk).update(context_tokens=tokens)

    text = read(panel(conversation, "meter")).text

    assert said in text
    assert ("Nearly full" in text) == warned


@pytest.mark.parametrize(
    ("dollars", "shown"),
    [("0", "$0.00"), ("0.00000001", "< $0.0001"), ("0.0031", "$0.0031"), ("1.2", "$1.20"),
     ("1234.5", "$1,234.50")],
)  # fmt: skip
def test_money_is_never_rounded_to_nothing(dollars: str, shown: str) -> None:
    assert money(Decimal(dollars)) == shown

"""Where results of schedules go beside the conversation: each once, to whom may have it, and said when
not."""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.conf import LazySettings
from django.core import mail
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from accounts.actions.service_accounts import create_service_account
from accounts.models import Membership, Organisation, User
from conversations.actions.redacting import redact_content
from conversations.actions.sharing import unshare_conversation
from conversations.log import append
from conversations.models import Conversation, Event, Removal, Share, StoredFile
from conversations.storedbytes import path_of
from harness.content import Text
from harness.errors import Conflict, Invalid, NotFound
from harness.events import AgentMessage, EndTurn, InputTaken, SessionStatusIdle
from harness.history import Entry
from schedules import ending, results, running
from schedules.actions.orders import change_order
from schedules.actions.results import send_again
from schedules.drafts import draft_of
from schedules.models import Delivery, OrderRun, StandingOrder
from tests.cast import ClientOf, join, make_user

from .conftest import MakeOrder, smtp_refuses

NINE = datetime(2028, 5, 1, 9, 0, tzinfo=UTC)


@pytest.fixture
def mailing(settings: LazySettings) -> None:
    settings.AGENTSITE_EMAIL_CONFIGURED = True
    settings.AGENTSITE_BASE_URL = "https://agents.example.org"


def ran(order: StandingOrder, answer: str = "Two prices rose.", at: datetime = NINE) -> OrderRun:
    """A run of it that has begun, answered and come to rest."""
    running.take_due(at)
    running.begin_queued(at)
    run = order.runs.latest("pk")
    assert run.conversation is not None
    waiting = run.conversation.events.filter(type="user.message", processed_at=None)
    events: list[InputTaken | AgentMessage | SessionStatusIdle] = [
        InputTaken(event_ids=tuple(waiting.values_list("uid", flat=True))),
        AgentMessage(content=(Text(text=answer),), model_request_id="none"),
        SessionStatusIdle(stop_reason=EndTurn()),
    ]
    append(run.conversation.pk, [Entry.of(event) for event in events])
    ending.settle_ends(at)
    return run


def told(run: OrderRun) -> list[tuple[str, str, str, str]]:
    rows = run.deliveries.order_by("pk")
    return [(row.way, row.user.username, row.state, row.why) for row in rows]


def test_a_result_is_mailed_to_the_owner_and_to_readers_once(
    mailing: None, make_order: MakeOrder, alice: User, bob: User
) -> None:
    order = make_order(mails_owner=True, readers=(bob.uid,))
    run = ran(order)
    for _look in range(3):
        ending.settle(run.pk)
        results.send_waiting()

    assert told(run) == [("mail", "alice", "sent", ""), ("mail", "bob", "sent", "")]
    assert [message.to for message in mail.outbox] == [[alice.email], [bob.email]]
    message = mail.outbox[1]
    assert message.subject == "[Agentsite] Morning look: ended well"
    assert "Two prices rose." in message.body
    assert run.conversation is not None
    assert f"https://agents.example.org{run.conversation.get_absolute_url()}" in message.body
    assert message.extra_headers["Auto-Submitted"] == "auto-generated"
    assert Conversation.objects.visible_to(bob).filter(pk=run.conversation.pk).exists()


def test_a_mail_is_not_sent_twice_by_a_process_that_died_while_sending_it(
    mailing: None, make_order: MakeOrder, alice: User
) -> None:
    run = ran(make_order(mails_owner=True))
    Delivery.objects.update(state="sending", changed_at=timezone.now())
    results.send_waiting()
    assert told(run) == [("mail", "alice", "sending", "")]

    results.send_waiting(timezone.now() + timedelta(minutes=11))

    assert told(run) == [("mail", "alice", "failed", "unknown")]
    assert mail.outbox == []
    send_again(actor=alice, delivery=run.deliveries.get())
    results.send_waiting()
    assert told(run) == [("mail", "alice", "sent", "")]


def test_a_mail_server_that_refuses_is_asked_five_times_ever_more_seldom_and_then_told_of(
    mailing: None, make_order: MakeOrder, settings: LazySettings
) -> None:
    run = ran(make_order(mails_owner=True))
    now = timezone.now()
    tries = []
    with smtp_refuses(settings):
        for minutes in (0, 0, 1.1, 1.1, 5.2, 21, 21, 62, 62):
            # A try is noted by the real clock, so each pause is told from the beginning.
            results.send_waiting(now + timedelta(minutes=minutes))
            tries.append(run.deliveries.get().tries)
    assert tries == [1, 1, 2, 2, 3, 4, 4, 5, 5]
    assert told(run) == [("mail", "alice", "failed", "refused")]


def test_a_mail_server_that_was_away_for_a_while_has_the_result_after_it(
    mailing: None, make_order: MakeOrder, settings: LazySettings
) -> None:
    backend = settings.EMAIL_BACKEND
    run = ran(make_order(mails_owner=True))
    with smtp_refuses(settings):
        for _look in range(7):
            results.send_waiting()
    settings.EMAIL_BACKEND = backend
    results.send_waiting(timezone.now() + timedelta(minutes=2))
    assert told(run) == [("mail", "alice", "sent", "")]


def test_without_a_mail_server_it_says_so_and_the_rest_goes_out(make_order: MakeOrder) -> None:
    run = ran(make_order(mails_owner=True, result_files=3))
    results.send_waiting()
    assert told(run) == [("mail", "alice", "left_out", "no_mail"), ("file", "alice", "sent", "")]
    assert mail.outbox == []


def test_who_may_have_it_is_asked_when_it_goes_out(
    mailing: None, make_order: MakeOrder, alice: User, bob: User, acme: Organisation
) -> None:
    order = make_order(mails_owner=True, readers=(bob.uid,))
    run = ran(order)
    assert run.conversation is not None
    share = Share.objects.get(conversation=run.conversation, user=bob)
    unshare_conversation(actor=alice, conversation=run.conversation, share_uid=share.uid)
    results.send_waiting()
    assert told(run)[1] == ("mail", "bob", "left_out", "rights")

    later = ran(order, at=NINE + timedelta(days=1))
    Membership.objects.filter(user=bob, organisation=acme).delete()
    User.objects.filter(pk=alice.pk).update(email="")
    results.send_waiting()
    assert told(later) == [
        ("mail", "alice", "left_out", "no_address"),
        ("mail", "bob", "left_out", "rights"),
    ]
    assert len(mail.outbox) == 1


def test_readers_and_approvers_who_left_are_passed_over_and_the_run_begins(
    mailing: None, make_order: MakeOrder, bob: User, acme: Organisation
) -> None:
    carol = make_user("carol")
    join(carol, acme)
    order = make_order(readers=(bob.uid, carol.uid), approvers=(bob.uid,))
    Membership.objects.filter(user=bob, organisation=acme).delete()
    run = ran(order)
    results.send_waiting()
    assert run.state == OrderRun.State.STARTED
    shares = Share.objects.filter(conversation=run.conversation)
    assert [share.user for share in shares] == [carol]
    assert told(run) == [("mail", "bob", "left_out", "rights"), ("mail", "carol", "sent", "")]

    changed = change_order(
        actor=order.owner, order=order, draft=replace(draft_of(order), name="Evening look")
    )
    assert (list(changed.readers.all()), list(changed.approvers.all())) == ([carol], [])


def test_a_service_account_is_neither_reader_nor_approver(
    make_order: MakeOrder, alice: User, acme: Organisation, client_of: ClientOf
) -> None:
    robot = create_service_account(actor=alice, organisation=acme, name="robot")
    for field in ("readers", "approvers"):
        with pytest.raises(Invalid) as refused:
            make_order(**{field: (robot.uid,)})
        assert refused.value.field == f"{field}[0]"
    page = client_of(alice).get(reverse("schedules:new"))
    assert robot.username not in page.content.decode()


def test_an_owner_who_left_gets_nothing_and_nothing_is_stored(
    mailing: None, make_order: MakeOrder, alice: User
) -> None:
    run = ran(make_order(mails_owner=True, result_files=1))
    Membership.objects.filter(user=alice).delete()
    results.send_waiting()
    assert {row[2:] for row in told(run)} == {("left_out", "rights")}
    assert not StoredFile.objects.exists()


def test_the_link_in_a_mail_stops_the_mails_of_that_schedule_alone(
    mailing: None, make_order: MakeOrder, alice: User, bob: User
) -> None:
    order, other = make_order(readers=(bob.uid,)), make_order(name="Other", readers=(bob.uid,))
    ran(order)
    results.send_waiting()
    link = mail.outbox[0].extra_headers["List-Unsubscribe"].strip("<>")
    path = link.removeprefix("https://agents.example.org")
    assert Client().get(path).status_code == 200
    assert order.readers.count() == 1, "following a link changes nothing"
    Client().post(path)
    assert (order.readers.count(), other.readers.count()) == (0, 1)


def test_answers_of_the_last_runs_are_files_that_their_owner_can_fetch(
    make_order: MakeOrder, alice: User, bob: User, client_of: ClientOf
) -> None:
    order = make_order(result_files=2, name="Prices / daily")
    for day in range(3):
        run = ran(order, f"Prices of day {day}.", NINE + timedelta(days=day))
        results.send_waiting()
        results.send_waiting()

    files = StoredFile.objects.visible_to(alice).order_by("pk")
    assert [file.filename for file in files] == [
        "Prices - daily 2028-05-02 0900.md",
        "Prices - daily 2028-05-03 0900.md",
    ]
    at = {"uid": order.uid, "delivery_uid": run.deliveries.get().uid}
    answer = client_of(alice).get(reverse("schedules:result", kwargs=at))
    assert b"".join(answer) == b"Prices of day 2."
    assert "attachment" in answer["Content-Disposition"]
    assert client_of(bob).get(reverse("schedules:result", kwargs=at)).status_code == 404
    page = client_of(alice).get(order.get_absolute_url()).content.decode()
    assert "Prices - daily 2028-05-03 0900.md" in page


def test_a_file_for_which_there_is_no_room_is_told_of_and_stored_when_there_is(
    make_order: MakeOrder, alice: User, mallory: User, settings: LazySettings, client_of: ClientOf
) -> None:
    settings.AGENTSITE_FILES_BYTES = 3
    run = ran(make_order(result_files=1))
    results.send_waiting()
    assert told(run) == [("file", "alice", "failed", "room")]
    settings.AGENTSITE_FILES_BYTES = 10**6
    delivery = run.deliveries.get()
    with pytest.raises(NotFound):
        send_again(actor=mallory, delivery=delivery)
    at = {"uid": run.order.uid, "delivery_uid": delivery.uid}
    assert client_of(mallory).post(reverse("schedules:result", kwargs=at)).status_code == 404
    client_of(alice).post(reverse("schedules:result", kwargs=at))
    results.send_waiting()
    assert told(run) == [("file", "alice", "sent", "")]
    with pytest.raises(Conflict):
        send_again(actor=alice, delivery=delivery)


def test_an_older_file_stays_where_the_new_one_has_no_room(
    make_order: MakeOrder, settings: LazySettings, django_capture_on_commit_callbacks: Any
) -> None:
    order = make_order(result_files=1)
    ran(order, "Short.")
    results.send_waiting()
    settings.AGENTSITE_FILES_BYTES = 10
    later = ran(order, "A longer answer.", NINE + timedelta(days=1))
    with django_capture_on_commit_callbacks(execute=True):
        results.send_waiting()
    assert told(later) == [("file", "alice", "failed", "room")]
    assert path_of(StoredFile.objects.get().uid).read_text() == "Short."


def test_a_run_that_could_not_begin_is_mailed_to_its_owner_with_the_reason(
    mailing: None, make_order: MakeOrder, bob: User
) -> None:
    order = make_order(mails_owner=True, readers=(bob.uid,), result_files=1)
    StandingOrder.objects.filter(pk=order.pk).update(model="gone")
    running.take_due(NINE)
    running.begin_queued(NINE)
    ending.settle_ends(NINE)
    results.send_waiting()
    [message] = mail.outbox
    assert message.subject == "[Agentsite] Morning look: failed"
    assert "It was saved for the model" in message.body
    run = order.runs.get()
    assert told(run)[1] == ("mail", "bob", "left_out", "rights"), "there is nothing he may read"


def test_a_long_answer_is_cut_in_the_mail_and_whole_in_the_file(
    mailing: None, make_order: MakeOrder
) -> None:
    run = ran(make_order(mails_owner=True, result_files=1), "x" * (results.MOST_MAILED + 5))
    results.send_waiting()
    assert "The answer is longer" in mail.outbox[0].body
    assert StoredFile.objects.get().size == results.MOST_MAILED + 5
    assert run.deliveries.filter(state="sent").count() == 2


def test_what_is_taken_out_of_an_answer_goes_with_its_file_and_is_in_no_mail_that_waits(
    mailing: None, make_order: MakeOrder, alice: User
) -> None:
    order = make_order(result_files=2, mails_owner=True)
    first = ran(order, "The word is swordfish.")
    results.send_waiting()
    later = ran(order, "It is swordfish still.", NINE + timedelta(days=1))
    for run in (first, later):
        assert run.conversation is not None
        said = Event.objects.get(conversation=run.conversation, type="agent.message")
        redact_content(actor=alice, conversation=run.conversation, event_uid=said.uid)
    results.send_waiting()

    assert "swordfish" in mail.outbox[0].body, "what was sent is sent"
    assert "swordfish" not in mail.outbox[1].body
    texts = [path_of(file.uid).read_text() for file in StoredFile.objects.all()]
    assert len(texts) == 1
    assert "swordfish" not in texts[0]


def test_who_stores_an_answer_and_who_takes_it_out_hold_the_run_first(
    make_order: MakeOrder, alice: User
) -> None:
    """SQLite knows no locks of rows; that each asks for the run first is what keeps them apart elsewhere."""
    run = ran(make_order(result_files=1), "The word is swordfish.")
    with CaptureQueriesContext(connection) as storing:
        results.send_waiting()
    assert run.conversation is not None
    said = Event.objects.get(conversation=run.conversation, type="agent.message")
    with CaptureQueriesContext(connection) as taking_out:
        redact_content(actor=alice, conversation=run.conversation, event_uid=said.uid)
    stored = [each["sql"] for each in storing.captured_queries]
    first = next(n for n, sql in enumerate(stored) if 'FROM "schedules_orderrun"' in sql)
    assert first < next(n for n, sql in enumerate(stored) if 'FROM "conversations_event"' in sql)
    gone = [each["sql"] for each in taking_out.captured_queries]
    first = next(
        n for n, sql in enumerate(gone) if 'FROM "schedules_orderrun"' in sql and " ASC" in sql
    )
    assert first < next(n for n, sql in enumerate(gone) if 'FROM "schedules_delivery"' in sql)


@pytest.mark.django_db(transaction=True)
def test_while_an_answer_is_stored_a_note_says_what_goes_if_the_process_dies(
    make_order: MakeOrder, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Otherwise the job that the run's end asks for may be first, and two of them note what they store.
    monkeypatch.setattr(results, "dispatch", lambda name, **given: None)
    ran(make_order(result_files=1))
    noted: list[str] = []

    def look() -> None:
        noted.extend(Removal.objects.values_list("uid", flat=True))
        connection.close()

    def fsync(_file: int) -> None:
        looking = threading.Thread(target=look)
        looking.start()
        looking.join()

    monkeypatch.setattr(os, "fsync", fsync)
    results.send_waiting()
    assert noted == [StoredFile.objects.get().uid]
    assert not Removal.objects.exists()


def test_nobody_outside_is_a_reader_and_no_number_of_files_is_too_large(
    make_order: MakeOrder, mallory: User, alice: User
) -> None:
    for fields, field in (
        ({"readers": (mallory.uid,)}, "readers[0]"),
        ({"readers": (alice.uid,)}, "readers[0]"),
        ({"result_files": 1_001}, "result_files"),
        ({"mail_from": ("anna@example.org",)}, "mail_from"),
    ):
        with pytest.raises(Invalid) as refusal:
            make_order(**fields)
        assert refusal.value.field == field

"""Mails about what waits for a person: once, after her own time, never of what she has seen, and never
with what the call holds."""

from __future__ import annotations

import inspect
import json
import socket
from datetime import UTC, datetime, time, timedelta
from importlib import import_module

import pytest
from django.core import mail
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.models import Membership, Role
from approvals.actions.approvals import decide_approval, note_seen
from approvals.models import Approval
from conversations.log import append
from conversations.models import Conversation, Event
from harness.errors import Invalid
from harness.events import AgentCustomToolUse, RequiresAction, SessionStatusIdle
from harness.history import Entry
from harness.ids import new_conversation_id
from notices import waiting
from notices.actions.wishes import set_notices
from notices.announcing import announce_waiting
from notices.mailing import mail_waiting
from notices.models import NoticeWish, Seen, WaitNotice
from notices.stopping import stop_link
from notices.waiting import due, in_turn
from tests.cast import join, make_user
from tests.notices.conftest import SITE, ask, end
from webhooks.actions.endpoints import create_endpoint
from webhooks.models import WebhookDelivery

pytestmark = pytest.mark.django_db

EVENING = datetime(2028, 1, 10, 22, 30, tzinfo=UTC)
"""Half past eleven in Berlin."""


@pytest.fixture(autouse=True)
def mails_are_sent(settings):
    settings.AGENTSITE_EMAIL_CONFIGURED = True
    settings.AGENTSITE_BASE_URL = SITE


def recipients() -> list[str]:
    return [address for one in mail.outbox for address in one.to]


def test_what_waits_for_more_than_five_minutes_is_mailed_once_without_its_content(
    conversation, alice
):
    ask(conversation)
    assert mail_waiting() == 1
    (message,) = mail.outbox
    assert message.to == ["alice@example.org"]
    assert "write_file" in message.body
    assert "Quarterly report" in message.body
    assert f"{SITE}/c/{conversation.uid}/#u-" in message.body
    assert "secret" not in f"{message.body}{message.subject}"
    assert message.extra_headers["Auto-Submitted"] == "auto-generated"
    assert mail_waiting() == 0
    assert len(mail.outbox) == 1


def test_what_waits_for_less_is_not_mailed(conversation):
    ask(conversation, minutes=4.5)
    assert mail_waiting() == 0


def test_several_things_come_in_one_mail_and_many_are_counted(conversation):
    for _ in range(23):
        ask(conversation)
    # A later rest makes the earlier questions needless; here they all wait.
    Approval.objects.update(state=Approval.State.PENDING)
    assert mail_waiting() == 1
    (message,) = mail.outbox
    assert "23 things wait" in message.subject
    assert message.body.count("- write_file") == 20
    assert "and 3 more" in message.body


def test_what_was_answered_meanwhile_is_not_mailed(conversation, alice):
    approval = ask(conversation)
    decide_approval(
        actor=alice,
        approval=approval,
        verdict="deny",
        input_hash=approval.effective_sha256,
        seen_round=approval.round,
    )
    assert mail_waiting() == 0


def test_what_she_has_opened_is_not_mailed(conversation, alice, client_of):
    ask(conversation)
    assert client_of(alice).get(conversation.get_absolute_url()).status_code == 200
    assert mail_waiting() == 0


def test_having_opened_it_before_it_was_asked_does_not_count(conversation, alice, client_of):
    ask(conversation)
    client_of(alice).get(conversation.get_absolute_url())
    Seen.objects.update(seen_at=timezone.now() - timedelta(hours=1))
    assert mail_waiting() == 1


def test_having_seen_it_in_the_queue_counts(conversation, alice):
    note_seen(actor=alice, approval=ask(conversation))
    assert mail_waiting() == 0


def test_a_conversation_that_does_not_wait_leaves_no_trace_of_being_opened(
    conversation, alice, client_of
):
    client_of(alice).get(conversation.get_absolute_url())
    assert not Seen.objects.exists()


def test_who_wants_no_mails_or_later_gets_none_or_later(conversation, alice):
    set_notices(actor=alice, waits_by_mail="never")
    ask(conversation)
    assert mail_waiting() == 0
    set_notices(actor=alice, mail_after_minutes=10)
    assert mail_waiting() == 0
    set_notices(actor=alice, mail_after_minutes=6)
    assert mail_waiting() == 1


@pytest.mark.parametrize("minutes", [0, 1441])
def test_minutes_out_of_range_are_refused(alice, minutes):
    with pytest.raises(Invalid) as refusal:
        set_notices(actor=alice, mail_after_minutes=minutes)
    assert refusal.value.field == "mail_after_minutes"


def test_who_may_not_answer_is_not_asked_but_those_who_may(conversation, acme, alice, bob):
    Membership.objects.filter(user=alice).update(role=Role.MEMBER)
    rita = make_user("rita")
    join(rita, acme, Role.REVIEWER)
    approval = ask(conversation, reviewers_only=True)
    assert mail_waiting() == 1
    assert recipients() == ["rita@example.org"]
    assert f"{SITE}{reverse('approvals:approval', args=[approval.uid])}" in mail.outbox[0].body


def test_after_the_first_of_two_consents_the_others_are_asked(conversation, acme, alice, bob):
    rita = make_user("rita")
    join(rita, acme, Role.REVIEWER)
    approval = ask(conversation, two_people=True)
    decide_approval(
        actor=alice,
        approval=approval,
        verdict="approve",
        input_hash=approval.effective_sha256,
        seen_round=approval.round,
    )
    mail_waiting()
    assert recipients() == ["rita@example.org"]


def test_whom_it_was_handed_to_is_asked(conversation, acme, alice):
    rita = make_user("rita")
    join(rita, acme, Role.REVIEWER)
    approval = ask(conversation)
    approval.assignee = rita
    approval.save()
    mail_waiting()
    assert recipients() == ["rita@example.org"]


def test_mallory_and_who_left_are_never_mailed(conversation, acme, alice, mallory):
    approval = ask(conversation)
    approval.assignee = mallory
    approval.save()
    Membership.objects.filter(user=alice, organisation=acme).delete()
    assert due(timezone.now()) == {}


@pytest.mark.parametrize("field", ["email", "is_active"])
def test_who_cannot_be_reached_is_not_mailed(conversation, alice, field):
    setattr(alice, field, "" if field == "email" else False)
    alice.save()
    ask(conversation)
    assert mail_waiting() == 0
    assert not WaitNotice.objects.exists()


def test_without_a_mail_server_or_an_address_of_the_site_nothing_is_sent(conversation, settings):
    ask(conversation)
    settings.AGENTSITE_BASE_URL = ""
    assert mail_waiting() == 0
    settings.AGENTSITE_BASE_URL = SITE
    settings.AGENTSITE_EMAIL_CONFIGURED = False
    assert mail_waiting() == 0
    assert not WaitNotice.objects.exists()


def test_a_question_of_an_agent_is_mailed_and_a_programs_tool_is_not(conversation):
    calls = [
        Entry.of(AgentCustomToolUse(name=name, input={"questions": "secret"}))
        for name in ("ask_user", "get_weather")
    ]
    rest = SessionStatusIdle(stop_reason=RequiresAction(event_ids=tuple(c.uid for c in calls)))
    append(conversation.pk, [*calls, Entry.of(rest)])
    assert mail_waiting() == 0
    before = timezone.now() - timedelta(minutes=6)
    Event.objects.update(created_at=before)
    Conversation.objects.update(active_at=before)
    assert mail_waiting() == 1
    assert "- ask_user" in mail.outbox[0].body
    assert "get_weather" not in mail.outbox[0].body
    assert "secret" not in mail.outbox[0].body
    assert mail_waiting() == 0


def test_however_much_waits_for_one_person_others_are_told_of_theirs(conversation, bob):
    """What is looked at has an end: whoever fills it with hers must not be the only one."""
    older = timezone.now() - timedelta(hours=1)
    mine = [conversation.pk]
    for owner in (conversation.owner, conversation.owner, bob):
        conversation.pk, conversation.uid, conversation.owner = None, new_conversation_id(), owner
        conversation.save(force_insert=True)
        mine.append(conversation.pk)
    Conversation.objects.exclude(owner=bob).update(active_at=older)
    rows = Conversation.objects.filter(pk__in=mine)
    first = list(in_turn(rows, whose="owner", since="active_at", most=2))
    assert [each.pk for each in first] == [mine[0], mine[-1]]
    last = list(in_turn(rows, whose="owner", since="active_at", most=2, newest=True))
    assert [each.pk for each in last] == [mine[-1], mine[-2]]


def test_whoever_offers_what_waits_takes_it_in_turn():
    modules = {offers.__module__ for offers in waiting._waiting}
    assert modules >= {"notices.questions", "approvals.notices", "pipelines.waiting", "chat.ended"}
    assert not [name for name in modules if "AT_A_TIME]" in source_of(name)]
    assert not [name for name in modules if "in_turn(" not in source_of(name)]


def source_of(module: str) -> str:
    return inspect.getsource(import_module(module))


def test_a_call_that_asks_again_is_news_again(conversation):
    approval = ask(conversation)
    assert mail_waiting() == 1
    approval.round = 2
    approval.save()
    assert mail_waiting() == 1


def test_a_mail_that_the_server_refuses_is_tried_again_and_given_up_at_last(conversation, settings):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # bound and not listening: every connection is refused
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", closed.getsockname()[1]
        ask(conversation)
        assert mail_waiting() == 0
        assert WaitNotice.objects.get().mailed_at is None
        settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
        assert mail_waiting() == 1
        assert WaitNotice.objects.get().tries == 2
        WaitNotice.objects.update(batch="", tries=5)
        assert mail_waiting() == 0


WISHES = {
    "waits_by_mail": "always",
    "waits_by_push": "never",
    "done_by_mail": "away",
    "done_by_push": "away",
    "brief_by_push": "always",
    "mail_after_minutes": "30",
    "tells_contents": "on",
    "quiet_from": "22:00",
    "quiet_until": "07:30",
    "timezone": "Europe/Berlin",
    "waits_by_webhook": "away",
    "done_by_webhook": "never",
}


def test_the_settings_page_keeps_what_she_wants(client_of, alice):
    client = client_of(alice)
    address = reverse("notices:settings")
    assert client.get(address).status_code == 200
    assert client.post(address, WISHES).status_code == 302
    kept = NoticeWish.objects.get(user=alice)
    shown = client.get(address).content.decode()
    for field, value in WISHES.items():
        if field not in {"tells_contents", "quiet_from", "quiet_until"}:
            assert str(getattr(kept, field)) == value
    assert 'value="22:00"' in shown
    assert 'value="07:30"' in shown


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("mail_after_minutes", "5000", "Give a number from 1 to 1440."),
        ("timezone", "Mars/Olympus", "Give an IANA name"),
        ("quiet_until", "", "Give both times, or none."),
        ("quiet_from", "", "Give both times, or none."),
        ("brief_by_push", "away", "Choose from the list."),
        ("waits_by_push", "sometimes", "Choose from the list."),
    ],
)
def test_what_cannot_be_is_said_and_changes_nothing(client_of, alice, field, value, words):
    answer = client_of(alice).post(reverse("notices:settings"), WISHES | {field: value})
    assert answer.status_code == 422
    page = answer.content.decode()
    assert words in page
    assert "data-guess-zone" not in page, "a guess takes the place of what she typed"
    assert not NoticeWish.objects.exists()


def test_who_wants_to_be_told_always_is_also_of_what_she_has_opened(conversation, alice, client_of):
    set_notices(actor=alice, waits_by_mail="always")
    ask(conversation)
    client_of(alice).get(conversation.get_absolute_url())
    assert mail_waiting() == 1


def test_in_quiet_hours_nobody_is_mailed_and_behind_them_once_of_all(conversation, alice):
    set_notices(actor=alice, quiet_from=time(22), quiet_until=time(7), timezone="Europe/Berlin")
    for _ in range(2):
        ask(conversation)
    Approval.objects.update(state=Approval.State.PENDING, asked_at=EVENING)
    assert due(EVENING + timedelta(hours=2)) == {}
    (told,) = due(datetime(2028, 1, 11, 6, 0, tzinfo=UTC)).values()  # seven in Berlin
    assert len(told) == 2


def test_what_has_ended_is_mailed_to_who_wants_it(conversation, alice):
    end(conversation)
    assert mail_waiting() == 0
    set_notices(actor=alice, done_by_mail="away")
    assert mail_waiting() == 1
    (message,) = mail.outbox
    assert message.subject == "[Agentsite] A conversation has ended"
    assert "Quarterly report (done" in message.body
    assert f"{SITE}{conversation.get_absolute_url()}" in message.body
    assert mail_waiting() == 0


def stop_path(message) -> str:
    link = str(message.extra_headers["List-Unsubscribe"]).strip("<>")
    assert link.startswith(SITE)
    assert link in message.body
    return link.removeprefix(SITE)


def test_the_link_in_a_mail_stops_mails_like_it_only_when_it_is_posted(conversation, alice, client):
    set_notices(actor=alice, done_by_mail="away", mail_after_minutes=4)
    ask(conversation)
    mail_waiting()
    path = stop_path(mail.outbox[0])
    assert mail.outbox[0].extra_headers["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    assert "Stop these mails" in client.get(path).content.decode()
    assert NoticeWish.objects.get().waits_by_mail == "away"
    strict = Client(enforce_csrf_checks=True)
    answer = strict.post(path, {"List-Unsubscribe": "One-Click"})
    assert answer.status_code == 200
    kept = NoticeWish.objects.get()
    assert (kept.waits_by_mail, kept.done_by_mail, kept.mail_after_minutes) == ("never", "away", 4)


def test_a_link_that_was_changed_stops_nothing(client, alice, mallory):
    path = stop_link(alice, "waits").removeprefix(SITE)
    forged = [path.replace(":", "x", 1), "/notifications/stop/WzFd:x:y/", path[:-6] + "/"]
    for each in forged:
        assert client.post(each).status_code == 404
    assert not NoticeWish.objects.exists()


# --- by webhook -----------------------------------------------------------------------------------


@pytest.fixture
def endpoint(alice, acme):
    return create_endpoint(
        actor=alice,
        organisation=acme,
        url="https://hooks.example.invalid/",
        event_types=["x.notice.waiting", "x.notice.ended"],
    )


def announced() -> list[tuple[str, str, str]]:
    bodies = [json.loads(row.body)["data"] for row in WebhookDelivery.objects.order_by("pk")]
    return [(data["type"], data["id"], data["user_id"]) for data in bodies]


def test_endpoints_are_told_once_that_something_waits_for_who_wants_that(
    conversation, alice, endpoint
):
    ask(conversation)
    assert announce_waiting() == 0, "never, unless she says so"
    set_notices(actor=alice, waits_by_webhook="away", done_by_webhook="always")
    assert announce_waiting() == 1
    assert announce_waiting() == 0
    assert announced() == [("x.notice.waiting", conversation.uid, alice.uid)]
    assert "secret" not in WebhookDelivery.objects.get().body
    assert "Quarterly" not in WebhookDelivery.objects.get().body


def test_away_means_that_she_has_not_seen_it_and_always_that_she_may_have(
    conversation, alice, endpoint, client_of
):
    set_notices(actor=alice, waits_by_webhook="away")
    ask(conversation)
    client_of(alice).get(conversation.get_absolute_url())
    assert announce_waiting() == 0
    set_notices(actor=alice, waits_by_webhook="always")
    assert announce_waiting() == 1


def test_in_quiet_hours_no_endpoint_is_told_either(conversation, alice, endpoint):
    now = timezone.now()
    begin, ends = (now - timedelta(hours=1)).time(), (now + timedelta(hours=1)).time()
    set_notices(actor=alice, waits_by_webhook="always", quiet_from=begin, quiet_until=ends)
    ask(conversation)
    assert announce_waiting(now) == 0
    assert announce_waiting(now + timedelta(minutes=61)) == 1


def test_who_has_no_address_is_told_by_webhook_and_mallory_of_nothing(
    conversation, alice, bob, mallory, endpoint
):
    for person in (alice, bob, mallory):
        set_notices(actor=person, waits_by_webhook="always", done_by_webhook="always")
    type(alice).objects.update(email="")
    ask(conversation)
    assert announce_waiting() == 1
    end(conversation)
    assert announce_waiting() == 1
    assert announced() == [
        ("x.notice.waiting", conversation.uid, alice.uid),
        ("x.notice.ended", conversation.uid, alice.uid),
    ]


def test_both_pages_that_say_what_one_is_told_of_lead_to_each_other(client_of, alice):
    of_browser = client_of(alice).get(reverse("conversations:settings")).content.decode()
    section = of_browser[of_browser.index('id="notices-title"') :].partition("</section>")[0]
    assert f'href="{reverse("notices:settings")}"' in section
    of_mail = client_of(alice).get(reverse("notices:settings")).content.decode()
    assert f'href="{reverse("conversations:settings")}#notices-title"' in of_mail

"""Mails about what waits for a person: once, after her own time, never of what she has seen, and never
with what the call holds."""

from __future__ import annotations

import socket
from datetime import timedelta

import pytest
from django.core import mail
from django.urls import reverse
from django.utils import timezone

from accounts.models import Membership, Role
from approvals.actions.approvals import decide_approval, note_seen
from approvals.models import Approval
from conversations.actions.preferences import set_mails
from conversations.log import append
from conversations.models import Conversation, Event, Preference
from harness.errors import Invalid
from harness.events import (
    AgentCustomToolUse,
    AgentToolUse,
    RequiresAction,
    SessionStatusIdle,
)
from harness.history import Entry
from harness.rules import AskTerms
from notices.mailing import mail_waiting
from notices.models import Seen, WaitNotice
from notices.waiting import due
from tests.cast import join, make_user

pytestmark = pytest.mark.django_db

SITE = "https://agents.example.org"


@pytest.fixture(autouse=True)
def mails_are_sent(settings):
    settings.AGENTSITE_EMAIL_CONFIGURED = True
    settings.AGENTSITE_BASE_URL = SITE


@pytest.fixture
def conversation(converse, alice):
    made, _script = converse()
    made.title = "Quarterly report"
    made.save(update_fields=["title"])
    return made


def ask(conversation, *, minutes: float = 6, **terms) -> Approval:
    """A call that has waited for so long."""
    call = Entry.of(
        AgentToolUse(
            name="write_file",
            input={"path": "/secret/place", "content": "secret"},
            evaluated_permission="ask",
            terms=AskTerms(**terms),
            reason="the secret rule",
        )
    )
    rest = SessionStatusIdle(stop_reason=RequiresAction(event_ids=(call.uid,)))
    append(conversation.pk, [call, Entry.of(rest)])
    Approval.objects.filter(call_uid=call.uid).update(
        asked_at=timezone.now() - timedelta(minutes=minutes)
    )
    return Approval.objects.get(call_uid=call.uid)


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
        actor=alice, approval=approval, verdict="deny", input_hash=approval.effective_sha256
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
    set_mails(actor=alice, enabled=False, after_minutes=5)
    ask(conversation)
    assert mail_waiting() == 0
    set_mails(actor=alice, enabled=True, after_minutes=10)
    assert mail_waiting() == 0
    set_mails(actor=alice, enabled=True, after_minutes=6)
    assert mail_waiting() == 1


@pytest.mark.parametrize("minutes", [0, 1441])
def test_minutes_out_of_range_are_refused(alice, minutes):
    with pytest.raises(Invalid) as refusal:
        set_mails(actor=alice, enabled=True, after_minutes=minutes)
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
        actor=alice, approval=approval, verdict="approve", input_hash=approval.effective_sha256
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


def test_the_settings_page_keeps_the_wish(client_of, alice):
    client = client_of(alice)
    address = reverse("conversations:settings-mails")
    client.post(address, {"mail_after_minutes": "30"})
    kept = Preference.objects.get(user=alice)
    assert (kept.mail_when_waiting, kept.mail_after_minutes) == (False, 30)
    answer = client.post(address, {"mail_when_waiting": "on", "mail_after_minutes": "5000"})
    assert answer.status_code == 422
    assert "Give a number from 1 to 1440." in answer.content.decode()
    # Saving the other form of the page leaves this wish alone.
    client.post(reverse("conversations:settings"), {})
    kept.refresh_from_db()
    assert (kept.mail_when_waiting, kept.mail_after_minutes) == (False, 30)

"""What a brief tells its person, that each due time makes one, and how it reaches her."""

from __future__ import annotations

import json
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.conf import LazySettings
from django.core import mail
from django.core.management import call_command
from django.urls import reverse

from accounts.models import Membership, Organisation, User
from agents.models import AgentVersion
from brief import sending
from brief.actions.wishes import set_brief
from brief.compiling import compile_brief
from brief.models import Brief, BriefWish
from conversations.log import append
from conversations.models import BackgroundCommand, Conversation
from deadletters.models import DeadLetter
from harness.errors import Invalid, NotFound
from harness.events import AgentToolUse, RequiresAction, SessionStatusIdle
from harness.history import Entry
from schedules.models import OrderRun, StandingOrder
from spending.actions.budgets import set_budget
from spending.models import Budget, Usage
from subagents.models import Subagent
from tests.cast import ClientOf, shown
from tests.schedules.conftest import (
    MakeOrder,
    agent,
    draft,
    environment,
    make_agent,
    make_order,
    scripted,
)
from webhooks.actions.endpoints import create_endpoint
from webhooks.models import WebhookDelivery

__all__ = ["agent", "draft", "environment", "make_agent", "make_order", "scripted"]

NOW = datetime(2028, 5, 2, 6, 0, tzinfo=UTC)
"""Eight o'clock in Berlin."""
YESTERDAY = NOW - timedelta(days=1)


@pytest.fixture
def conversation(alice: User, acme: Organisation, make_order: MakeOrder) -> Conversation:
    order = make_order()
    return Conversation.objects.create(
        organisation=acme,
        owner=alice,
        agent_version=order.agent_version,
        environment=order.environment,
        title="Prices",
    )


@pytest.fixture
def mailing(settings: LazySettings) -> None:
    settings.AGENTSITE_EMAIL_CONFIGURED = True
    settings.AGENTSITE_BASE_URL = "https://agents.example.org"


def ran(order: StandingOrder, **columns: Any) -> OrderRun:
    usual = {"state": "succeeded", "trigger": "schedule", "ended_at": NOW - timedelta(hours=1)}
    return OrderRun.objects.create(
        order=order, agent_version=order.agent_version, **(usual | columns)
    )


def wish(alice: User, acme: Organisation, **more: Any) -> BriefWish:
    usual: dict[str, Any] = {
        "is_on": True,
        "at": time(8, 0),
        "zone": "Europe/Berlin",
        "now": YESTERDAY,
    }
    return set_brief(actor=alice, organisation=acme, **(usual | more))


# --- what it tells --------------------------------------------------------------------------------


def test_it_tells_what_ran_what_failed_what_was_left_out_and_what_paused_itself(
    alice: User, acme: Organisation, make_order: MakeOrder, conversation: Conversation
) -> None:
    order = StandingOrder.objects.get()
    ran(order, words="Two prices rose.", conversation=conversation, cost=Decimal("0.25"))
    ran(order, state="failed", error="overloaded", words="The service is busy.")
    ran(order, state="failed", error="stopped")
    ran(order, state="skipped", skip="missed", skipped=4)
    ran(order, state="skipped", skip="missed")
    ran(order, words="Long ago.", ended_at=YESTERDAY)
    paused = make_order(name="Tired")
    StandingOrder.objects.filter(pk=paused.pk).update(
        paused_at=NOW - timedelta(hours=2), pause="failures", pause_words="3 runs failed."
    )

    told = compile_brief(alice, acme, since=YESTERDAY, until=NOW)

    [good] = told.ran
    assert (good.words, good.path) == ("Two prices rose.", conversation.get_absolute_url())
    [bad] = told.failed
    assert (bad.words, bad.wording) == ("The service is busy.", "overloaded")
    assert [(line.name, line.count) for line in told.skipped] == [("Morning look", 5), ("Tired", 1)]
    assert told.skipped[0].wording == "the server was not there at that time"
    assert told.skipped[1].words == "3 runs failed."
    assert told.spent.by_schedules == Decimal("0.25")


def test_it_tells_of_work_in_the_background_and_of_turns_that_were_given_up(
    alice: User, acme: Organisation, conversation: Conversation
) -> None:
    for number, state in enumerate(("completed", "lost", "cancelled")):
        BackgroundCommand.objects.create(
            conversation=conversation,
            call_uid=f"call{number}",
            command=f"make {state}",
            state=state,
            output_path="out",
            timeout_seconds=1,
            host="here",
            boot="1",
            pid=1,
            seen_at=NOW,
            started_at=NOW,
            ended_at=NOW,
        )
    for number, state in enumerate(("completed", "failed")):
        Subagent.objects.create(
            parent=conversation,
            root=conversation,
            call_uid=f"sub{number}",
            kind="general",
            description=f"Look {state}",
            background=True,
            state=state,
            ended_at=NOW,
        )
    DeadLetter.objects.create(
        conversation=conversation,
        organisation=acme,
        code="overloaded",
        cause="transient",
        error_seq=1,
        failed_at=YESTERDAY - timedelta(days=3),
    )

    told = compile_brief(alice, acme, since=YESTERDAY, until=NOW)

    assert [line.name for line in told.ran] == ["Look completed", "make completed"]
    assert [line.name for line in told.failed] == ["Look failed", "make lost", "Prices"]


def test_what_waits_leads_to_the_page_that_asks(
    alice: User, bob: User, acme: Organisation, conversation: Conversation
) -> None:
    call = Entry.of(AgentToolUse(name="bash", input={}, evaluated_permission="ask"))
    rest = SessionStatusIdle(stop_reason=RequiresAction(event_ids=(call.uid,)))
    append(conversation.pk, [call, Entry.of(rest)])
    asking = Conversation.objects.create(
        organisation=acme,
        owner=alice,
        agent_version=conversation.agent_version,
        environment=conversation.environment,
        stop_reason="requires_action",
        title="Which one?",
    )

    waits = compile_brief(alice, acme, since=YESTERDAY, until=NOW).waits

    approval = conversation.approvals.get()
    assert [(line.kind, line.path) for line in waits] == [
        ("approval", reverse("approvals:approval", kwargs={"uid": approval.uid})),
        ("question", asking.get_absolute_url()),
    ]
    assert compile_brief(bob, acme, since=YESTERDAY, until=NOW).waits == ()


def test_it_tells_what_was_spent_and_how_her_budgets_stand(
    alice: User, bob: User, acme: Organisation, conversation: Conversation
) -> None:
    set_budget(
        actor=alice,
        scope=Budget.Scope.ORGANISATION,
        organisation=acme,
        unit="tokens",
        period="total",
        limit=1_000,
    )
    for number, (user, cost) in enumerate(((alice, Decimal(2)), (alice, None), (bob, Decimal(9)))):
        Usage.objects.create(
            organisation=acme,
            user=user,
            charged_to=user,
            model_request_id=str(number),
            purpose="main",
            provider="scripted",
            model="x",
            input_tokens=10,
            cost=cost,
        )
    now = datetime.now(UTC) + timedelta(seconds=1)

    told = compile_brief(alice, acme, since=now - timedelta(days=1), until=now)

    assert (told.spent.cost, told.spent.calls, told.spent.unpriced) == (Decimal(2), 2, 1)
    assert told.spent.tokens == 20
    assert [line.name for line in told.budgets] == ["Acme"]
    assert told.is_empty


def test_it_tells_that_a_schedules_agent_has_a_newer_version(
    alice: User, acme: Organisation, make_order: MakeOrder
) -> None:
    version = make_order().agent_version
    newer = AgentVersion.objects.create(
        agent=version.agent, number=version.number + 1, stored_config=version.stored_config
    )
    version.agent.current = newer
    version.agent.save()

    [line] = compile_brief(alice, acme, since=YESTERDAY, until=NOW).changed

    assert line.code == "newer_version"
    assert line.words.endswith(f"{version.number} → {newer.number}")


# --- once a due time ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("days", "expected"),
    [
        # Clocks in Berlin go forward on Sunday, 26 March 2028, at two.
        ("all", ["25T07", "26T06", "27T06"]),
        ("workdays", ["27T06", "28T06", "29T06"]),
    ],
)
def test_it_is_due_at_her_time_though_clocks_change(
    alice: User, acme: Organisation, days: str, expected: list[str]
) -> None:
    moment = datetime(2028, 3, 24, 12, tzinfo=UTC)
    hers = wish(alice, acme, days=days, now=moment)
    found = []
    for _each in range(3):
        due = sending.next_due(hers, moment)
        assert due is not None
        moment = due
        found.append(f"{due:%dT%H}")

    assert found == expected


def test_a_due_time_makes_one_brief_however_often_one_looks(
    alice: User, acme: Organisation, make_order: MakeOrder, mailing: None
) -> None:
    ran(make_order(), words="All quiet.")
    hers = wish(alice, acme)
    sending.make_due(NOW - timedelta(seconds=1))
    assert not Brief.objects.exists()

    for _look in range(3):
        sending.make_due(NOW)
    # Even if the wish forgot it.
    BriefWish.objects.filter(pk=hers.pk).update(next_at=NOW)
    sending.make_due(NOW)
    for _look in range(2):
        sending.mail_made()

    brief = Brief.objects.get()
    assert (brief.due_at, brief.mail) == (NOW, "sent")
    hers.refresh_from_db()
    assert hers.next_at == NOW + timedelta(days=1)
    [letter] = mail.outbox
    assert letter.to == ["alice@example.org"]
    assert "All quiet." in letter.body
    assert f"https://agents.example.org{brief.get_absolute_url()}" in letter.body
    assert "08:00" in letter.body, "on her clocks"


def test_after_an_outage_one_brief_tells_of_all_that_time(
    alice: User, acme: Organisation, make_order: MakeOrder
) -> None:
    order = make_order()
    wish(alice, acme)
    sending.make_due(NOW)
    ran(order, words="On the second day.", ended_at=NOW + timedelta(days=1, hours=3))

    back = NOW + timedelta(days=3, hours=1)
    sending.make_due(back)

    last = Brief.objects.first()
    assert last is not None
    assert (last.since, last.until) == (NOW, back)
    assert [line.words for line in last.contents.ran] == ["On the second day."]
    assert Brief.objects.count() == 2


def test_a_mail_that_is_refused_is_tried_again_and_given_up(
    alice: User, acme: Organisation, make_order: MakeOrder, mailing: None, settings: LazySettings
) -> None:
    ran(make_order(), words="All quiet.")
    wish(alice, acme)
    sending.make_due(NOW)
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 1

    for _try in range(sending.MOST_TRIES + 1):
        sending.mail_made()

    brief = Brief.objects.get()
    assert (brief.mail, brief.tries) == ("failed", sending.MOST_TRIES)


def test_quiet_means_no_mail_without_news_and_loud_means_one(
    alice: User, acme: Organisation, mailing: None
) -> None:
    wish(alice, acme)
    sending.make_due(NOW)
    assert Brief.objects.get().mail == "none"

    wish(alice, acme, is_quiet=False, now=NOW)
    sending.make_due(NOW + timedelta(days=1))
    assert sending.mail_made() == 1


def test_who_left_is_told_nothing(alice: User, acme: Organisation, bob: User) -> None:
    wish(bob, acme)
    Membership.objects.filter(user=bob).delete()
    sending.make_due(NOW)
    assert not Brief.objects.exists()


def test_endpoints_are_told_that_it_is_there_and_nothing_of_it(
    alice: User, acme: Organisation, make_order: MakeOrder
) -> None:
    create_endpoint(
        actor=alice,
        organisation=acme,
        url="https://hooks.example.invalid/",
        event_types=["x.brief.ready"],
    )
    ran(make_order(), words="My secret.")
    wish(alice, acme, by_webhook=True)

    sending.make_due(NOW)

    body = WebhookDelivery.objects.get().body
    assert json.loads(body)["data"]["id"] == Brief.objects.get().uid
    assert json.loads(body)["data"]["user_id"] == alice.uid
    assert "secret" not in body


def test_old_briefs_are_forgotten(alice: User, acme: Organisation) -> None:
    wish(alice, acme)
    sending.make_due(NOW)
    real = datetime.now(UTC)
    assert sending.prune(real + timedelta(days=89), days=90) == 0
    assert sending.prune(real + timedelta(days=91), days=90) == 1


# --- pages and the command line -------------------------------------------------------------------


def test_she_says_when_she_wants_it(client_of: ClientOf, alice: User, acme: Organisation) -> None:
    form = shown(acme, is_on="on", at="06:45", timezone="Asia/Tokyo", days="workdays", by_mail="on")
    client = client_of(alice)
    assert client.post(reverse("brief:settings"), form).status_code == 302
    hers = BriefWish.objects.get()
    assert (hers.at, hers.timezone, hers.is_quiet) == (time(6, 45), "Asia/Tokyo", False)

    wrong = client.post(reverse("brief:settings"), form | {"timezone": "Mars/North"})
    assert wrong.status_code == 422
    assert "Mars/North" in wrong.content.decode()
    off = {name: value for name, value in form.items() if name != "is_on"}
    client.post(reverse("brief:settings"), off)
    hers.refresh_from_db()
    assert hers.next_at is None


def test_strangers_and_colleagues_find_no_brief_of_hers(
    client_of: ClientOf, alice: User, bob: User, mallory: User, acme: Organisation
) -> None:
    wish(alice, acme)
    sending.make_due(NOW)
    page = Brief.objects.get().get_absolute_url()
    assert client_of(alice).get(page).status_code == 200
    for other in (bob, mallory):
        assert client_of(other).get(page).status_code == 404
    with pytest.raises(NotFound):
        wish(mallory, acme)
    with pytest.raises(Invalid):
        wish(alice, acme, days="never")


def test_the_page_tells_what_the_next_one_would_say(
    client_of: ClientOf, alice: User, acme: Organisation, make_order: MakeOrder
) -> None:
    ran(make_order(), words="Two <b>prices</b> rose.", ended_at=datetime.now(UTC))

    page = client_of(alice).get(reverse("brief:brief")).content.decode()

    assert "Two &lt;b&gt;prices&lt;/b&gt; rose." in page
    assert "You are sent none." in page


def test_the_command_line_prints_it(
    alice: User, acme: Organisation, make_order: MakeOrder, capsys: pytest.CaptureFixture[str]
) -> None:
    ran(make_order(), words="Two prices rose.", ended_at=datetime.now(UTC))
    who = ("--user", "alice", "--organisation", acme.name)

    call_command("agent", "brief", *who)
    call_command("agent", "brief", "--json", *who)

    said = capsys.readouterr().out
    assert "Two prices rose." in said
    assert json.loads(said.splitlines()[-1])["ran"][0]["name"] == "Morning look"

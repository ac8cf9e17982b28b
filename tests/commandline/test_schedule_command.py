"""`agent schedule …`: made after it was shown what it means, begun, paused, checked; and nobody else's."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from accounts.models import Organisation, User
from agents.models import Agent, Environment
from schedules.models import Delivery, OrderRun, StandingOrder
from steering.actions.files import save_steering_file
from tests.schedules.conftest import (
    MakeOrder,
    agent,
    draft,
    environment,
    make_agent,
    make_order,
    scripted,
)

__all__ = [
    "agent",
    "draft",
    "environment",
    "make_agent",
    "make_order",
    "scripted",
]


@pytest.fixture
def schedule(capsys: pytest.CaptureFixture[str]):
    """What it says, whatever it ends with."""

    def run(*words: str, user: str = "alice") -> str:
        with suppress(SystemExit):
            call_command("agent", "schedule", *words, "--user", user)
        return capsys.readouterr().out

    return run


def rows(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_a_schedule_is_shown_first_and_saved_with_yes(
    schedule, alice: User, acme: Organisation, agent: Agent, environment: Environment
) -> None:
    words = ["add", "News", "Look.", "--when", "every weekday at 8:30"]
    words += ["--timezone", "Europe/Berlin", "--agent", agent.uid, "--environment", environment.uid]
    shown = schedule(*words)
    assert "30 8 * * 1-5" in shown
    assert "Nothing is saved" in shown
    assert not StandingOrder.objects.exists()

    made = rows(schedule(*words, "--yes", "--json"))[0]

    assert (made["cron"], made["timezone"]) == ("30 8 * * 1-5", "Europe/Berlin")
    assert [row["id"] for row in rows(schedule("list", "--json"))] == [made["id"]]


def test_where_results_go_and_which_mails_begin_it_is_said(
    schedule, alice: User, acme: Organisation, agent: Agent, environment: Environment, settings
) -> None:
    settings.AGENTSITE_INBOUND_MAIL = "agents@example.org"
    words = ["add", "News", "Look.", "--agent", agent.uid, "--environment", environment.uid]
    words += ["--mail", "--files", "3", "--mail-from", "anna@example.org,@partner.example", "--yes"]
    made = rows(schedule(*words, "--json"))[0]
    order = StandingOrder.objects.get()
    assert (order.mails_owner, order.result_files) == (True, 3)
    assert order.mail_from == ["anna@example.org", "@partner.example"]
    assert made["mail_address"] == order.mail_address
    run = OrderRun.objects.create(
        order=order, agent_version=order.agent_version, trigger="mail", state="failed"
    )
    Delivery.objects.create(run=run, way="mail", user=alice, state="left_out", why="no_mail")
    told = schedule("show", "News")
    assert f"mails to: {order.mail_address}" in told
    assert "mail alice: left_out no_mail" in told


def test_it_is_begun_paused_resumed_and_checked_by_name(schedule, make_order: MakeOrder) -> None:
    order = make_order()
    run = rows(schedule("run", "Morning look", "--json"))[0]
    assert (run["state"], run["trigger"]) == ("started", "manual")
    assert rows(schedule("pause", order.uid, "--json"))[0]["paused"] == "manual"
    assert rows(schedule("resume", order.uid, "--json"))[0]["paused"] is None
    shown = rows(schedule("show", order.uid, "--json"))
    assert shown[1]["conversation"] == run["conversation"]
    check = rows(schedule("check", order.uid, "--json"))[0]
    assert (check["problem"], check["version"]) == ("", 1)


def test_a_run_that_cannot_begin_says_why(schedule, make_order: MakeOrder, agent: Agent) -> None:
    order = make_order()
    agent.archived_at = order.created_at
    agent.save()

    assert "archived" in schedule("run", order.uid)
    assert "archived" in schedule("check", order.uid)


def test_it_goes_on_with_what_is_there_now_when_its_owner_says_so(
    schedule, make_order: MakeOrder, alice: User, acme: Organisation
) -> None:
    order = make_order()
    save_steering_file(actor=alice, organisation=acme, text="Be brief.")
    assert "standing instructions" in schedule("run", order.uid)
    assert "goes on with what is there now" in schedule("pin", order.uid)
    check = rows(schedule("check", order.uid, "--json"))[0]
    assert (check["problem"], check["instructed_by"]) == ("", ["Acme"])
    schedule("pause", order.uid)
    assert "is paused" in schedule("pin", order.uid)


def test_mallory_finds_nobodys_schedule(
    schedule, make_order: MakeOrder, mallory: User, elsewhere: Organisation
) -> None:
    order = make_order()
    assert schedule("list", user="mallory") == ""
    for word in ("show", "run", "pause", "resume", "pin", "check"):
        with pytest.raises(CommandError, match="no such schedule"):
            schedule(word, order.uid, user="mallory")

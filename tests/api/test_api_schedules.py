"""`/api/schedules`, `/api/timers` and `/api/briefs`: a program looks after what begins by itself."""

from __future__ import annotations

import json
from datetime import UTC, datetime, time
from typing import Any

import pytest
from django.conf import LazySettings
from django.core.management import CommandError, call_command
from django.test import Client

from accounts.actions.tokens import create_token
from accounts.models import Organisation, TokenScope, User
from agents.models import Agent, Environment
from brief import sending
from brief.actions.wishes import set_brief
from schedules.models import Delivery, OrderRun, QueueItem, StandingOrder
from tests.schedules.conftest import agent, scripted

__all__ = ["agent", "scripted"]

READ, WRITE = TokenScope.CONVERSATIONS_READ, TokenScope.CONVERSATIONS_WRITE


class Program:
    def __init__(self, user: User, organisation: Organisation, *scopes: TokenScope) -> None:
        issued = create_token(
            actor=user, organisation=organisation, name="Program", scopes=scopes or (READ, WRITE)
        )
        self._client = Client(headers={"Authorization": f"Bearer {issued.secret}"})

    def __call__(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        data = "" if body is None else json.dumps(body)
        answer = self._client.generic(method, f"/api/{path}", data, content_type="application/json")
        return answer.status_code, json.loads(answer.content)


@pytest.fixture
def program(alice: User, acme: Organisation) -> Program:
    return Program(alice, acme)


@pytest.fixture
def new(agent: Agent, environment: Environment) -> dict[str, Any]:
    return {
        "name": "Morning look",
        "agent": agent.uid,
        "environment": environment.uid,
        "text": "Look at the news.",
        "cron": "0 9 * * 1-5",
        "timezone": "Europe/Berlin",
    }


@pytest.fixture
def made(program: Program, new: dict[str, Any]) -> Any:
    status, made = program("POST", "schedules", new)
    assert status == 201, made
    return made


def test_a_schedule_is_made_read_changed_paused_run_and_deleted(
    program: Program, made: Any, new: dict[str, Any]
) -> None:
    place = f"schedules/{made['id']}"
    assert program("GET", "schedules")[1][0]["id"] == made["id"]
    assert program("GET", place)[1]["text"] == new["text"]
    assert len(made["upcoming"]) == 5
    dated = {"dates": ["2030-01-31T09:00:00+01:00"], "budget": "0.50", "cron": ""}
    status, changed = program("PATCH", place, dated)
    assert status == 200, changed
    assert (changed["name"], changed["cron"]) == ("Morning look", "")
    assert datetime.fromisoformat(changed["dates"][0]) == datetime(2030, 1, 31, 8, tzinfo=UTC)
    assert float(changed["budget"]) == 0.5
    assert program("POST", f"{place}/pause")[1]["paused"] == "manual"
    assert program("POST", f"{place}/resume")[1]["paused"] is None
    assert program("GET", f"{place}/preflight")[1]["problem"] == ""
    status, run = program("POST", f"{place}/run")
    assert (status, run["state"]) == (201, "started")
    assert [each["id"] for each in program("GET", f"{place}/runs")[1]] == [run["id"]]
    assert program("DELETE", place)[0] == 409, "a run is at work"
    OrderRun.objects.update(state="failed")
    assert program("DELETE", place) == (200, {"status": "deleted"})
    assert program("GET", place)[0] == 404


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"cron": "61 * * * *"}, "expression"),
        ({"timezone": "Mars/North"}, "timezone"),
        ({"dates": ["2030-01-31T09:00:00"]}, "dates"),
        ({"agent": "nobody"}, "agent"),
        ({"overlap": "dance"}, "overlap"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_what_is_wrong_is_named_and_nothing_is_made(
    program: Program, new: dict[str, Any], wrong: dict[str, Any], field: str
) -> None:
    status, answer = program("POST", "schedules", new | wrong)
    assert status == 422, answer
    assert field in str(answer["error"])
    assert program("GET", "schedules") == (200, [])


def test_a_queue_is_filled_once_a_key_and_emptied(program: Program, made: Any) -> None:
    place = f"schedules/{made['id']}"
    assert program("POST", f"{place}/items", {"text": "Look"})[0] == 409, "it works none"
    program("PATCH", place, {"works_queue": True})
    for _again in range(2):
        status, item = program("POST", f"{place}/items", {"text": "Look", "key": "job-1"})
        assert (status, item["source"], item["state"]) == (201, "program", "waiting")
    program("POST", f"{place}/items", {"text": "Then this"})
    listed = program("GET", f"{place}/items?limit=1")[1]
    assert [each["text"] for each in listed] == ["Then this"]
    one = f"{place}/items/{item['id']}"
    assert program("DELETE", one)[1]["state"] == "dropped"
    assert program("DELETE", one)[0] == 409
    assert program("POST", f"{one}/retry")[1]["state"] == "waiting"
    assert QueueItem.objects.count() == 2


def test_where_results_go_and_which_mails_begin_it_is_said_and_told(
    program: Program, made: Any, bob: User, acme: Organisation, settings: LazySettings
) -> None:
    place = f"schedules/{made['id']}"
    assert program("PATCH", place, {"mail_from": ["anna@example.org"]})[0] == 422, "none come in"
    settings.AGENTSITE_INBOUND_MAIL = "@in.example.org"
    wanted = {"mail_from": ["Anna@example.org"], "readers": [bob.uid], "result_files": 2}
    status, changed = program("PATCH", place, {**wanted, "mails_owner": True})
    assert status == 200, changed
    assert changed["mail_address"].endswith("@in.example.org")
    assert (changed["readers"], changed["mail_from"]) == ([bob.uid], ["anna@example.org"])
    moved = program("POST", f"{place}/address")[1]
    assert moved["mail_address"] != changed["mail_address"]

    order = StandingOrder.objects.get()
    run = OrderRun.objects.create(
        order=order, agent_version=order.agent_version, trigger="manual", state="failed"
    )
    Delivery.objects.create(run=run, way="mail", user=bob, state="left_out", why="no_mail")
    [result] = program("GET", f"{place}/runs")[1][0]["results"]
    assert (result["user_id"], result["why"], result["file_id"]) == (bob.uid, "no_mail", None)
    again = f"{place}/results/{result['id']}/retry"
    assert Program(bob, acme)("POST", again)[0] == 404
    assert program("POST", again)[1]["state"] == "waiting"
    assert program("POST", again)[0] == 409


def test_nobody_else_finds_it_and_a_reading_token_changes_nothing(
    alice: User, bob: User, mallory: User, acme: Organisation, elsewhere: Organisation, made: Any
) -> None:
    place = f"schedules/{made['id']}"
    for other in (Program(bob, acme), Program(mallory, elsewhere)):
        assert other("GET", "schedules") == (200, [])
        for method, path in (("GET", place), ("DELETE", place), ("POST", f"{place}/run")):
            assert other(method, path)[0] == 404
        assert other("POST", f"{place}/items", {"text": "Mine"})[0] == 404
    reader = Program(alice, acme, READ)
    assert reader("GET", place)[0] == 200
    assert reader("POST", f"{place}/run")[0] == 403


def test_timers_and_briefs_are_read(
    program: Program, made: Any, alice: User, bob: User, acme: Organisation
) -> None:
    assert [each["kind"] for each in program("GET", "timers")[1]] == ["schedule"]
    now = datetime(2028, 5, 1, tzinfo=UTC)
    set_brief(actor=alice, organisation=acme, is_on=True, at=time(8), zone="UTC", now=now)
    sending.make_due(now.replace(hour=9))
    [head] = program("GET", "briefs")[1]
    status, brief = program("GET", f"briefs/{head['id']}")
    assert (status, brief["waits"], brief["spent"]["calls"]) == (200, [], 0)
    assert program("GET", "briefs/now")[1]["id"] is None
    assert Program(bob, acme)("GET", f"briefs/{head['id']}")[0] == 404


def test_a_program_names_criteria_and_commands_that_check_them(
    program: Program, new: dict[str, Any]
) -> None:
    checks = [{"run": "test -s report.md", "criterion": 1}]
    outcome = {"description": "Write it.", "rubric": "- it is there", "checks": checks}
    status, made = program("POST", "schedules", {**new, "outcome": outcome})
    assert status == 201, made
    assert made["outcome"]["checks"] == [{**checks[0], "seconds": 60}]
    for wrong in ({"run": ""}, {"run": "true", "criterion": 2}, {"run": "true", "seconds": 601}):
        body = {**new, "outcome": {**outcome, "checks": [wrong]}}
        status, answer = program("POST", "schedules", body)
        assert status == 422, answer
    misspelled = {**outcome, "checks": [{**checks[0], "secnds": 5}], "rubrik": "- none"}
    status, answer = program("POST", "schedules", {**new, "outcome": misspelled})
    faults = [
        answer["error"]["field"],
        *(each["field"] for each in answer["error"].get("faults") or ()),
    ]
    assert status == 422
    assert {"outcome.rubrik", "outcome.checks[0].secnds"} <= set(faults)
    assert StandingOrder.objects.count() == 1


def test_a_person_names_them_in_a_terminal(
    alice: User, acme: Organisation, new: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["agent", "schedule", "add", "News", "Write it.", "--user", alice.username]
    words += ["--organisation", acme.name, "--agent", new["agent"]]
    words += ["--environment", new["environment"], "--cron", "0 9 * * *", "--yes"]
    call_command(
        *words, "--criteria", "- there\n- short", "--judged", "2", "--check", "2: make test"
    )
    order = StandingOrder.objects.get()
    assert order.messages == []
    assert order.outcome == {
        "description": "Write it.",
        "rubric": "- there\n- short",
        "max_iterations": 2,
        "checks": [{"run": "make test", "criterion": 2, "seconds": 60}],
    }
    with pytest.raises((CommandError, SystemExit)):
        call_command(*words, "--check", "make test")
    assert StandingOrder.objects.count() == 1

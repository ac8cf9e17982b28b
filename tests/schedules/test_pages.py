"""The pages of schedules, the dry run that they show, and signed requests that begin one."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from standardwebhooks import Webhook

from accounts.models import Organisation, User
from agents.models import Agent, Environment, SandboxRules
from approvals.actions.rules import save_rule
from conversations.actions.preferences import set_defaults
from conversations.models import Event
from harness.errors import TooLarge
from harness.events import OutcomeCheck, UserDefineOutcome
from memory.actions.remembering import own_store
from memory.models import MemoryStore
from schedules import ending, running
from schedules.actions.orders import issue_hook, pause_order, remove_hook
from schedules.actions.runs import run_now
from schedules.drafts import Draft, draft_of
from schedules.hooks import BODY_BYTES
from schedules.models import OrderRun, StandingOrder
from schedules.preflight import preflight_of, preview
from schedules.templates import filled
from skills_app.actions.releases import ask_for_release
from skills_app.actions.skills import create_skill
from spending.actions.budgets import set_budget
from spending.amounts import units_of
from spending.models import Budget, ModelPrice
from steering.actions.files import save_steering_file
from tests.cast import ClientOf, shown
from tests.conversations.conftest import rested
from tests.heartbeat import MOST_SECONDS, seconds_of_work
from tests.skills_app.conftest import files_of

from .conftest import MakeOrder, said
from .test_running import judged


def form_of(acme: Organisation, agent: Agent, environment: Environment, **values: Any) -> Any:
    usual = {
        "name": "Morning look",
        "agent": agent.uid,
        "environment": environment.uid,
        "text": "Look at the news.",
        "timezone": "Europe/Berlin",
        "after_outcome": "success",
        "missed": "skip",
        "most_missed": "1",
        "overlap": "skip",
        "jitter": "0",
        "failures_to_pause": "3",
        "idle_to_pause": "0",
    }
    return shown(acme, **(usual | values))


# --- pages ----------------------------------------------------------------------------------------


def test_a_new_schedule_begins_with_the_usual_agent_and_place_and_folds_what_few_need(
    client_of: ClientOf, alice: User, acme: Organisation, agent: Agent, environment: Environment
):
    set_defaults(actor=alice, agent=agent, environment=environment)
    client = client_of(alice)
    form = client.get(reverse("schedules:new")).context["form"]
    assert form["agent"].value() == agent.uid
    assert form["environment"].value() == environment.uid
    rare = {field.name for field in form.rare}
    assert {"cron", "jitter", "rubric", "approvers"} <= rare
    assert not rare & {"name", "agent", "environment", "text", "when", "budget"}
    assert not form.has_more
    # What was filled in there, or has to be corrected, is not hidden.
    untouched = {"after_outcome": "any", "iterations": "3", "result_files": "0"}
    values = form_of(acme, agent, environment, **untouched)
    for more in ({}, {"rubric": "- it has a title"}, {"jitter": "many"}):
        answer = client.post(reverse("schedules:new"), {**values, **more, "check": "1"})
        assert answer.context["form"].has_more == bool(more)
    # Times that words became stand where they are seen.
    timed = client.post(
        reverse("schedules:new"), {**values, "when": "every weekday at 8:30", "save": "1"}
    ).context["form"]
    assert "cron" in {field.name for field in timed.usual}
    assert not timed.has_more


def test_words_for_a_time_are_shown_as_what_they_mean_before_anything_is_saved(
    client_of: ClientOf, alice: User, acme: Organisation, agent: Agent, environment: Environment
) -> None:
    client = client_of(alice)
    form = form_of(acme, agent, environment, when="every weekday at 8:30", save="1")
    answer = client.post(reverse("schedules:new"), form)

    assert answer.status_code == 200
    assert not StandingOrder.objects.exists()
    assert answer.context["form"]["cron"].value() == "30 8 * * 1-5"
    assert len(answer.context["check"].upcoming) == 5

    confirmed = client.post(
        reverse("schedules:new"), form | {"when": "", "cron": "30 8 * * 1-5"}, follow=True
    )

    order = StandingOrder.objects.get()
    assert (order.owner, order.cron, order.timezone) == (alice, "30 8 * * 1-5", "Europe/Berlin")
    page = confirmed.content.decode()
    assert "Run now" in page
    assert "30 8 * * 1-5" in page


def test_what_is_refused_stands_at_its_field_and_nothing_typed_is_lost(
    client_of: ClientOf, alice: User, acme: Organisation, agent: Agent, environment: Environment
) -> None:
    form = form_of(acme, agent, environment, when="every fortnight", text="Count sheep.")
    answer = client_of(alice).post(reverse("schedules:new"), form)

    assert answer.status_code == 422
    assert "fortnight" in answer.context["form"].errors["when"][0]
    assert "Count sheep." in answer.content.decode()
    crooked = client_of(alice).post(
        reverse("schedules:new"), form | {"when": "", "cron": "61 * * * *", "save": "1"}
    )
    assert "61" in crooked.context["form"].errors["cron"][0]
    dated = form | {"when": "", "dates": "tomorrow", "save": "1"}
    assert client_of(alice).post(reverse("schedules:new"), dated).status_code == 422


def test_a_change_on_the_page_keeps_what_the_page_does_not_show(
    client_of: ClientOf, alice: User, acme: Organisation, make_order: MakeOrder, draft: Draft
) -> None:
    order = make_order(metadata={"team": "press"}, messages=(said("One."), said("Two.")))
    form = form_of(
        acme, draft.agent, draft.environment, name="Other", text="One.\r\n\r\nTwo.", save="1"
    )
    answer = client_of(alice).post(
        reverse("schedules:schedule-change", kwargs={"uid": order.uid}), form
    )

    assert answer.status_code == 302
    order.refresh_from_db()
    assert (order.name, order.metadata, len(order.messages)) == ("Other", {"team": "press"}, 2)


def test_criteria_make_what_is_to_be_done_an_outcome(
    client_of: ClientOf, alice: User, acme: Organisation, agent: Agent, environment: Environment
) -> None:
    form = form_of(
        acme, agent, environment, rubric="- a title\r\n- sources", iterations="2", save="1"
    )
    assert client_of(alice).post(reverse("schedules:new"), form).status_code == 302
    order = StandingOrder.objects.get()
    assert order.messages == []
    assert order.outcome == {
        "description": "Look at the news.",
        "rubric": "- a title\n- sources",
        "max_iterations": 2,
    }
    address = reverse("schedules:schedule-change", kwargs={"uid": order.uid})
    page = client_of(alice).get(address).content.decode()
    assert "Look at the news." in page
    assert "- sources" in page
    assert client_of(alice).post(address, {**form, "iterations": "99"}).status_code == 422
    checks = "2: grep -q sources report.md\r\nmake test"
    assert client_of(alice).post(address, {**form, "checks": checks}).status_code == 302
    order.refresh_from_db()
    assert order.outcome["checks"] == [
        {"run": "grep -q sources report.md", "criterion": 2, "seconds": 60},
        {"run": "make test", "criterion": None, "seconds": 60},
    ]
    assert (
        "2: grep -q sources report.md\nmake test" in client_of(alice).get(address).content.decode()
    )
    wrong = client_of(alice).post(address, {**form, "checks": "3: true"})
    assert wrong.status_code == 422
    assert "There is no criterion 3" in str(wrong.context["form"].errors["checks"])
    alone = client_of(alice).post(address, {**form, "rubric": "", "checks": "true"})
    assert alone.status_code == 422
    assert "Checks belong to criteria" in alone.content.decode()
    assert client_of(alice).post(address, {**form, "rubric": ""}).status_code == 302
    order.refresh_from_db()
    assert (order.outcome, len(order.messages)) == (None, 1)


@pytest.mark.django_db(transaction=True)
def test_the_page_tells_what_checks_an_outcome_and_what_they_came_to_in_each_run(
    make_order: MakeOrder, scripted: Callable[..., Agent], alice: User, client_of: ClientOf
) -> None:
    checks = (
        OutcomeCheck(run="echo '<b>no</b>' && false", criterion=2, seconds=5),
        OutcomeCheck(run="true # \u202eeurt"),
    )
    outcome = UserDefineOutcome(
        outcome_id="",
        description="A report.",
        rubric="- a title\n- its sources",
        max_iterations=2,
        checks=checks,
    )
    both = judged(True, True)
    order = make_order(
        agent=scripted(["Here.", both, "Again.", both, "No."]), messages=(), outcome=outcome
    )
    address = order.get_absolute_url()
    before = client_of(alice).get(address).content.decode()
    assert "5 seconds at most" in before
    assert "criterion 2: <bdi>its sources</bdi>" in before
    assert "\u202e" not in before
    assert "Check failed:" not in before

    run = run_now(actor=alice, order=order)
    assert run.conversation is not None
    rested(run.conversation)
    ending.settle_ends()
    page = client_of(alice).get(address).content.decode()
    assert "Judged for the last time: 1 of 2 criteria met." in page
    assert "the same as before" in page
    assert page.count("Check failed:") == 1
    assert "&lt;b&gt;no&lt;/b&gt;" in page
    assert "exit code 1" in page


def test_the_list_and_the_page_tell_next_last_and_history(
    client_of: ClientOf, alice: User, make_order: MakeOrder
) -> None:
    order = make_order(now=datetime.now(UTC) - timedelta(minutes=1), cron="*/30 * * * *")
    run = OrderRun.objects.create(
        order=order,
        agent_version=order.agent_version,
        trigger="schedule",
        due_at=datetime.now(UTC),
        state="failed",
        error="bad_credentials",
        words="The key is not accepted.",
    )
    client = client_of(alice)
    listed = client.get(reverse("schedules:schedules"))
    page = client.get(order.get_absolute_url()).content.decode()

    assert listed.context["rows"] == [(order, run)]
    days = listed.context["days"]
    assert len(days) == 14
    assert days[1].entries[0].more == 45
    assert "The key is not accepted." in page
    assert "bad_credentials" in page


def test_the_page_tells_what_it_is_to_do_for_how_much_and_when_on_the_clocks_of_the_schedule(
    client_of: ClientOf, alice: User, make_order: MakeOrder
) -> None:
    order = make_order(cron="30 8 * * *", timezone="Asia/Tokyo", budget=units_of(Decimal("2.50")))
    page = client_of(alice).get(order.get_absolute_url()).content.decode()
    assert "What it is to do" in page
    assert "Look at the news." in page
    assert "$2.50" in page
    times = re.findall(
        r"<time datetime=\"([^\"]+)\">([^<]+)</time>", page.partition("Pinned to")[0]
    )
    assert len(times) == 5
    assert all(at.endswith("T08:30:00+09:00") for at, _words in times)
    assert all(words.endswith("08:30") for _at, words in times)
    listed = client_of(alice).get(reverse("schedules:schedules")).content.decode()
    assert "Times are those of UTC." in listed


def test_buttons_run_pause_resume_archive_and_delete(
    client_of: ClientOf, alice: User, make_order: MakeOrder
) -> None:
    order = make_order()
    client = client_of(alice)
    at = {"uid": order.uid}
    switch = reverse("schedules:schedule-switch", kwargs=at)

    begun = client.post(reverse("schedules:schedule-run", kwargs=at))
    conversation = order.runs.get().conversation
    assert conversation is not None
    assert begun["Location"] == conversation.get_absolute_url()
    for act, column in (("pause", "paused_at"), ("resume", None), ("archive", "archived_at")):
        client.post(switch, {"act": act})
        order.refresh_from_db()
        assert (order.paused_at is not None) == (column == "paused_at")
        assert (order.archived_at is not None) == (column == "archived_at")
    assert client.post(switch, {"act": "explode"}).status_code == 302
    delete = reverse("schedules:schedule-delete", kwargs=at)
    assert client.get(delete).status_code == 200
    client.post(delete)
    assert StandingOrder.objects.filter(pk=order.pk).exists(), "a run is at work"
    OrderRun.objects.update(state="succeeded")
    client.post(delete)
    assert not StandingOrder.objects.filter(pk=order.pk).exists()


def test_mallory_gets_no_page_of_a_schedule(
    client_of: ClientOf, mallory: User, bob: User, make_order: MakeOrder
) -> None:
    order = make_order()
    at = {"uid": order.uid}
    for person in (mallory, bob):
        client = client_of(person)
        assert client.get(reverse("schedules:schedules")).context["rows"] == []
        for name in ("schedule", "schedule-change", "schedule-delete"):
            assert client.get(reverse(f"schedules:{name}", kwargs=at)).status_code == 404
        for name in ("schedule-run", "schedule-switch", "schedule-hook", "schedule-delete"):
            assert client.post(reverse(f"schedules:{name}", kwargs=at)).status_code == 404


# --- signed requests ------------------------------------------------------------------------------


def signed(secret: str, body: str, *, key: str = "msg_1", at: datetime | None = None) -> Any:
    moment = at or datetime.now(UTC)
    return {
        "webhook-id": key,
        "webhook-timestamp": str(int(moment.timestamp())),
        "webhook-signature": Webhook(secret).sign(key, moment, body),
    }


def send(order: StandingOrder, body: str, headers: dict[str, str]) -> Any:
    return Client().post(
        reverse("schedules:hook", kwargs={"uid": order.uid}),
        body,
        content_type="application/json",
        headers=headers,
    )


@pytest.fixture
def hooked(make_order: MakeOrder, alice: User) -> tuple[StandingOrder, str]:
    order = make_order(
        cron="", messages=(said("See {{ payload.issue.title }} of {{payload.repository}}."),)
    )
    return order, issue_hook(actor=alice, order=order)


def test_a_signed_request_begins_one_run_with_what_it_sent_however_often_it_comes(
    hooked: tuple[StandingOrder, str],
) -> None:
    order, secret = hooked
    body = json.dumps({"issue": {"title": "It {{ payload }} burns"}, "repository": ["a", 1]})
    first = send(order, body, signed(secret, body))
    again = send(order, body, signed(secret, body))
    running.begin_queued()

    run = order.runs.get()
    assert (first.status_code, first.json()) == (202, {"id": run.uid})
    assert again.json() == first.json()
    assert (run.state, run.trigger) == ("started", "webhook")
    message = Event.objects.get(conversation=run.conversation, type="user.message")
    text = message.payload["content"][0]["text"]
    assert text == 'See It {{ payload }} burns of ["a", 1].'
    assert message.payload["untrusted_by"] == "the payload of a webhook"


def test_what_is_not_signed_by_its_secret_within_its_time_finds_nothing(
    hooked: tuple[StandingOrder, str], make_order: MakeOrder, alice: User
) -> None:
    order, secret = hooked
    body = "{}"
    good = signed(secret, body)
    old = datetime.now(UTC) - timedelta(minutes=6)
    other = make_order(cron="")
    theirs = issue_hook(actor=alice, order=other)
    wrong: list[tuple[StandingOrder, str, dict[str, str]]] = [
        (order, body, {}),
        (order, '{"x": 1}', good),
        (order, body, good | {"webhook-id": "msg_2"}),
        (order, body, signed(secret, body, at=old)),
        (order, body, signed(theirs, body)),
        (order, body, good | {"webhook-timestamp": "1e400"}),
        (order, body, good | {"webhook-signature": "v1"}),
        (make_order(cron=""), body, good),
    ]
    for at, sent, headers in wrong:
        assert send(at, sent, headers).status_code == 404
    remove_hook(actor=alice, order=order)
    assert send(order, body, good).status_code == 404
    assert not OrderRun.objects.exists()


def test_a_request_that_is_too_long_or_no_json_or_for_a_paused_schedule_is_refused(
    hooked: tuple[StandingOrder, str], alice: User
) -> None:
    order, secret = hooked
    long = "x" * (BODY_BYTES + 1)
    assert send(order, long, signed(secret, long)).status_code == 413
    most = json.dumps("x" * (BODY_BYTES - 2))
    assert send(order, most, signed(secret, most)).status_code == 202
    assert send(order, "no json", signed(secret, "no json", key="b")).status_code == 400
    pause_order(actor=alice, order=order)
    assert send(order, "{}", signed(secret, "{}", key="c")).status_code == 409


def test_a_new_secret_ends_the_old_one_and_is_shown_once(
    hooked: tuple[StandingOrder, str], client_of: ClientOf, alice: User
) -> None:
    order, old = hooked
    client = client_of(alice)
    page = client.post(reverse("schedules:schedule-hook", kwargs={"uid": order.uid}))
    secret = page.context["secret"]

    assert secret in page.content.decode()
    assert secret not in client.get(order.get_absolute_url()).content.decode()
    assert send(order, "{}", signed(old, "{}")).status_code == 404
    assert send(order, "{}", signed(secret, "{}")).status_code == 202


def test_filling_what_was_sent_takes_a_time_that_grows_with_its_length() -> None:
    """Braces and blanks, of which a careless pattern would try every pairing."""
    text = "{{ " * 60_000 + "a." * 60_000
    begun = time.process_time()
    assert filled([said(text)], {})[0].content[0] == said(text).content[0]
    assert time.process_time() - begun < 2


def test_a_payload_that_stands_in_very_many_places_is_not_put_together() -> None:
    text, payload = "{{ payload }}" * 7_000, {"a": "x" * 20_000}

    def fill() -> None:
        with pytest.raises(TooLarge, match=r"100,?000 characters"):
            filled([said(text)] * 50, payload)

    assert seconds_of_work(fill) <= MOST_SECONDS


def test_a_run_whose_message_would_be_too_long_says_so(
    hooked: tuple[StandingOrder, str], make_order: MakeOrder
) -> None:
    order, secret = hooked
    texts = [said("{{ payload }}" * 50).model_dump(mode="json")["content"]]
    StandingOrder.objects.filter(pk=order.pk).update(messages=texts)
    body = json.dumps("x" * 3_000)
    assert send(order, body, signed(secret, body)).status_code == 202
    running.begin_queued()
    run = order.runs.get()
    assert (run.state, run.conversation) == ("failed", None)
    assert "more than 100000 characters" in run.words


# --- the dry run ----------------------------------------------------------------------------------


def verdicts(order: StandingOrder) -> dict[str, str]:
    return {tool.name: tool.verdict for tool in preflight_of(order).tools}


def test_a_dry_run_says_which_tools_would_wait_and_whom_they_would_ask(
    make_order: MakeOrder,
    scripted: Callable[..., Agent],
    alice: User,
    bob: User,
    acme: Organisation,
) -> None:
    agent = scripted(tools=[{"tool": "*"}, {"tool": "write_file", "permission": "always_ask"}])
    order = make_order(agent=agent, approvers=(bob.uid,))
    before = verdicts(order)
    # A shell could do what the rule asks about.
    assert (before["write_file"], before["read_file"], before["bash"]) == ("ask", "allow", "ask")
    write = next(tool for tool in preflight_of(order).stops if tool.name == "write_file")
    assert write.asked == ("alice", "bob")

    save_rule(
        actor=alice,
        level="organisation",
        organisation=acme,
        rule={
            "tool": "read_file",
            "permission": "always_ask",
            "options": {"requester_may_not_decide": True, "reviewers_only": True},
        },
    )
    save_rule(
        actor=alice,
        level="organisation",
        organisation=acme,
        rule={
            "tool": "glob",
            "permission": "always_ask",
            "when": {"argument": "path", "path": "private/**"},
        },
    )
    after = {tool.name: tool for tool in preflight_of(order).tools}
    assert (after["read_file"].verdict, after["glob"].verdict) == ("ask", "depends")
    assert after["read_file"].asked == ("reviewers of Acme",)
    save_rule(
        actor=alice,
        level="organisation",
        organisation=acme,
        rule={"tool": "bash", "permission": "always_deny"},
    )
    assert "bash" not in verdicts(order)


def test_a_dry_run_says_which_checks_would_fail_because_they_would_not_run(
    make_order: MakeOrder, scripted: Callable[..., Agent], alice: User, client_of: ClientOf
) -> None:
    outcome = UserDefineOutcome(
        outcome_id="",
        description="A report.",
        rubric="- it stands",
        checks=(OutcomeCheck(run="grep -q a report.md"), OutcomeCheck(run="rm -rf build")),
    )
    rule = {
        "tool": "bash",
        "permission": "always_ask",
        "when": {"argument": "command", "prefix": "rm"},
    }
    agent = scripted(tools=[{"tool": "*"}, rule])
    order = make_order(agent=agent, outcome=outcome, messages=())
    [(command, why)] = preflight_of(order).refused_checks
    assert command == "rm -rf build"
    assert why
    assert (
        "Checks that would fail" in client_of(alice).get(order.get_absolute_url()).content.decode()
    )
    denied = scripted(tools=[{"tool": "*"}, {"tool": "bash", "permission": "always_deny"}])
    assert len(preflight_of(make_order(agent=denied, outcome=outcome)).refused_checks) == 2
    order.environment.backend = Environment.Backend.WORKER
    order.environment.save()
    assert len(preflight_of(order).refused_checks) == 2
    assert preflight_of(make_order()).refused_checks == ()


def test_a_dry_run_judges_commands_by_the_sandbox_that_they_would_run_in(
    make_order: MakeOrder, scripted: Callable[..., Agent], acme: Organisation
) -> None:
    order = make_order()
    assert preflight_of(order).hosts == ()
    reach = "network_policies: {a: {endpoints: [%s]}}"
    order.environment.policy = reach % "{host: a.example}, {host: b.example}"
    order.environment.save()
    SandboxRules.objects.create(organisation=acme, policy=reach % "{host: a.example}")
    check = preflight_of(order)
    assert check.hosts == ("a.example",)
    bash = next(tool for tool in check.tools if tool.name == "bash")
    assert (bash.effect, bash.asks_after_strangers) == ("outside", True)


def test_a_dry_run_names_the_skills_and_standing_instructions_that_a_run_is_given(
    make_order: MakeOrder, agent: Agent, alice: User, acme: Organisation
) -> None:
    order = make_order()
    assert (preflight_of(order).skills, preflight_of(order).instructed_by) == ((), ())
    version = create_skill(actor=alice, organisation=acme, files=files_of(), own=True)
    ask_for_release(actor=alice, version=version)
    save_steering_file(actor=alice, organisation=acme, text="Be brief.")
    save_steering_file(actor=alice, organisation=acme, text="Be kind.", agent=agent)
    check = preflight_of(order)
    assert check.skills == ("code-review 1",)
    assert check.instructed_by == ("Acme", agent.name)


def test_a_dry_run_says_which_memory_a_run_would_read(
    make_order: MakeOrder,
    scripted: Callable[..., Agent],
    alice: User,
    bob: User,
    mallory: User,
    acme: Organisation,
) -> None:
    own_store(actor=alice, organisation=acme)
    own_store(actor=bob, organisation=acme)
    MemoryStore.objects.create(organisation=acme, name="House rules")
    order = make_order()
    assert preflight_of(order).memories == ("About me", "House rules")
    shared = make_order(name="Shared", readers=(bob.uid,))
    assert preflight_of(shared).memories == ("House rules",), "others read along"
    without = make_order(name="Without", agent=scripted(features={"memory": False}))
    assert preflight_of(without).memories == ()


def test_what_a_webhook_sends_makes_calls_that_reach_outside_wait(make_order: MakeOrder) -> None:
    calm = {tool.name: tool for tool in preflight_of(make_order()).tools}
    fetch = calm["web_fetch"]
    assert (fetch.verdict, fetch.asks_after_strangers) == ("allow", True)
    filled = make_order(messages=(said("Read {{ payload.url }}."),))
    assert verdicts(filled)["web_fetch"] == "ask"


def test_the_worst_case_is_the_agents_limits_at_the_dearest_price_or_the_orders_cap(
    make_order: MakeOrder, alice: User, acme: Organisation, scripted: Callable[..., Agent]
) -> None:
    agent = scripted(
        limits={"steps": 1, "token_budget": 1_000, "context_window": 4_000, "output_tokens": 1_000}
    )
    order = make_order(agent=agent, cron="0 9 * * *")
    assert preflight_of(order).run_cost is None
    ModelPrice.objects.create(
        provider="scripted",
        model="script",
        input=2,
        output=10,
        cache_write=3,
        cache_read=1,
    )
    # 6,000 tokens at most, of which 1,000 are written, and it may wake itself nine times for as much.
    worst = units_of(Decimal(10 * (5_000 * 3 + 1_000 * 10)) / 1_000_000)
    check = preflight_of(order)
    assert check.wakes == 9
    deaf = [{"tool": "*"}, {"tool": "continue_later", "permission": "always_deny"}]
    limits = {"steps": 1, "token_budget": 1_000, "context_window": 4_000, "output_tokens": 1_000}
    asleep = preflight_of(make_order(agent=scripted(limits=limits, tools=deaf)))
    assert (asleep.run_cost, asleep.wakes) == (worst // 10, 0)
    # Teammates have limits of their own.
    team = make_order(agent=scripted(limits=limits, features={"teams": True}))
    assert preflight_of(team).run_cost is None
    assert "team" in preflight_of(team).run_cost_text
    bounded = preview(replace(draft_of(team), budget=worst), actor=alice, organisation=acme)
    assert (bounded.run_cost, bounded.capped) == (worst, True)
    assert (check.run_cost, check.runs_a_month, check.capped) == (worst, 30, False)
    assert check.month_cost == 30 * worst

    set_budget(
        actor=alice,
        scope=Budget.Scope.ORGANISATION,
        organisation=acme,
        unit="money",
        period="month",
        limit=29 * worst,
    )
    assert [one.fits for one in preflight_of(order).budgets] == [False]
    capped = preview(
        replace(draft_of(order), budget=worst // 2), actor=alice, organisation=acme, order=order
    )
    assert (capped.run_cost, capped.capped) == (worst // 2, True)
    assert [one.fits for one in capped.budgets] == [True]

    # A role may have a dearer model, and one of which nobody knows the price.
    roles = {"grading": {"model": "judge"}}
    limits = {"steps": 1, "token_budget": 1_000, "context_window": 4_000, "output_tokens": 1_000}
    graded = make_order(agent=scripted(limits=limits, roles=roles))
    assert preflight_of(graded).run_cost is None
    dear = {"provider": "scripted", "model": "judge", "cache_write": 3, "cache_read": 1}
    ModelPrice.objects.create(**dear, input=2, output=110)
    dearer = units_of(Decimal(10 * (5_000 * 3 + 1_000 * 110)) / 1_000_000)
    assert preflight_of(graded).run_cost == dearer

    # What a service shortens by itself it reads once more.
    shortened = preflight_of(
        make_order(agent=scripted(limits=limits, shortening={"by": "service"}))
    )
    longer = units_of(Decimal(10 * (9_000 * 3 + 1_000 * 10)) / 1_000_000)
    assert (shortened.run_cost, shortened.by_service) == (longer, True)


def test_a_dry_run_says_that_nothing_would_begin(make_order: MakeOrder, agent: Agent) -> None:
    order = make_order()
    assert preflight_of(order).problem == ""
    agent.archived_at = datetime.now(UTC)
    agent.save()
    order.agent_version.agent.refresh_from_db()

    assert "archived" in preflight_of(order).problem
    assert not OrderRun.objects.exists()

"""The admin's first page: each member of staff sees what her permissions open, and it stays cheap."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from accounts.actions.organisations import rename_organisation
from accounts.models import Organisation, User
from conversations import log
from conversations.models import Conversation, Run
from harness.events import (
    AgentToolUse,
    RequiresAction,
    RetriesExhausted,
    SessionError,
    SessionErrorBody,
    SessionStatusIdle,
    StopDetails,
)
from harness.history import Entry
from operations.home import panels
from spending.actions.budgets import set_budget
from spending.models import Budget, Usage
from tests.cast import ClientOf, make_user
from tests.chat.drawing import make_conversation

SECRET = "the plan nobody may read"

SEES = {
    "approvals.view_approval": ("waits", "Approvals"),
    "conversations.view_conversation": ("waits", "Conversations that wait for people"),
    "workers.view_workitem": ("waits", "Work that no worker took"),
    "agents.change_agent": ("waits", "Agents that wait for a review"),
    "deadletters.change_deadletter": ("fails", "Dead letters"),
    "conversations.view_run": ("fails", "Failed runs"),
    "webhooks.view_webhookdelivery": ("fails", "Webhook deliveries given up"),
    "webhooks.view_webhookendpoint": ("fails", "Webhooks switched off"),
    "spending.view_usage": ("costs", "Today"),
    "spending.view_budget": ("costs", "Budget: This server"),
    "audit.view_auditentry": ("changed", ""),
}
"""Each permission that opens something: in which panel, and what its line is called."""


def a_day(alice: User, acme: Organisation) -> None:
    """One thing that waits, fails and costs each, with content that must not be shown."""
    waiting, failed = make_conversation(alice, acme), make_conversation(alice, acme)
    Conversation.objects.update(title=SECRET)
    call = Entry.of(
        AgentToolUse(name="write_file", input={"content": SECRET}, evaluated_permission="ask")
    )
    rest = SessionStatusIdle(stop_reason=RequiresAction(event_ids=(call.uid,)))
    log.append(waiting.pk, [call, Entry.of(rest)])
    body = SessionErrorBody(type="unknown_error", code="overloaded", message=SECRET)
    details = StopDetails(code="overloaded", message=SECRET, hint="")
    idle = SessionStatusIdle(stop_reason=RetriesExhausted(), stop_details=details)
    log.append(failed.pk, [Entry.of(SessionError(error=body)), Entry.of(idle)])
    Run.objects.create(
        conversation=failed, state=Run.State.FAILED, worker="w", lease_until=timezone.now()
    )
    Usage.objects.create(
        organisation=acme,
        user=alice,
        model_request_id=f"mreq_{failed.pk}",
        purpose="reply",
        provider="demo",
        model="demo",
        input_tokens=900,
        cost="0.5",
    )


@pytest.fixture
def day(alice: User, acme: Organisation, staff: User) -> None:
    set_budget(
        actor=staff,
        scope=Budget.Scope.DEPLOYMENT,
        organisation=None,
        user=None,
        unit="tokens",
        period="day",
        limit=1_000,
    )
    a_day(alice, acme)


def allowed(*names: str) -> User:
    helper = make_user("helper", is_staff=True)
    codes = [name.partition(".")[2] for name in names]
    helper.user_permissions.set(Permission.objects.filter(codename__in=codes))
    return User.objects.get(pk=helper.pk)


@pytest.mark.django_db
def test_the_first_page_tells_what_waits_fails_costs_and_changed(
    day, staff: User, acme: Organisation, client_of: ClientOf
):
    rename_organisation(actor=staff, organisation=acme, name="Acme and daughters")
    text = client_of(staff).get(reverse("admin:index")).content.decode()
    shown = {panel.name: panel for panel in panels(staff)}
    assert list(shown) == ["waits", "fails", "costs", "changed"]
    figures = {line.label: line.figure for panel in shown.values() for line in panel.lines}
    assert figures["Approvals"] == figures["Dead letters"] == figures["Failed runs"] == "1"
    assert figures["Conversations that wait for people"] == "1"
    assert figures["Webhook deliveries given up"] == "0"
    assert figures["This month"].startswith("$0.50")
    assert [entry.label for entry in shown["waits"].entries] == ["write_file"]
    assert [entry.label for entry in shown["fails"].entries] == ["overloaded"]
    assert "Organisation renamed" in [entry.label for entry in shown["changed"].entries]
    for panel in shown.values():
        assert f'id="home-{panel.name}"' in text


@pytest.mark.django_db
def test_every_figure_and_entry_leads_somewhere_that_opens(day, staff: User, client_of: ClientOf):
    client = client_of(staff)
    addresses = {line.address for panel in panels(staff) for line in panel.lines}
    addresses |= {entry.address for panel in panels(staff) for entry in panel.entries}
    addresses |= {address for panel in panels(staff) for _label, address in panel.links}
    assert len(addresses) > 12
    for address in addresses:
        assert client.get(address).status_code == 200, address


@pytest.mark.django_db
@pytest.mark.parametrize("permission", SEES)
def test_a_permission_opens_its_own_part_and_no_other(day, permission: str):
    name, label = SEES[permission]
    found = {panel.name: panel for panel in panels(allowed(permission))}
    panel = found.pop(name)
    assert list(found) == (["fails"] if permission == "workers.view_workitem" else [])
    labels = [line.label for line in panel.lines]
    assert label in labels if label else not labels
    others = {told for other, (_name, told) in SEES.items() if other != permission}
    assert not others & set(labels)
    assert bool(panel.entries) == (
        permission.partition(".")[0] in {"approvals", "deadletters", "audit"}
    )


@pytest.mark.django_db
def test_staff_without_permissions_see_no_panel(day, client_of: ClientOf):
    answer = client_of(allowed()).get(reverse("admin:index"))
    assert answer.status_code == 200
    assert "home-panel" not in answer.content.decode()


@pytest.mark.django_db
def test_nobody_but_staff_sees_the_page(
    day, alice: User, bob: User, mallory: User, client, client_of: ClientOf
):
    for browser in (client, *map(client_of, (alice, bob, mallory))):
        answer = browser.get(reverse("admin:index"))
        assert answer.status_code == 302
        assert "/admin/login/" in answer["Location"]
    for person in (alice, bob, mallory):
        assert panels(person) == []


@pytest.mark.django_db
def test_what_people_wrote_stands_on_no_panel(day, staff: User, client_of: ClientOf):
    assert SECRET not in client_of(staff).get(reverse("admin:index")).content.decode()


@pytest.mark.django_db
def test_a_budget_that_is_nearly_used_up_stands_out(day, staff: User):
    costs = next(panel for panel in panels(staff) if panel.name == "costs")
    budget = next(line for line in costs.lines if line.percent is not None)
    assert (budget.percent, budget.is_bad) == (0, False)
    Budget.objects.get().periods.update(spent=950)
    costs = next(panel for panel in panels(staff) if panel.name == "costs")
    budget = next(line for line in costs.lines if line.percent is not None)
    assert (budget.percent, budget.is_bad) == (95, True)


@pytest.mark.django_db
def test_answers_to_calls_do_not_crowd_out_what_changed(day, alice: User, staff: User):
    changed = panels(staff)[-1]
    labels = {entry.label for entry in changed.entries}
    assert "Budget set" in labels
    assert "Asked" not in labels


@pytest.mark.django_db
def test_the_page_takes_as_many_queries_for_many_rows_as_for_few(
    day, alice: User, acme: Organisation, staff: User, client_of: ClientOf
):
    client = client_of(staff)
    client.get(reverse("admin:index"))
    with CaptureQueriesContext(connection) as few:
        client.get(reverse("admin:index"))
    for _ in range(8):
        a_day(alice, acme)
    with CaptureQueriesContext(connection) as many:
        client.get(reverse("admin:index"))
    known = {query["sql"] for query in few}
    assert len(many) <= len(few), [one["sql"] for one in many if one["sql"] not in known]
    assert len(many) < 45

"""What is announced, when, and in the transaction of the change."""

from __future__ import annotations

import json

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agents.actions.agents import archive_agent, change_agent, create_agent, delete_agent
from agents.actions.environments import (
    archive_environment,
    change_environment,
    create_environment,
    delete_environment,
)
from approvals.actions.approvals import decide_approval, expire_approvals
from approvals.models import Approval
from conversations.actions.conversations import (
    archive_conversation,
    create_conversation,
    delete_conversation,
    rename_conversation,
)
from conversations.log import append
from harness.agentconfig import AgentConfig
from harness.content import Text
from harness.events import (
    AgentToolUse,
    BudgetReached,
    EndTurn,
    RequiresAction,
    SessionStatusIdle,
    SessionStatusRescheduled,
    SessionStatusRunning,
    SessionStatusTerminated,
    SessionThreadCreated,
    UserMessage,
)
from harness.history import Entry
from harness.rules import AskTerms
from webhooks.actions.endpoints import create_endpoint
from webhooks.models import WebhookDelivery

pytestmark = pytest.mark.django_db


@pytest.fixture
def told(alice, acme):
    """What an endpoint for everything in alice's organisation is told, once for each asking."""
    create_endpoint(
        actor=alice, organisation=acme, url="https://hooks.example.invalid/", event_types=["*"]
    )

    def take() -> list[dict[str, str]]:
        rows = list(WebhookDelivery.objects.order_by("pk"))
        WebhookDelivery.objects.all().delete()
        for row in rows:
            assert row.event_type == json.loads(row.body)["data"]["type"]
        return [json.loads(row.body)["data"] for row in rows]

    return take


def names(data: list[dict[str, str]]) -> list[str]:
    return [one["type"] for one in data]


@pytest.mark.parametrize(
    ("event", "types"),
    [
        (SessionStatusRunning(), ["session.running", "session.status_run_started"]),
        (
            SessionStatusIdle(stop_reason=EndTurn()),
            ["session.idled", "session.status_idled"],
        ),
        (
            SessionStatusIdle(stop_reason=RequiresAction(event_ids=("sevt_1",))),
            ["session.idled", "session.status_idled", "session.requires_action"],
        ),
        (
            SessionStatusIdle(stop_reason=BudgetReached()),
            ["session.idled", "session.status_idled", "session.budget_reached"],
        ),
        (SessionStatusRescheduled(delay_seconds=5), ["session.status_rescheduled"]),
        (SessionStatusTerminated(), ["session.status_terminated"]),
        (UserMessage(content=(Text(text="secret"),)), []),
    ],
)
def test_the_log_announces_its_status_with_the_event(converse, told, event, types):
    conversation, _script = converse()
    told()
    append(conversation.pk, [Entry.of(event)])
    data = told()
    assert names(data) == types
    assert {one["id"] for one in data} <= {conversation.uid}


def test_a_child_is_a_thread_of_the_conversation_that_a_person_began(converse, told, alice, acme):
    conversation, _script = converse()

    def child_of(parent):
        return create_conversation(
            actor=alice,
            organisation=acme,
            agent=conversation.agent_version.agent,
            environment=conversation.environment,
            parent=parent,
        )

    child = child_of(conversation)
    grandchild = child_of(child)
    told()
    created = SessionThreadCreated(session_thread_id=child.uid, agent_name="Helper")
    append(conversation.pk, [Entry.of(created)])
    append(grandchild.pk, [Entry.of(SessionStatusRunning())])
    append(grandchild.pk, [Entry.of(SessionStatusIdle(stop_reason=EndTurn()))])
    append(child.pk, [Entry.of(SessionStatusTerminated())])
    assert [(one["type"], one["id"], one["session_thread_id"]) for one in told()] == [
        ("session.thread_created", conversation.uid, child.uid),
        ("session.thread_idled", conversation.uid, grandchild.uid),
        ("session.thread_terminated", conversation.uid, child.uid),
    ]


def test_a_conversation_is_announced_from_its_beginning_to_its_end(converse, told, alice):
    conversation, _script = converse()
    rename_conversation(actor=alice, conversation=conversation, title="Secret plans")
    rename_conversation(actor=alice, conversation=conversation, title="Secret plans")
    archive_conversation(actor=alice, conversation=conversation, archived=True)
    archive_conversation(actor=alice, conversation=conversation, archived=True)
    delete_conversation(actor=alice, conversation=conversation)
    data = told()
    assert names(data) == [
        "session.created",
        "session.updated",
        "session.archived",
        "session.deleted",
    ]
    assert "Secret" not in json.dumps(data)


def test_agents_are_announced(told, alice, acme):
    config = AgentConfig(provider="demo")
    agent = create_agent(
        actor=alice, organisation=acme, name="Coder", description="", config=config
    )
    for name in ("Coder", "Other"):
        change_agent(actor=alice, agent=agent, name=name, description="", config=config)
    archive_agent(actor=alice, agent=agent)
    delete_agent(actor=alice, agent=agent)
    data = told()
    assert names(data) == ["agent.created", "agent.updated", "agent.archived", "agent.deleted"]
    assert {one["id"] for one in data} == {agent.uid}


def test_environments_are_announced_and_what_is_everybodys_to_every_organisation(
    told, staff, mallory, elsewhere
):
    create_endpoint(
        actor=mallory,
        organisation=elsewhere,
        url="https://hooks.example.invalid/",
        event_types=["environment.created"],
    )
    environment = create_environment(
        actor=staff, organisation=None, name="Here", description="", upload_limit=1000
    )
    change_environment(
        actor=staff, environment=environment, name="There", description="", upload_limit=1000
    )
    archive_environment(actor=staff, environment=environment)
    delete_environment(actor=staff, environment=environment)
    data = told()
    assert names(data) == [
        "environment.created",
        "environment.created",
        "environment.updated",
        "environment.archived",
        "environment.deleted",
    ]
    assert len({one["organization_id"] for one in data[:2]}) == 2


def test_where_nobody_listens_a_status_costs_one_small_query(converse):
    conversation, _script = converse()
    with CaptureQueriesContext(
        connection,
    ) as queries:
        append(conversation.pk, [Entry.of(SessionStatusRunning())])
    about = [one["sql"] for one in queries if "webhook" in one["sql"]]
    assert len(about) == 1
    with CaptureQueriesContext(connection) as queries:
        append(conversation.pk, [Entry.of(UserMessage(content=(Text(text="Hi"),)))])
    assert not [one["sql"] for one in queries if "webhook" in one["sql"]]


def test_a_log_that_is_rolled_back_announces_nothing(converse, told):
    conversation, _script = converse()
    told()
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        append(conversation.pk, [Entry.of(SessionStatusRunning())])
        _ = 1 / 0
    assert told() == []


def ask(conversation, **terms) -> Approval:
    call = Entry.of(
        AgentToolUse(
            name="write_file",
            input={"path": "secret.txt", "content": "secret"},
            evaluated_permission="ask",
            terms=AskTerms(**terms),
        )
    )
    append(conversation.pk, [call])
    append(
        conversation.pk,
        [Entry.of(SessionStatusIdle(stop_reason=RequiresAction(event_ids=(call.uid,))))],
    )
    return Approval.objects.get(call_uid=call.uid)


@pytest.mark.parametrize("verdict", ["approve", "deny"])
def test_an_approval_is_announced_when_it_is_asked_for_and_when_it_is_decided(
    converse, told, alice, verdict
):
    conversation, _script = converse()
    told()
    approval = ask(conversation)
    asked = next(one for one in told() if one["type"] == "x.approval.requested")
    assert asked == {
        "type": "x.approval.requested",
        "id": approval.uid,
        "organization_id": conversation.organisation.uid,
        "workspace_id": conversation.organisation.uid,
        "session_id": conversation.uid,
        "tool_use_id": approval.call_uid,
        "state": "pending",
    }
    decide_approval(
        actor=alice,
        approval=approval,
        verdict=verdict,
        input_hash=approval.effective_sha256,
        seen_round=approval.round,
        reason="Because it is secret" if verdict == "deny" else "",
    )
    data = told()
    assert names(data) == ["x.approval.decided"]
    assert data[0]["state"] == {"approve": "approved", "deny": "denied"}[verdict]
    assert "secret" not in json.dumps([asked, *data])


def test_an_approval_that_nobody_gave_in_time_is_announced_as_expired(converse, told):
    conversation, _script = converse()
    approval = ask(conversation, expires_seconds=60)
    told()
    Approval.objects.update(expires_at=timezone.now())
    assert expire_approvals() == 1
    data = told()
    assert names(data) == ["x.approval.expired"]
    assert (data[0]["id"], data[0]["state"]) == (approval.uid, "expired")


def test_an_approval_of_a_child_names_the_conversation_that_a_person_began(
    converse, told, alice, acme
):
    conversation, _script = converse()
    child = create_conversation(
        actor=alice,
        organisation=acme,
        agent=conversation.agent_version.agent,
        environment=conversation.environment,
        parent=conversation,
    )
    told()
    ask(child)
    asked = next(one for one in told() if one["type"] == "x.approval.requested")
    assert (asked["session_id"], asked["session_thread_id"]) == (conversation.uid, child.uid)

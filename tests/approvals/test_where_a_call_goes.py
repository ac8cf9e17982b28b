"""Which machine a call goes to is told at every door that asks about it."""

from __future__ import annotations

import pytest

from accounts.actions.tokens import create_token
from accounts.models import Organisation, TokenScope, User
from agui.interrupts import open_interrupts
from api.commands import open_questions
from api.projection import questions as frames_of
from approvals.models import Approval
from chat.presentation.calls import card_of
from conversations.log import append
from conversations.models import Conversation
from harness.events import (
    AgentMcpToolUse,
    ApprovalRequested,
    RequiresAction,
    SessionStatusIdle,
    SessionStatusRunning,
)
from harness.history import Entry
from harness.rules import AskTerms
from mcpdoor.asking import questions
from mcpdoor.tools import Principal
from tests.approvals.asking import asks
from tests.cast import ClientOf
from tests.conversations.conftest import Converse

pytestmark = pytest.mark.django_db

SEND, HERE, THERE = "mcp__crm__send", "here.example", "there.example"


def waiting(conversation: Conversation, host: str) -> Approval:
    return asks(conversation, {"to": "all"}, tool=SEND, host=host)


def test_every_door_that_asks_names_the_machine(
    alice: User, acme: Organisation, staff: User, client_of: ClientOf, converse: Converse
) -> None:
    conversation = converse()[0]
    approval = waiting(conversation, HERE)

    hers = client_of(alice)
    for address in ("/approvals/", f"/approvals/{approval.uid}/"):
        assert HERE in hers.get(address).content.decode()
    fields = {"action": "allow_once", "_selected_action": [approval.pk]}
    page = client_of(staff).post("/admin/approvals/approval/", fields)
    assert HERE in page.content.decode()
    (asked,) = questions(Principal(alice, acme), conversation)
    assert HERE in asked.message
    scopes = (TokenScope.CONVERSATIONS_READ,)
    issued = create_token(actor=alice, organisation=acme, name="Tests", scopes=scopes)
    told = hers.get("/api/approvals", headers={"x-api-key": issued.secret})
    assert [row["host"] for row in told.json()] == [HERE]
    (interrupt,) = open_interrupts(conversation)
    assert interrupt.metadata == {"agentsite:host": HERE}
    (frame,) = frames_of(*open_questions(conversation, alice))
    assert [tool["host"] for tool in frame["tools"]] == [HERE]


def test_a_program_is_told_the_machine_that_was_asked_about_last(
    alice: User, converse: Converse
) -> None:
    conversation = converse()[0]
    approval = waiting(conversation, HERE)
    anew = ApprovalRequested(
        tool_use_id=approval.call_uid, reason="It moved.", terms=AskTerms(host=THERE)
    )
    rest = SessionStatusIdle(stop_reason=RequiresAction(event_ids=(approval.call_uid,)))
    append(conversation.pk, [Entry.of(each) for each in (SessionStatusRunning(), anew, rest)])
    conversation.refresh_from_db()

    (interrupt,) = open_interrupts(conversation)
    assert interrupt.metadata == {"agentsite:host": THERE}
    (frame,) = frames_of(*open_questions(conversation, alice))
    assert [tool["host"] for tool in frame["tools"]] == [THERE]


def test_calls_that_go_to_different_machines_are_not_the_same(
    alice: User, client_of: ClientOf, converse: Converse
) -> None:
    both = [waiting(converse()[0], host) for host in (HERE, THERE)]

    client = client_of(alice)
    assert "Exactly the same call" not in client.get("/approvals/").content.decode()
    shown = [f"{one.uid}:{one.effective_sha256}:{one.round}" for one in both]
    together = {"approval": [one.uid for one in both], "shown": shown, "verdict": "approve"}
    assert client.post("/approvals/decide/", together).status_code == 400
    assert Approval.objects.filter(state="approved").count() == 0


def test_a_card_shows_the_machine_that_was_asked_about_last(converse: Converse) -> None:
    conversation = converse()[0]
    use = Entry.of(
        AgentMcpToolUse(
            name=SEND, mcp_server_name="crm", host=HERE, input={}, evaluated_permission="ask"
        )
    )
    anew = ApprovalRequested(tool_use_id=use.uid, reason="It moved.", terms=AskTerms(host=THERE))
    append(conversation.pk, [use, Entry.of(anew)])
    rows = list(conversation.events.order_by("seq"))[-2:]

    assert isinstance(use.event, AgentMcpToolUse)
    assert card_of(use.event, rows[:1]).host == HERE
    assert card_of(use.event, rows).host == THERE

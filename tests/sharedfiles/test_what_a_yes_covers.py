"""A yes to a change of a shared file is for the words that were shown, and for no others."""

from __future__ import annotations

import hashlib
import io
from typing import Any

import pytest
from django.test import Client

from approvals.models import Approval
from chat.presentation.calls import Card, card_of
from chat.presentation.touched import touched_in
from conversations.actions.deciding import decide_call
from conversations.actions.messages import post_message
from conversations.models import Event
from harness.content import text_of
from mcpdoor.asking import questions
from mcpdoor.tools import Principal
from providers.scripted import call, reply
from sharedfiles.models import SharedVersion
from terminal.local import LocalDoor
from terminal.screen import Screen
from terminal.talk import Talk
from tests.conversations.conftest import rested
from tools_app.touches import as_text
from tools_app.workspace import Workspace, workspace_for
from v1.outgoing import wire_events

pytestmark = pytest.mark.django_db(transaction=True)

PATH = "guides/style.md"


def hash_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def write_draft(conversation: Any, text: str) -> None:
    Workspace(workspace_for(conversation.uid)).write_bytes(f"shared-drafts/{PATH}", text.encode())


def card(approval: Approval) -> Card:
    rows = Event.objects.filter(conversation=approval.conversation)
    about = [row for row in rows.order_by("seq") if approval.call_uid in {row.uid, row.subject}]
    told = touched_in(approval.conversation, about, approval.conversation.owner)
    return card_of(about[0].value, about, told[approval.call_uid])  # type: ignore[arg-type]


@pytest.fixture
def asked(alice, converse):
    """Of a draft that says “Be kind.”, which the agent promotes by its hash."""

    def made(*, named: str = "Be kind.\n", removal: bool = False) -> Approval:
        sha256 = "" if removal else hash_of(named)
        steps = [
            call("write_file", path=f"shared-drafts/{PATH}", content="Be kind.\n"),
            call("promote_shared_file", path=PATH, expected_sha256="", draft_sha256=sha256),
        ]
        conversation, _ = converse(
            [reply(call("stage_shared_file", path=PATH)), *map(reply, steps), reply("Done.")]
        )
        post_message(actor=alice, conversation=conversation, text="Go.")
        rested(conversation, 1)
        return Approval.objects.get(conversation=conversation, tool="promote_shared_file")

    return made


def decide(actor: Any, approval: Approval) -> str:
    decide_call(
        actor=actor, conversation=approval.conversation, call_uid=approval.call_uid, allow=True
    )
    rested(approval.conversation, 2)
    answer = Event.objects.get(subject=approval.call_uid, type="agent.tool_result").value
    return text_of(answer.content)


def test_what_was_written_into_the_draft_after_the_question_is_not_shared(alice, asked):
    approval = asked()
    write_draft(approval.conversation, "Be cruel.\n")
    told = decide(alice, approval)
    assert not SharedVersion.objects.exists()
    assert "another one than the call names" in told
    assert "Compare again" in told


def test_the_draft_that_was_shown_is_shared(alice, asked):
    decide(alice, asked())
    assert bytes(SharedVersion.objects.get().content) == b"Be kind.\n"


def test_each_place_that_asks_shows_the_draft(alice, asked, client_of, staff):
    approval = asked()
    shown = [change.table for change in card(approval).touched.changes]
    assert len(shown) == 1
    assert "Be kind." in shown[0]
    client: Client = client_of(alice)
    for address in (
        f"/c/{approval.conversation.uid}/",
        "/approvals/",
        f"/approvals/{approval.uid}/",
    ):
        page = client.get(address).content.decode()
        assert "Be kind." in page.partition('class="touched"')[2], address
    admin = client_of(staff)
    page = f"/admin/approvals/approval/{approval.pk}/change/"
    assert "+Be kind." in admin.get(page).content.decode()
    chosen = {"action": "allow_once", "_selected_action": str(approval.pk)}
    confirms = admin.post("/admin/approvals/approval/", chosen).content.decode()
    assert "Be kind." in confirms.partition('class="touched"')[2]
    row = client.get("/api/approvals").json()[0]
    assert "+Be kind." in row["acts_on"]["changes"][0]["diff"]
    assert row["acts_on"]["whole"] is True
    principal = Principal(alice, approval.organisation)
    assert [
        "+Be kind." in each.message for each in questions(principal, approval.conversation)
    ] == [True]


def test_the_same_draft_of_another_agent_is_not_the_same_call(alice, asked, client_of):
    both = [asked(), asked()]
    client = client_of(alice)
    assert "Exactly the same call" not in client.get("/approvals/").content.decode()
    shown = [f"{one.uid}:{one.effective_sha256}:{one.round}" for one in both]
    together = {"approval": [one.uid for one in both], "shown": shown, "verdict": "approve"}
    assert client.post("/approvals/decide/", together).status_code == 400
    assert not SharedVersion.objects.exists()


def test_of_a_draft_that_the_call_does_not_name_nothing_is_shown_as_if_it_were(alice, asked):
    approval = asked(named="Something else.\n")
    told = card(approval).touched
    assert not told.changes
    assert "not the one that this call names" in told.words[0]
    assert not SharedVersion.objects.exists()
    decide(alice, approval)
    assert not SharedVersion.objects.exists()


def test_a_draft_that_becomes_the_named_one_after_the_question_was_shown_to_nobody(alice, asked):
    approval = asked(named="Be cruel.\n")
    write_draft(approval.conversation, "Be cruel.\n")
    told = decide(alice, approval)
    assert not SharedVersion.objects.exists()
    assert "has changed since a person was asked" in told


def test_programs_and_terminals_are_shown_it_too(alice, asked):
    approval = asked()
    (shown,) = wire_events([Event.objects.get(uid=approval.call_uid)], reader=alice)
    assert "+Be kind." in as_text(shown["x_acts_on"])
    said = io.StringIO()
    screen = Screen(out=said, notes=said)
    talk = Talk(LocalDoor(alice, approval.organisation), screen, approval.conversation.uid, None)
    rest = talk._until_rest()
    assert rest is not None

    def decides(_question: str) -> str:
        assert "+Be kind." in said.getvalue()
        return "y"

    talk._ask(rest, decides)
    rested(approval.conversation, 2)
    assert bytes(SharedVersion.objects.get().content) == b"Be kind.\n"

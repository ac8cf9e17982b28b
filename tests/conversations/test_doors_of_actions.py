"""Doors for what can be done: handing an approval over, ending all commands, tools without a model."""

from __future__ import annotations

import json

import pytest
from django.test import Client

from accounts.actions.tokens import create_token
from accounts.models import Organisation, Role, TokenScope, User
from chat import protocol
from chat.presentation.frames import page
from conversations.models import BackgroundCommand
from tests.approvals.asking import a_reviewer, asks
from tests.cast import ClientOf, join, make_user
from tests.conversations.conftest import Converse
from tests.conversations.test_background import lost_row

pytestmark = pytest.mark.django_db(transaction=True)


def program(user: User, organisation: Organisation, *scopes: TokenScope) -> Client:
    issued = create_token(actor=user, organisation=organisation, name="Tests", scopes=scopes)
    return Client(headers={"x-api-key": issued.secret})


# --- handing over ---------------------------------------------------------------------------------


def test_a_call_is_handed_to_a_reviewer_who_finds_it_among_hers(
    alice: User, acme: Organisation, converse: Converse, client_of: ClientOf
) -> None:
    rita, other = a_reviewer(acme), a_reviewer(acme, "rolf")
    asked = asks(converse()[0])
    client = client_of(alice)
    assert f"person:{rita.uid}" in client.get(f"/approvals/{asked.uid}/").content.decode()

    handed = client.post(f"/approvals/{asked.uid}/assign/", {"assignee": f"person:{rita.uid}"})

    assert handed.status_code == 302
    asked.refresh_from_db()
    assert asked.assignee == rita
    assert asked.uid in client_of(rita).get("/approvals/?assigned=me").content.decode()
    assert asked.uid not in client_of(other).get("/approvals/?assigned=me").content.decode()
    assert asked.uid in client_of(other).get("/approvals/").content.decode()


def test_a_call_is_handed_to_a_role_and_taken_back(
    alice: User, acme: Organisation, converse: Converse, client_of: ClientOf
) -> None:
    rita = a_reviewer(acme)
    asked = asks(converse()[0])
    client = client_of(alice)

    client.post(f"/approvals/{asked.uid}/assign/", {"assignee": "role:reviewer"})
    assert asked.uid in client_of(rita).get("/approvals/?assigned=me").content.decode()
    assert asked.uid not in client.get("/approvals/?assigned=me").content.decode()

    client.post(f"/approvals/{asked.uid}/assign/", {"assignee": ""})
    assert asked.uid not in client_of(rita).get("/approvals/?assigned=me").content.decode()
    assert asked.uid in client_of(rita).get("/approvals/?assigned=nobody").content.decode()


def test_nobody_hands_a_call_to_who_could_not_answer_it_or_what_is_not_hers(
    alice: User,
    bob: User,
    mallory: User,
    acme: Organisation,
    converse: Converse,
    client_of: ClientOf,
) -> None:
    asked = asks(converse()[0])
    where = f"/approvals/{asked.uid}/assign/"

    for who in (bob, mallory):
        to_bob = {"assignee": f"person:{who.uid}"}
        assert client_of(alice).post(where, to_bob).status_code == 404
        assert client_of(who).post(where, {"assignee": "role:owner"}).status_code == 404
    asked.refresh_from_db()
    assert (asked.assignee, asked.assignee_role) == (None, "")


def test_who_is_the_requester_is_not_offered_where_another_is_wanted(
    alice: User, acme: Organisation, converse: Converse, client_of: ClientOf
) -> None:
    admin = make_user("ada")
    join(admin, acme, Role.ADMIN)
    asked = asks(converse()[0], requester_may_not_decide=True)

    page = client_of(admin).get(f"/approvals/{asked.uid}/").content.decode()

    assert f"person:{admin.uid}" in page
    assert f"person:{alice.uid}" not in page


# --- background commands --------------------------------------------------------------------------


def test_all_background_commands_are_ended_by_one_request(
    alice: User, mallory: User, acme: Organisation, elsewhere: Organisation, converse: Converse
) -> None:
    conversation, _script = converse()
    rows = [lost_row(conversation, call_uid=f"sevt_{number}") for number in "ab"]
    where = f"/api/conversations/{conversation.uid}/background"
    write = TokenScope.CONVERSATIONS_WRITE

    assert program(mallory, elsewhere, write).delete(where).status_code == 404
    assert program(alice, acme, TokenScope.CONVERSATIONS_READ).delete(where).status_code == 403
    assert not any(_asked(row) for row in rows)
    assert program(alice, acme, write).delete(where).json() == {"ended": 2}
    assert all(_asked(row) for row in rows)


def _asked(row: BackgroundCommand) -> bool:
    row.refresh_from_db()
    return row.cancel_asked_at is not None


def test_the_page_offers_to_end_all_of_several_and_its_frame_is_known(converse: Converse) -> None:
    conversation, _script = converse()
    lost_row(conversation)
    assert "cancel-all-background" not in str(page(conversation).panels["background"])
    lost_row(conversation, call_uid="sevt_y")
    assert "cancel-all-background" in str(page(conversation).panels["background"])
    assert isinstance(
        protocol.parse(json.dumps({"type": "cancel_all_background"})), protocol.CancelAllBackground
    )


# --- tools without a model ------------------------------------------------------------------------


def test_a_program_uses_a_tool_without_a_model(
    alice: User, mallory: User, acme: Organisation, elsewhere: Organisation, converse: Converse
) -> None:
    conversation, _script = converse()
    client = program(alice, acme, TokenScope.CONVERSATIONS_READ)
    body = {"name": "calculator", "arguments": {"expression": "0.1 + 0.2"}}

    used = client.post("/api/tools", body, "application/json")

    assert used.status_code == 200, used.content
    assert "0.3" in used.json()["content"][0]["text"]
    assert used.json()["is_error"] is False
    there = {**body, "conversation_id": conversation.uid}
    assert client.post("/api/tools", there, "application/json").status_code == 200
    stranger = program(mallory, elsewhere, TokenScope.CONVERSATIONS_READ)
    assert stranger.post("/api/tools", there, "application/json").status_code == 404


def test_tools_that_change_something_and_bad_input_are_refused(
    alice: User, acme: Organisation
) -> None:
    client = program(alice, acme, TokenScope.CONVERSATIONS_READ)

    for body, status in (
        ({"name": "write_file", "arguments": {"path": "a", "content": "b"}}, 404),
        ({"name": "calculator", "arguments": {}}, 422),
        ({"name": 7}, 422),
        ({}, 422),
    ):
        answered = client.post("/api/tools", body, "application/json")
        assert answered.status_code == status, answered.content
    writer = program(alice, acme, TokenScope.CONVERSATIONS_WRITE)
    assert writer.post("/api/tools", {"name": "calculator"}, "application/json").status_code == 403

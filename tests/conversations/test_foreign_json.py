"""JSON of strangers at every door that takes some: never a fault of the server, whatever its shape."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from accounts.actions.tokens import create_token
from accounts.models import TokenScope
from approvals.actions.approvals import decide_approval
from approvals.models import Approval
from conversations.models import Conversation
from harness.errors import Invalid, TooLarge
from tests.approvals.test_approval_pages import ask

DEEP = "[" * 100_000 + "]" * 100_000
HALF = "[" * 500 + "]" * 500
"""Deep enough for whoever walks it, shallow enough for most parsers."""


@pytest.fixture
def conversation(converse) -> Conversation:
    begun: Conversation = converse()[0]
    return begun


@pytest.fixture
def approval(conversation) -> Approval:
    return ask(conversation, path="a", content="b")


@pytest.fixture
def program(alice, acme) -> Client:
    issued = create_token(actor=alice, organisation=acme, name="program", scopes=TokenScope.values)
    return Client(
        headers={"Authorization": f"Bearer {issued.secret}"}, raise_request_exception=False
    )


@pytest.mark.django_db
@pytest.mark.parametrize("deep", [DEEP, HALF])
def test_the_simulation_says_that_its_input_is_too_deep(client_of, alice, conversation, deep):
    asked = {"conversation": conversation.uid, "tool": "bash", "input": f'{{"command": {deep}}}'}
    page = client_of(alice).get("/approvals/simulate/", asked)
    assert page.status_code == 422
    assert "nested more than 60 levels" in page.content.decode()


@pytest.mark.django_db
@pytest.mark.parametrize("deep", [DEEP, HALF])
def test_arguments_edited_on_a_page_are_refused_and_nothing_runs(
    client_of, alice, conversation, deep
):
    approval = ask(conversation, path="a", content="b", tags=[1])
    answer = client_of(alice).post(
        f"/approvals/{approval.uid}/decide/",
        {
            "verdict": "approve",
            "input_hash": approval.effective_sha256,
            "argument-path": "a",
            "argument-tags": deep,
        },
    )
    assert answer.status_code in {400, 409, 422}
    assert "nested more than 60 levels" in answer.content.decode()
    approval.refresh_from_db()
    assert approval.is_waiting


@pytest.mark.django_db
def test_arguments_edited_through_any_other_door_are_refused_where_all_doors_meet(alice, approval):
    deep: list[Any] = []
    for _ in range(5_000):
        deep = [deep]
    for wrong, refusal in (
        ({"path": deep}, Invalid),
        ({"path": float("nan")}, Invalid),
        ({"path": "\ud800"}, Invalid),
        ({"path": "a" * 1_000_001}, TooLarge),
    ):
        with pytest.raises(refusal) as caught:
            decide_approval(
                actor=alice,
                approval=approval,
                verdict="approve",
                input_hash=approval.effective_sha256,
                seen_round=approval.round,
                edited_input=wrong,
            )
        assert caught.value.field == "edited_input"
    approval.refresh_from_db()
    assert approval.is_waiting


@pytest.mark.django_db
def test_an_edited_text_that_spells_a_nul_is_kept_as_it_is(alice, approval):
    decide_approval(
        actor=alice,
        approval=approval,
        verdict="approve",
        input_hash=approval.effective_sha256,
        seen_round=approval.round,
        edited_input={"path": r"a\u0000b", "content": "c\0d"},
    )
    approval.refresh_from_db()
    assert approval.final_input == {"path": r"a\u0000b", "content": "c\N{REPLACEMENT CHARACTER}d"}


@pytest.mark.django_db
@pytest.mark.parametrize("deep", [DEEP, HALF])
def test_a_rules_pattern_that_looks_like_json_is_a_text_or_refused(client_of, alice, acme, deep):
    answer = client_of(alice).post(
        "/approvals/rules/add/",
        {
            "level": "organisation",
            "organisation": acme.uid,
            "tool": "bash",
            "permission": "always_ask",
            "way": "equals",
            "argument": "command",
            "pattern": deep,
        },
    )
    assert answer.status_code in {200, 302, 400}


@pytest.mark.django_db
@pytest.mark.parametrize("address", ["/agui", "/v1/sessions", "/api/chat"])
@pytest.mark.parametrize("deep", [DEEP, HALF, "NaN", "1e999", '"\\ud800"'])
def test_bodies_are_refused_in_the_doors_own_shape(program, address, deep):
    answer = program.post(address, f'{{"a": {deep}}}', content_type="application/json")
    assert answer.status_code in {400, 422}
    assert answer.json()["error"]["message"]


@pytest.mark.django_db
@pytest.mark.parametrize("deep", [DEEP, HALF])
def test_the_command_line_refuses_it_in_words(alice, acme, deep):
    with pytest.raises(CommandError, match="not JSON"):
        call_command(
            "tool", "calculator", f'{{"expression": {deep}}}', user="alice", stdout=StringIO()
        )

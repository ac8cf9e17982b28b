"""Who is asked first: named by a rule, listed and handed over at `/api`."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from accounts.actions.tokens import create_token
from accounts.models import Membership, Organisation, Role, TokenScope, User
from approvals.actions.rules import save_rule
from approvals.models import Approval, PolicyRule
from harness.errors import Invalid
from tests.approvals.asking import a_reviewer, asks
from tests.cast import ClientOf, join
from tests.conversations.conftest import Converse

pytestmark = pytest.mark.django_db(transaction=True)

READ, DECIDE = TokenScope.CONVERSATIONS_READ, TokenScope.APPROVALS_DECIDE


def program(user: User, organisation: Organisation, *scopes: TokenScope) -> Client:
    issued = create_token(actor=user, organisation=organisation, name="Tests", scopes=scopes)
    return Client(headers={"x-api-key": issued.secret})


def handed(client: Client, approval: Approval, to: Any) -> Any:
    body = {"assignee": to}
    return client.post(f"/api/approvals/{approval.uid}/assign", body, "application/json")


# --- rules ----------------------------------------------------------------------------------------


def test_a_rule_hands_what_it_asks_to_a_person_or_a_role(
    acme: Organisation, converse: Converse, client_of: ClientOf
) -> None:
    rita, other = a_reviewer(acme), a_reviewer(acme, "rolf")
    first, second = converse()[0], converse()[0]

    to_her = asks(first, ask_first=f"person:{rita.uid}", reviewers_only=True)
    to_admins = asks(second, ask_first="role:admin")

    assert (to_her.assignee, to_her.assignee_role) == (rita, "")
    assert (to_admins.assignee, to_admins.assignee_role) == (None, "admin")
    assert to_her.uid in client_of(rita).get("/approvals/?assigned=me").content.decode()
    assert to_her.uid not in client_of(other).get("/approvals/?assigned=me").content.decode()


def test_a_person_who_could_not_answer_any_more_is_passed_over(
    alice: User, bob: User, mallory: User, acme: Organisation, converse: Converse
) -> None:
    rita, gone = a_reviewer(acme), a_reviewer(acme, "rolf")
    Membership.objects.filter(user=gone).delete()

    for who in (bob, mallory, gone):
        assert asks(converse()[0], ask_first=f"person:{who.uid}").asked_first == ""
    strict = asks(converse()[0], ask_first=f"person:{alice.uid}", requester_may_not_decide=True)
    assert strict.asked_first == ""
    assert asks(converse()[0], ask_first=f"person:{rita.uid}").assignee == rita


def test_a_rule_names_members_of_its_organisation_and_roles_that_decide(
    alice: User, mallory: User, acme: Organisation
) -> None:
    rita = a_reviewer(acme)

    def save(name: str) -> Any:
        rule = {"tool": "bash", "permission": "always_ask", "options": {"ask_first": name}}
        return save_rule(actor=alice, level="organisation", organisation=acme, rule=rule)

    assert save(f"person:{rita.uid}").value.options.ask_first == f"person:{rita.uid}"
    assert save("role:reviewer").value.options.ask_first == "role:reviewer"
    for wrong in (f"person:{mallory.uid}", "person:nobody", "role:member", "rita"):
        with pytest.raises(Invalid) as refused:
            save(wrong)
        assert refused.value.field == "rule.options.ask_first"


def test_the_page_of_rules_names_who_is_asked_first(
    alice: User, bob: User, mallory: User, acme: Organisation, client_of: ClientOf
) -> None:
    rita = a_reviewer(acme)
    page = client_of(alice).get("/approvals/rules/").content.decode()
    assert f"person:{rita.uid}" in page
    assert mallory.uid not in page
    assert rita.uid not in client_of(bob).get("/approvals/rules/").content.decode()

    rule = {"level": "organisation", "organisation": acme.uid, "tool": "bash"}
    rule |= {"permission": "always_ask", "ask_first": f"person:{rita.uid}"}
    client_of(alice).post("/approvals/rules/add/", rule)

    assert PolicyRule.objects.get().value.options.ask_first == f"person:{rita.uid}"


# --- /api -----------------------------------------------------------------------------------------


def test_a_program_lists_what_waits_and_hands_it_over(
    alice: User, acme: Organisation, converse: Converse
) -> None:
    rita = a_reviewer(acme)
    conversation = converse()[0]
    approval = asks(conversation, {"path": "a.txt", "content": "b"})
    client = program(alice, acme, READ, DECIDE)

    (row,) = client.get("/api/approvals").json()
    assert row["id"] == approval.uid
    assert row["conversation_id"] == conversation.uid
    assert row["input"] == {"path": "a.txt", "content": "b"}
    assert row["assignee"] == ""

    told = handed(client, approval, f"person:{rita.uid}")
    assert (told.status_code, told.json()["assignee"]) == (200, f"person:{rita.uid}")
    hers = program(rita, acme, READ)
    assert [row["id"] for row in hers.get("/api/approvals?assigned=me").json()] == [approval.uid]
    assert client.get("/api/approvals?assigned=nobody").json() == []

    assert handed(client, approval, "role:reviewer").json()["assignee"] == "role:reviewer"
    assert handed(client, approval, "").json()["assignee"] == ""
    assert client.get("/api/approvals?view=decided").json() == []


def test_the_list_goes_on_where_a_page_ends(
    alice: User, acme: Organisation, converse: Converse
) -> None:
    waiting = [asks(converse()[0]).uid for _number in range(3)]
    client = program(alice, acme, READ)

    first = client.get("/api/approvals?limit=2")
    second = client.get(f"/api/approvals?limit=2&cursor={first['X-Next-Cursor']}")

    assert [row["id"] for row in first.json() + second.json()] == waiting
    assert "X-Next-Cursor" not in second


@pytest.mark.parametrize("wrong", ["rita", "role:member", "role:", "group:all", 7, None])
def test_who_nobody_could_be_handed_to_is_refused_in_words(
    alice: User, acme: Organisation, converse: Converse, wrong: Any
) -> None:
    approval = asks(converse()[0])

    refused = handed(program(alice, acme, DECIDE), approval, wrong)

    assert refused.status_code == 422, refused.content
    assert refused.json()["error"]["field"] == "assignee"
    assert refused.json()["error"]["hint"]


def test_mallory_and_bob_neither_see_nor_hand_over_what_is_alices(
    bob: User,
    mallory: User,
    acme: Organisation,
    elsewhere: Organisation,
    converse: Converse,
) -> None:
    approval = asks(converse()[0])

    for who, where in ((mallory, elsewhere), (bob, acme)):
        client = program(who, where, READ, DECIDE)
        assert client.get("/api/approvals").json() == []
        refused = handed(client, approval, "role:owner")
        assert refused.status_code == 404
        assert refused.json() == handed(client, approval, f"person:{who.uid}").json()
    approval.refresh_from_db()
    assert approval.asked_first == ""


def test_a_token_sees_the_approvals_of_its_organisation_alone(
    alice: User, acme: Organisation, elsewhere: Organisation, converse: Converse
) -> None:
    join(alice, elsewhere, Role.OWNER)
    approval = asks(converse()[0])
    client = program(alice, elsewhere, READ, DECIDE)

    assert client.get("/api/approvals").json() == []
    assert handed(client, approval, "role:owner").status_code == 404


def test_handing_over_takes_the_scope_of_deciding(
    alice: User, acme: Organisation, converse: Converse
) -> None:
    approval = asks(converse()[0])

    assert handed(program(alice, acme, READ), approval, "role:owner").status_code == 403

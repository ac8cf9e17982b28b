"""Programs try suites at `/api/evals`, and read what does worse; strangers find nothing."""

from __future__ import annotations

import json

import pytest

from accounts.actions.tokens import create_token
from accounts.models import TokenScope
from agents.actions.agents import change_agent, create_agent
from evals.files import read_suite, written_suite
from evals.models import Evaluation
from harness.agentconfig import AgentConfig

from .conftest import ended
from .conftest import spec as case

pytestmark = pytest.mark.django_db(transaction=True)

SCRIPT = {
    "replies": [
        {"say": "I pass this on.", "if_told": "Never promise"},
        {"say": "You get a refund.", "unless_told": "Never promise"},
    ]
}


@pytest.fixture
def program(client):
    """Asks `/api/evals` as a person's token does."""

    def ask(person, method, address, body=None):
        token = create_token(
            actor=person,
            organisation=person.memberships.get().organisation,
            name="t",
            scopes=[TokenScope.CONVERSATIONS_READ, TokenScope.AGENTS_MANAGE],
        )
        return client.generic(
            method,
            f"/api/evals/{address}",
            json.dumps(body) if body is not None else "",
            content_type="application/json",
            headers={"x-api-key": token.secret},
        )

    return ask


def test_a_program_tries_two_versions_and_is_told_what_does_worse(
    alice, acme, mallory, elsewhere, suite, add_cases, program
):
    add_cases(case("rule", script=SCRIPT, checks=[{"type": "text", "none": ["a refund"]}]))
    file = program(alice, "GET", f"suites/{suite.uid}").json()["file"]
    copied = program(alice, "POST", "suites", {"file": file.replace("Manners", "Copy", 1)}).json()
    assert (copied["name"], copied["cases"]) == ("Copy", 1)
    agent = create_agent(
        actor=alice,
        organisation=acme,
        name="Clerk",
        description="",
        config=AgentConfig(provider="demo", instructions="Never promise."),
    )
    runs = f"suites/{copied['id']}/runs"
    body = {"agent": "Clerk", "scripted": True, "parallel": 2, "repetitions": 2}
    first = program(alice, "POST", runs, body)
    assert first.status_code == 201
    ended(Evaluation.objects.get(uid=first.json()["id"]))
    change_agent(
        actor=alice,
        agent=agent,
        name="Clerk",
        description="",
        config=AgentConfig(provider="demo", instructions="Be kind."),
    )
    second = program(alice, "POST", runs, body).json()
    assert second["version"] == 2
    ended(Evaluation.objects.get(uid=second["id"]))

    told = program(alice, "GET", f"runs/{second['id']}").json()
    assert (told["state"], told["summary"]["failed"], len(told["trials"])) == ("done", 2, 2)
    worse = program(
        alice, "GET", f"runs/{second['id']}/comparison?with={first.json()['id']}"
    ).json()
    assert [(each["case"], each["change"]) for each in worse] == [("rule", "regressed")]
    assert worse[0]["why"]
    assert len(program(alice, "GET", runs).json()) == 2
    assert program(alice, "POST", f"runs/{second['id']}/stop").json()["state"] == "done"

    for address in (runs, f"suites/{copied['id']}", f"runs/{second['id']}"):
        assert program(mallory, "GET", address).status_code == 404
    assert program(mallory, "GET", "suites").json() == []
    assert program(mallory, "POST", f"runs/{second['id']}/stop").status_code == 404
    assert program(alice, "DELETE", f"suites/{copied['id']}").json() == {"status": "deleted"}


def test_what_cannot_be_tried_is_refused_in_words(alice, bob, suite, add_cases, program):
    add_cases()
    refused = program(alice, "POST", f"suites/{suite.uid}/runs", {"agent": "Nobody"})
    assert refused.status_code == 422
    for limit in ("nan", "inf", "1_0", True, -1):
        body = {"agent": "Clerk", "scripted": True, "limit": limit}
        refused = program(alice, "POST", f"suites/{suite.uid}/runs", body)
        assert (refused.status_code, refused.json()["error"]["field"]) == (422, "limit")
    assert program(alice, "POST", "suites", {"file": "version: 2"}).status_code == 422
    file = written_suite(read_suite(program(alice, "GET", f"suites/{suite.uid}").json()["file"]))
    assert program(bob, "POST", "suites", {"file": file}).status_code == 403

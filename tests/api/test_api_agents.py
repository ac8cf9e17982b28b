"""`/api/agents`: a program makes, changes, copies and shares agents as their person may on the pages."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from accounts.actions.tokens import create_token
from accounts.models import TokenScope
from agents.actions.agents import create_agent
from agents.models import Agent
from harness.agentconfig import AgentConfig, ToolRule

pytestmark = pytest.mark.django_db

ALL = [TokenScope.CONVERSATIONS_READ, TokenScope.AGENTS_MANAGE, TokenScope.APPROVALS_DECIDE]


class Program:
    def __init__(self, user, organisation, scopes: list[TokenScope] = ALL) -> None:
        issued = create_token(actor=user, organisation=organisation, name="Program", scopes=scopes)
        self._client = Client(headers={"Authorization": f"Bearer {issued.secret}"})

    def __call__(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        data = "" if body is None else json.dumps(body)
        answer = self._client.generic(method, f"/api/{path}", data, content_type="application/json")
        return answer.status_code, json.loads(answer.content)


@pytest.fixture
def preset(staff):
    config = AgentConfig(provider="demo", tools=(ToolRule(tool="*"),))
    return create_agent(actor=staff, organisation=None, name="Work", description="", config=config)


@pytest.fixture
def program(bob, acme) -> Program:
    return Program(bob, acme)


@pytest.fixture
def owners(alice, acme) -> Program:
    return Program(alice, acme)


@pytest.fixture
def made(program: Program, preset) -> Any:
    body = {"name": "Reviewer", "base": preset.uid, "instructions": "Review."}
    status, made = program("POST", "agents", body)
    assert status == 200, made
    return made


def test_an_agent_is_made_read_changed_copied_and_put_away(program, made, preset):
    path = f"agents/{made['id']}"
    assert (made["place"], made["private"], made["base"]) == ("own", True, preset.uid)
    assert program("GET", path) == (200, made)
    assert made["roster"] == {"agents": [], "only": False, "inline": False, "advisor": ""}
    rule = {"tool": "bash", "permission": "always_ask"}
    status, changed = program(
        "PATCH", path, {"tools": [rule], "enable_approval": True, "expected_version": 1}
    )
    assert (status, changed["version"], changed["tools"]) == (200, 2, [rule])
    assert (changed["instructions"], changed["enable_approval"]) == ("Review.", True)
    status, tried = program("PATCH", path, {"instructions": "Try.", "released": False})
    assert (tried["version"], tried["newest_version"]) == (2, 3)
    status, restored = program("POST", f"{path}/restore", {"version": 1})
    assert (restored["version"], restored["instructions"]) == (4, "Review.")
    status, versions = program("GET", f"{path}/versions?limit=2")
    assert [each["version"] for each in versions] == [4, 3]
    status, copied = program("POST", f"{path}/duplicate", {})
    assert (status, copied["name"], copied["base"]) == (200, "Reviewer (copy)", preset.uid)
    assert program("PATCH", path, {"archived": True})[1]["archived"]
    listed = [each["name"] for each in program("GET", "agents?q=review")[1]]
    assert listed == ["Reviewer (copy)"]
    assert [each["id"] for each in program("GET", "agents?archived=true")[1]] == [made["id"]]


@pytest.mark.parametrize(
    ("field", "changes"),
    [
        ("tools", {"tools": [{"tool": "mcp__*", "permission": "always_ask"}]}),
        ("provider", {"provider": "anthropic"}),
        ("name", {"name": " "}),
        ("effort", {"effort": "endless"}),
        ("nonsense", {"nonsense": 1}),
    ],
)
def test_what_is_wrong_is_named(program, made, field, changes, settings):
    settings.AGENTSITE_PROVIDER_KEYS = {}
    status, refused = program("PATCH", f"agents/{made['id']}", changes)
    assert (status, refused["error"]["field"]) == (422, field)


def test_who_began_with_an_older_version_is_told(program, made):
    path = f"agents/{made['id']}"
    program("PATCH", path, {"instructions": "Anew."})
    status, refused = program("PATCH", path, {"instructions": "Other.", "expected_version": 1})
    assert (status, refused["error"]["code"]) == (409, "conflict")


def test_a_review_shares_it(program, owners, made):
    path = f"agents/{made['id']}"
    assert owners("GET", path)[0] == 404
    status, asked = program("POST", f"{path}/review", {"note": "For all."})
    assert (status, asked["state"], asked["shared_version"]) == (200, "waiting", None)
    assert owners("GET", "agent-reviews?state=waiting") == (200, [asked])
    status, refused = program("POST", f"agent-reviews/{asked['id']}", {"approve": True})
    assert (status, refused["error"]["code"]) == (403, "forbidden")
    status, decided = owners("POST", f"agent-reviews/{asked['id']}", {"approve": True})
    assert (status, decided["state"]) == (200, "approved")
    status, seen = owners("GET", path)
    assert (status, seen["place"], seen["private"]) == (200, "organisation", False)
    assert owners("PATCH", path, {"instructions": "Mine."})[0] == 403


def test_what_was_asked_for_is_taken_back(program, made):
    path = f"agents/{made['id']}/review"
    program("POST", path, {})
    assert program("DELETE", path)[1]["state"] == "withdrawn"
    assert program("DELETE", path)[0] == 404


def test_a_token_without_the_scope_only_reads(bob, acme, made):
    reader = Program(bob, acme, [TokenScope.CONVERSATIONS_READ])
    assert reader("GET", "agents")[0] == 200
    assert reader("PATCH", f"agents/{made['id']}", {"name": "X"})[0] == 403
    assert reader("POST", "agents", {})[0] == 403


def test_mallory_finds_nothing(mallory, elsewhere, program, made):
    asked = program("POST", f"agents/{made['id']}/review", {})[1]
    hers = Program(mallory, elsewhere)
    for method, path, body in (
        ("GET", f"agents/{made['id']}", None),
        ("PATCH", f"agents/{made['id']}", {"name": "X"}),
        ("POST", f"agents/{made['id']}/duplicate", {}),
        ("GET", f"agents/{made['id']}/versions", None),
        ("POST", f"agents/{made['id']}/restore", {"version": 1}),
        ("POST", f"agents/{made['id']}/review", {}),
        ("DELETE", f"agents/{made['id']}/review", None),
        ("POST", f"agent-reviews/{asked['id']}", {"approve": True}),
    ):
        assert hers(method, path, body)[0] == 404, path
    assert hers("GET", "agent-reviews") == (200, [])
    assert made["id"] not in {each["id"] for each in hers("GET", "agents")[1]}
    status, refused = hers("POST", "agents", {"name": "X", "base": made["id"]})
    assert (status, refused["error"]["field"]) == (422, "base")
    assert not Agent.objects.filter(owner=mallory).exists()

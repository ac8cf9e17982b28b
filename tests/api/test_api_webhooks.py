"""`/api/webhooks`: a program sets up endpoints, rotates their secrets and looks after deliveries."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from accounts.actions.tokens import create_token
from accounts.models import Membership, Role, TokenScope
from tests.cast import join
from webhooks import outbox
from webhooks.models import WebhookDelivery, WebhookEndpoint

pytestmark = pytest.mark.django_db

URL = "https://hooks.example.invalid/agents"
NEW = {"url": URL, "event_types": ["session.created"]}


class Program:
    def __init__(self, user, organisation, scope: TokenScope = TokenScope.ADMIN) -> None:
        issued = create_token(actor=user, organisation=organisation, name="Program", scopes=[scope])
        self._client = Client(headers={"Authorization": f"Bearer {issued.secret}"})

    def __call__(self, method: str, path: str = "", body: Any = None) -> tuple[int, Any]:
        data = "" if body is None else json.dumps(body)
        answer = self._client.generic(
            method, f"/api/webhooks{path}", data, content_type="application/json"
        )
        return answer.status_code, json.loads(answer.content)


@pytest.fixture
def program(alice, acme) -> Program:
    return Program(alice, acme)


@pytest.fixture
def made(program: Program) -> Any:
    status, made = program("POST", body=NEW)
    assert status == 200, made
    return made


def test_an_endpoint_is_made_read_changed_switched_and_removed(program, made):
    secret = made.pop("secret")
    assert secret.startswith("whsec_")
    assert program("GET") == (200, [made])
    path = f"/{made['id']}"
    assert program("GET", path) == (200, made)
    status, changed = program("PATCH", path, {"description": "Ours"})
    assert (status, changed["description"], changed["url"]) == (200, "Ours", URL)
    status, off = program("PATCH", path, {"enabled": False, "event_types": ["*"]})
    assert (off["enabled"], off["disabled_reason"], off["event_types"]) == (False, "person", ["*"])
    assert program("PATCH", path, {"enabled": True})[1]["enabled"]
    assert program("DELETE", path) == (200, {"status": "deleted"})
    assert program("GET", path)[0] == 404


def test_a_secret_is_answered_when_it_is_made_and_never_again(program, made):
    path = f"/{made['id']}"
    status, rotated = program("POST", f"{path}/rotate", {"grace_hours": 0})
    assert status == 200
    assert rotated["secret"].startswith("whsec_")
    assert rotated["secret"] != made["secret"]
    assert WebhookEndpoint.objects.get().secrets.count() == 1
    for answer in (program("GET"), program("GET", path), program("PATCH", path, {})):
        assert "secret" not in json.dumps(answer)


def test_a_program_looks_after_deliveries(program, made):
    path = f"/{made['id']}"
    status, sent = program("POST", f"{path}/test")
    assert (status, sent["event_type"], sent["state"]) == (200, "x.webhook.test", "pending")
    row = WebhookDelivery.objects.get()
    row.state = WebhookDelivery.State.DEAD
    row.attempts = 3
    row.save()
    row.attempt_log.create(started_at=row.created_at, status=500, excerpt="Oh no")
    assert [each["id"] for each in program("GET", f"{path}/deliveries?state=dead")[1]] == [
        row.event_id
    ]
    assert program("GET", f"{path}/deliveries?state=delivered")[1] == []
    status, shown = program("GET", f"{path}/deliveries/{row.event_id}")
    assert json.loads(shown["body"])["id"] == row.event_id
    assert [each["status"] for each in shown["attempt_log"]] == [500]
    assert program("POST", f"{path}/redeliver") == (200, {"count": 1})
    status, again = program("POST", f"{path}/deliveries/{row.event_id}/redeliver")
    assert (status, again["state"], again["attempts"]) == (200, "pending", 0)
    program("PATCH", path, {"enabled": False})
    for action in ("/test", "/redeliver", f"/deliveries/{row.event_id}/redeliver"):
        status, refused = program("POST", f"{path}{action}")
        assert (status, refused["error"]["code"]) == (409, "conflict")


def test_lists_are_paged(program, made):
    endpoint = WebhookEndpoint.objects.get()
    rows = [outbox.announce_test(endpoint) for _ in range(3)]
    answer = program._client.get(f"/api/webhooks/{made['id']}/deliveries?limit=2")
    assert [each["id"] for each in answer.json()] == [rows[2].event_id, rows[1].event_id]
    _status, rest = program(
        "GET", f"/{made['id']}/deliveries?limit=2&cursor={answer['X-Next-Cursor']}"
    )
    assert [each["id"] for each in rest] == [rows[0].event_id]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "url"),
        ({**NEW, "url": "http://10.0.0.1/"}, "url"),
        ({**NEW, "event_types": []}, "event_types"),
        ({**NEW, "event_types": ["session.exploded"]}, "event_types"),
        ({**NEW, "event_types": "*"}, "event_types"),
        ({**NEW, "secret": "mine"}, "secret"),
        ({**NEW, "description": "x" * 300}, "description"),
    ],
)
def test_a_bad_endpoint_is_refused_by_its_field(program, body, field):
    status, answer = program("POST", body=body)
    assert status in {413, 422}
    assert answer["error"]["field"] == field
    assert answer["error"]["message"]
    assert not WebhookEndpoint.objects.exists()


def test_it_takes_the_scope_and_a_manager(alice, bob, acme, made):
    writer = Program(alice, acme, TokenScope.CONVERSATIONS_WRITE)
    membership = Membership.objects.filter(user=bob, organisation=acme)
    membership.update(role=Role.ADMIN)
    member = Program(bob, acme)
    membership.update(role=Role.MEMBER)
    for program in (writer, member):
        assert program("GET")[0] == 403
        assert program("POST", body=NEW)[0] == 403
    assert WebhookEndpoint.objects.count() == 1
    assert member("GET", f"/{made['id']}")[0] == 404


def test_mallory_finds_nothing_of_acmes(mallory, elsewhere, program, made):
    _status, sent = program("POST", f"/{made['id']}/test")
    stranger = Program(mallory, elsewhere)
    path = f"/{made['id']}"
    one = f"{path}/deliveries/{sent['id']}"
    assert stranger("GET") == (200, [])
    for method, address in (
        ("GET", path),
        ("PATCH", path),
        ("DELETE", path),
        ("POST", f"{path}/rotate"),
        ("POST", f"{path}/test"),
        ("POST", f"{path}/redeliver"),
        ("GET", f"{path}/deliveries"),
        ("GET", one),
        ("POST", f"{one}/redeliver"),
    ):
        status, answer = stranger(method, address, {} if method != "GET" else None)
        assert (status, answer["error"]["code"]) == (404, "not_found"), (method, address)
    assert WebhookEndpoint.objects.get().secrets.count() == 1


def test_a_token_is_for_one_organisation(alice, acme, elsewhere, made):
    join(alice, elsewhere, Role.OWNER)
    other = Program(alice, elsewhere)
    assert other("GET") == (200, [])
    assert other("GET", f"/{made['id']}")[0] == 404

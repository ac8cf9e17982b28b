"""What of `/api` shows best from inside: sessions, rates, a database that is gone, faults of ours."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import OperationalError
from django.db.models.sql.compiler import SQLCompiler, SQLInsertCompiler, SQLUpdateCompiler
from django.test import Client

from accounts.actions.tokens import create_token
from accounts.models import TokenScope
from api import conversations as door
from api import who
from conversations.models import Conversation, Run
from spending.models import Usage


@pytest.fixture
def agent(make_agent, environment):
    return make_agent("Coding")


@pytest.fixture
def token(alice, acme) -> str:
    scopes = [str(scope) for scope in TokenScope if scope != TokenScope.ADMIN]
    return create_token(actor=alice, organisation=acme, name="Tests", scopes=scopes).secret


def code_of(answer: Any) -> str:
    error = json.loads(answer.content)["error"]
    assert set(error) == {"code", "message", "hint", "field"}
    return str(error["code"])


def begin(client: Client, **extra: Any) -> Any:
    return client.post("/api/chat", "{}", content_type="application/json", **extra)


def test_a_conversation_begins_without_a_query_that_is_built_anew(
    token, agent, client, monkeypatch
):
    shown = {"Authorization": f"Bearer {token}"}
    assert begin(client, headers=shown).status_code == 200
    built: list[str] = []
    for kind in (SQLCompiler, SQLUpdateCompiler, SQLInsertCompiler):

        def noted(self: Any, *given: Any, as_sql: Any = kind.as_sql, **more: Any) -> Any:
            built.append(self.query.model.__name__)
            return as_sql(self, *given, **more)

        monkeypatch.setattr(kind, "as_sql", noted)
    assert begin(client, headers=shown).status_code == 200
    assert built == []


def test_a_browsers_session_reads_and_writes_with_its_csrf_token(alice, acme, agent):
    client = Client(enforce_csrf_checks=True)
    client.force_login(alice)
    assert client.get("/api/conversations").json() == []
    refused = begin(client)
    assert (refused.status_code, code_of(refused)) == (403, "csrf_failed")
    client.get("/new/")
    given = client.cookies["agentsite_csrf"].value
    begun = begin(client, headers={"X-CSRFToken": given})
    assert begun.status_code == 200
    uid = begun.json()["conversation_id"]
    ticket = client.post(
        f"/api/chat/{uid}/ticket",
        content_type="application/json",
        headers={"X-CSRFToken": given},
    )
    assert ticket.status_code == 200
    assert client.get("/api/auth/me").json()["scopes"] is None


def test_a_token_in_a_cookie_jar_of_somebody_else_still_speaks_for_its_own_person(
    client_of, mallory, elsewhere, agent, token
):
    client = client_of(mallory)
    begun = begin(client, headers={"Authorization": f"Bearer {token}"})
    uid = begun.json()["conversation_id"]
    assert client.get(f"/api/conversations/{uid}").status_code == 404
    authorised = {"x-api-key": token}
    assert client.get(f"/api/conversations/{uid}", headers=authorised).status_code == 200


def test_past_its_rate_a_token_is_told_how_long_to_wait(client, agent, token, settings):
    settings.AGENTSITE_API_WRITES_PER_MINUTE = 1
    authorised = {"x-api-key": token}
    assert begin(client, headers=authorised).status_code == 200
    refused = begin(client, headers=authorised)
    assert (refused.status_code, code_of(refused)) == (429, "rate_limited_by_site")
    assert int(refused["Retry-After"]) > 0
    assert client.get("/api/conversations", headers=authorised).status_code == 200


@pytest.mark.django_db
def test_without_a_database_the_server_is_not_well(client, monkeypatch):

    class Gone:
        def cursor(self) -> None:
            raise OperationalError("gone")

    monkeypatch.setattr(who, "connection", Gone())
    answer = client.get("/health")
    assert (answer.status_code, answer.json()["status"]) == (503, "unavailable")


def test_a_fault_of_ours_tells_nothing_but_that(client, agent, token, monkeypatch, caplog):
    def fail(*_arguments: object) -> None:
        raise RuntimeError("the password is hunter2")

    monkeypatch.setattr(door, "limit_of", fail)
    answer = client.get("/api/conversations", headers={"x-api-key": token})
    assert (answer.status_code, code_of(answer)) == (500, "internal")
    assert b"hunter2" not in answer.content
    assert "failed" in caplog.text


def test_a_running_conversation_is_not_deleted(client, agent, token):
    uid = begin(client, headers={"x-api-key": token}).json()["conversation_id"]

    conversation = Conversation.objects.get(uid=uid)
    Run.objects.create(
        conversation=conversation, worker="somebody", lease_until="2100-01-01T00:00Z"
    )
    answer = client.delete(f"/api/conversations/{uid}", headers={"x-api-key": token})
    assert (answer.status_code, code_of(answer)) == (409, "conflict")
    assert Conversation.objects.filter(uid=uid).exists()


def test_what_a_conversations_children_spent_it_spent(client, agent, token):

    uids = [
        begin(client, headers={"x-api-key": token}).json()["conversation_id"] for _number in "abc"
    ]
    top, child, grandchild = (Conversation.objects.get(uid=uid) for uid in uids)
    Conversation.objects.filter(pk=child.pk).update(parent=top)
    Conversation.objects.filter(pk=grandchild.pk).update(parent=child)
    for number, conversation in enumerate((top, child, grandchild), start=1):
        Usage.objects.create(
            organisation=conversation.organisation,
            conversation=conversation,
            model_request_id=f"request-{number}",
            purpose="main",
            provider="demo",
            model="demo",
            input_tokens=10**number,
            cache_read_input_tokens=1,
            output_tokens=number,
        )
    read = client.get(f"/api/conversations/{uids[0]}", headers={"x-api-key": token}).json()
    assert (read["total_input_tokens"], read["total_output_tokens"]) == (1113, 6)


def test_a_body_nested_too_deep_is_no_fault_of_the_server(token, agent):
    deep = '{"preset": ' + "[" * 100_000 + "]" * 100_000 + "}"
    client = Client(headers={"x-api-key": token}, raise_request_exception=False)
    for address in ("/api/chat", "/api/skills"):
        refused = client.post(address, deep, content_type="application/json")
        assert (refused.status_code, code_of(refused)) == (422, "bad_json")


SCHEDULE = {"name": "Nightly", "text": "Look.", "agent": "Coding", "environment": "Here"}
UNREACHABLE = {"description": "D", "rubric": "- One", "checks": [{"run": "a", "criterion": 2}]}
SECRET = "The password: 4f9a-77b1-0c2d-xyzzy"
REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("schedules", {**SCHEDULE, "cron": "never"}, "cron"),
    ("schedules", {**SCHEDULE, "timezone": "Nowhere/At_all"}, "timezone"),
    ("schedules", {**SCHEDULE, "outcome": UNREACHABLE}, "outcome"),
    ("schedules", {**SCHEDULE, "text": "{{ nothing.known }}"}, "text"),
    ("memories", {"text": SECRET}, "text"),
    ("skills/sources", {"kind": "server", "address": "nowhere"}, "address"),
    ("comparisons", {"question": "Q", "agents": ["Coding", "Nobody"]}, "agents[1]"),
    ("folders", {"name": "Tax", "default_agent_id": "Nobody"}, "default_agent_id"),
    ("collections/{papers}/documents", {"name": "a.txt"}, "content_base64"),
    ("collections/{papers}/documents", {"name": "/", "content_base64": "YQ=="}, "name"),
    ("conversations/{uid}/shares", {"user_id": "user_nobody", "role": "viewer"}, "user_id"),
]


@pytest.mark.parametrize(("address", "body", "field"), REFUSED)
def test_what_an_action_refuses_is_named_as_it_was_sent(
    client, agent, token, environment, address, body, field
):
    shown = {"x-api-key": token}
    uid = begin(client, headers=shown).json()["conversation_id"]
    body = {**body, **({"environment": environment.uid} if "environment" in body else {})}
    sent: dict[str, Any] = {"content_type": "application/json", "headers": shown}
    papers = client.post("/api/collections", {"name": "Papers"}, **sent).json()["id"]
    answer = client.post(f"/api/{address.format(uid=uid, papers=papers)}", body, **sent)
    assert answer.status_code == 422, answer.content
    assert answer.json()["error"]["field"] == field


@pytest.mark.parametrize("other", ["text", SimpleUploadedFile("b.txt", b"b")], ids=["text", "file"])
def test_no_part_of_an_upload_is_passed_over(client, agent, token, other):
    shown = {"x-api-key": token}
    uid = begin(client, headers=shown).json()["conversation_id"]
    address = f"/api/workspace/upload?conversation_id={uid}"
    form = {"files": SimpleUploadedFile("a.txt", b"a"), "subdir": other}
    answer = client.post(address, form, headers=shown)
    assert (answer.status_code, answer.json()["error"]["field"]) == (422, "subdir")
    listed = client.get(f"/api/workspace/files?conversation_id={uid}", headers=shown)
    assert listed.json() == []


def test_a_path_that_cannot_be_is_refused_with_what_to_do(client, agent, token):
    shown = {"x-api-key": token}
    uid = begin(client, headers=shown).json()["conversation_id"]
    answer = client.get(f"/api/files/{uid}/{'a' * 3_000}", headers=shown)
    assert answer.status_code == 403
    assert answer.json()["error"]["hint"]


def test_tools_of_a_preset_that_is_none_are_refused_by_the_name_it_was_sent_under(
    client, agent, token
):
    answer = client.get("/api/tools?preset=Nobody", headers={"x-api-key": token})
    assert (answer.status_code, answer.json()["error"]["field"]) == (422, "preset")

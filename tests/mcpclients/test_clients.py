"""Clients register themselves within limits, tell of themselves in documents, are blocked and forgotten."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client as Browser
from django.urls import reverse
from django.utils import timezone

from accounts.models import ApiToken, Organisation, User
from audit.models import AuditEntry
from harness.errors import Forbidden
from mcpclients.actions.clients import block_client, forget_unused
from mcpclients.documents import is_document
from mcpclients.models import Connection, McpClient
from mcpclients.redirects import is_redirect
from tests.cast import ClientOf
from tests.mcpclients.flow import OAuthClient, confirmed, opens, register

pytestmark = pytest.mark.django_db


def test_what_there_is_to_know_is_told_to_everybody(client: Browser):
    resource = client.get("/.well-known/oauth-protected-resource/mcp").json()
    assert resource == client.get("/.well-known/oauth-protected-resource").json()
    assert resource["resource"] == "http://testserver/mcp"
    server = client.get("/.well-known/oauth-authorization-server").json()
    assert resource["authorization_servers"] == [server["issuer"]] == ["http://testserver"]
    assert server["code_challenge_methods_supported"] == ["S256"]
    assert server["token_endpoint_auth_methods_supported"] == ["none", "private_key_jwt"]
    assert server["registration_endpoint"] == "http://testserver/oauth/register"
    assert server["authorization_response_iss_parameter_supported"]
    refused = client.post("/mcp", "{}", "application/json")
    assert refused.status_code == 401
    place = "http://testserver/.well-known/oauth-protected-resource/mcp"
    assert f'resource_metadata="{place}"' in refused["WWW-Authenticate"]


NO_REDIRECTS = [
    "http://client.example/back",
    "https://client.example/back#part",
    "https://user@client.example/back",
    "https://client.example\\@evil.example/",
    "https://CLIENT.example/back",
    "https://client.example:99999/",
    "https:///back",
    "https://cliént.example/back",
    "https://client.example/ back",
    "javascript:alert(1)",
    "data:text/html,x",
    "myapp://back",
    "com.example.notes:back",
    "com.example.notes:///back",
    "com.example.notes:/back#part",
    "Com.example.notes:/back",
    "view-source:/x",
    "http://127.0.0.1.evil.example/back",
    "http://localhost.evil.example/back",
    "//client.example/back",
    "",
    "https://client.example/" + "a" * 500,
]


def test_answers_go_to_no_such_address(client: Browser):
    for uri in NO_REDIRECTS:
        assert not is_redirect(uri), uri
        answer = register(client, redirect_uris=[uri])
        assert answer.status_code == 400
        assert answer.json()["error"] == "invalid_redirect_uri"
    assert not McpClient.objects.exists()


def test_programs_are_called_by_their_own_schemes_where_a_domain_or_the_operator_stands_for_them(
    alice: User, acme: Organisation, client_of: ClientOf, settings: Any
):
    hers, back = confirmed(client_of(alice)), "com.example.notes:/back"
    notes = OAuthClient.registered(redirect_uris=[back])
    answer = hers.get(notes.address())
    assert "A program on your own machine (com.example.notes:) asks" in answer.content.decode()
    assert "com.example.notes:" in answer["Content-Security-Policy"].split("form-action")[1]
    assert hers.post(notes.address(), {"decline": "1"})["Location"].startswith(f"{back}?error=")
    assert opens(notes.let_in(hers, acme)["access_token"])
    assert "Notes (com.example.notes:)" in hers.get("/settings/tokens/").content.decode()
    long = "com.evil.a-program-of-another-maker.com.example.notes:/back"
    OAuthClient.registered(redirect_uris=[long]).let_in(hers, acme)
    assert ApiToken.objects.filter(name__startswith="Notes (com.evil.").exists()
    editor = OAuthClient.registered(redirect_uris=["cursor://anysphere.cursor-mcp/back"])
    assert hers.get(editor.address()).status_code == 200
    settings.AGENTSITE_MCP_PROGRAM_SCHEMES = ["javascript"]
    assert hers.get(editor.address()).status_code == 400
    assert not is_redirect("javascript://x.example/%0Aalert(1)")


def test_behind_a_proxy_that_calls_it_otherwise_it_is_as_people_call_it(
    client: Browser, settings: Any
):
    settings.AGENTSITE_BASE_URL = "https://agents.example.org"
    settings.AGENTSITE_BEHIND_PROXY = True
    settings.ALLOWED_HOSTS = ["agents.example.org", "web"]
    for host in ("web:8000", "agents.example.org"):
        told = {"Host": host}
        resource = client.get("/.well-known/oauth-protected-resource/mcp", headers=told).json()
        assert resource["resource"] == "https://agents.example.org/mcp"
        server = client.get("/.well-known/oauth-authorization-server", headers=told).json()
        assert server["issuer"] == "https://agents.example.org"
        assert server["token_endpoint"] == "https://agents.example.org/oauth/token"
        refused = client.post("/mcp", "{}", "application/json", headers=told)
        assert 'resource_metadata="https://agents.example.org/' in refused["WWW-Authenticate"]


def test_what_a_client_says_of_itself_is_held_to_what_is_taken(client: Browser):
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"redirect_uris": []}, "invalid_redirect_uri"),
        ({"redirect_uris": "https://client.example/"}, "invalid_redirect_uri"),
        ({"redirect_uris": ["https://client.example/"] * 11}, "invalid_redirect_uri"),
        ({"client_name": 7}, "invalid_client_metadata"),
        ({"grant_types": ["client_credentials"]}, "invalid_client_metadata"),
        ({"response_types": "code"}, "invalid_client_metadata"),
    ]
    for said, error in wrong:
        assert register(client, **said).json()["error"] == error, said


def test_bodies_that_are_none_or_too_long_are_refused(client: Browser):
    for body in ("[]", "{", "7", '{"a": "' + "x" * 20_000 + '"}', "[" * 1_000):
        answer = client.post("/oauth/register", body, "application/json")
        assert answer.status_code == 400, body[:9]
        answer = client.post("/oauth/token", body, "application/x-www-form-urlencoded")
        assert answer.status_code in {400, 401}, body[:9]
    for address in ("/oauth/token", "/oauth/revoke"):
        answer = client.post(address, "a=1&" * 1_000, "application/x-www-form-urlencoded")
        assert answer.json()["error"] == "invalid_request"
    for address in ("/oauth/register", "/oauth/token", "/oauth/revoke"):
        assert client.get(address).status_code == 405


def test_a_name_is_shown_with_the_signs_that_would_hide_in_it(client: Browser):
    made = register(client, client_name="Trusted\u202egpj\u200b  App" + "x" * 200).json()
    assert made["client_name"].startswith("Trusted\\u202egpj\\u200b App")
    assert len(made["client_name"]) == 80


def test_an_address_registers_and_asks_so_often_at_most(client: Browser, settings: Any):
    settings.AGENTSITE_MCP_REGISTRATIONS_PER_HOUR = 2
    settings.AGENTSITE_MCP_EXCHANGES_PER_MINUTE = 2
    assert [register(client).status_code for _time in range(3)] == [201, 201, 429]
    notes = OAuthClient(McpClient.objects.first().client_id)
    # Another minute may begin between two of them.
    answers = [notes.token("x") for _time in range(5)]
    assert answers[0].status_code == 400
    assert answers[-1].status_code == 429
    assert int(answers[-1]["Retry-After"]) > 0
    other = client.post(
        "/oauth/token", "x=1", "application/x-www-form-urlencoded", REMOTE_ADDR="192.0.2.7"
    )
    assert other.status_code == 400
    cache.clear()
    settings.AGENTSITE_MCP_CLIENTS = 2
    assert register(client).status_code == 429


def test_a_flood_of_registrations_keeps_others_out_for_minutes_and_not_for_days(
    alice: User, acme: Organisation, client_of: ClientOf, client: Browser, settings: Any
):
    used, blocked, first, second = (OAuthClient.registered() for _one in range(4))
    used.let_in(confirmed(client_of(alice)), acme)
    McpClient.objects.filter(client_id=blocked.client_id).update(blocked_at=timezone.now())
    settings.AGENTSITE_MCP_CLIENTS = 2
    assert register(client).status_code == 429
    McpClient.objects.update(created_at=timezone.now() - timedelta(minutes=16))
    third = register(client).json()["client_id"]
    left = set(McpClient.objects.values_list("client_id", flat=True))
    assert left == {used.client_id, blocked.client_id, second.client_id, third}
    assert first.client_id not in left


def test_it_can_be_switched_off(
    client: Browser, alice: User, acme: Organisation, client_of: ClientOf, settings: Any
):
    hers, notes = confirmed(client_of(alice)), OAuthClient.registered()
    given = notes.let_in(hers, acme)
    settings.AGENTSITE_MCP_REGISTRATION = False
    assert register(client).status_code == 404
    assert (
        "registration_endpoint" not in client.get("/.well-known/oauth-authorization-server").json()
    )
    assert notes.let_in(hers, acme)["access_token"]
    settings.AGENTSITE_MCP_OAUTH = False
    assert not opens(given["access_token"])
    assert hers.get(notes.address()).status_code == 404
    assert notes.renew(given["refresh_token"]).status_code == 404
    for address in ("oauth-protected-resource", "oauth-protected-resource/mcp"):
        assert client.get(f"/.well-known/{address}").status_code == 404
    assert "resource_metadata" not in client.post("/mcp")["WWW-Authenticate"]


def test_staff_block_a_client_and_what_it_was_let_do_ends(
    alice: User, acme: Organisation, staff: User, mallory: User, client_of: ClientOf
):
    hers, notes = confirmed(client_of(alice)), OAuthClient.registered()
    given, code = notes.let_in(hers, acme), notes.code_of(hers, acme)
    row = McpClient.objects.get()
    for nobody in (alice, mallory):
        with pytest.raises(Forbidden):
            block_client(actor=nobody, client=row)
    browser = client_of(staff)
    there = reverse("admin:mcpclients_mcpclient_changelist")
    assert "Notes" in browser.get(there).content.decode()
    browser.post(there, {"action": "block", "_selected_action": [row.pk]})
    assert not opens(given["access_token"])
    assert notes.token(code).json()["error"] == "invalid_client"
    assert notes.renew(given["refresh_token"]).json()["error"] == "invalid_client"
    assert hers.get(notes.address()).status_code == 400
    assert not ApiToken.objects.filter(revoked_at=None).exists()
    assert AuditEntry.objects.get(action="mcp_client_blocked").details["tokens"] == 2
    browser.post(there, {"action": "unblock", "_selected_action": [row.pk]})
    assert notes.let_in(hers, acme)["access_token"]
    assert notes.renew(given["refresh_token"]).json()["error"] == "invalid_grant"


def test_registrations_that_nobody_uses_are_forgotten(
    alice: User, acme: Organisation, client_of: ClientOf
):
    hers = confirmed(client_of(alice))
    used, _unused, ended, blocked, new = (OAuthClient.registered() for _one in range(5))
    used.let_in(hers, acme)
    ended.let_in(hers, acme)
    long_ago = timezone.now() - timedelta(days=30)
    McpClient.objects.exclude(client_id=new.client_id).update(created_at=long_ago)
    McpClient.objects.filter(client_id=blocked.client_id).update(blocked_at=long_ago)
    ApiToken.objects.filter(mcp_connection__client__client_id=ended.client_id).update(
        revoked_at=long_ago
    )
    forget_unused()
    left = set(McpClient.objects.values_list("client_id", flat=True))
    assert left == {used.client_id, blocked.client_id, new.client_id}
    assert Connection.objects.count() == 1
    assert ApiToken.objects.count() == 2


def test_an_id_is_read_as_a_document_only_where_it_is_a_plain_address():
    assert is_document("https://client.example/oauth/client.json")
    for other in (
        "https://client.example",
        "https://client.example/",
        "http://client.example/client.json",
        "http://127.0.0.1:1/client.json",
        "https://client.example/a/../client.json",
        "https://client.example/client.json#x",
        "mcpclient_1",
    ):
        assert not is_document(other)

"""Vaults and their credentials through the official SDK: secrets go in, and none comes out."""

from __future__ import annotations

import uuid
from typing import Any

import anthropic
import pytest

from tests.contract.conftest import error_type

TOKEN = "token-that-nobody-may-read"
CREDENTIALS: dict[str, dict[str, Any]] = {
    "static_bearer": {
        "type": "static_bearer",
        "mcp_server_url": "https://mcp.example.org/team",
        "token": TOKEN,
    },
    "mcp_oauth": {
        "type": "mcp_oauth",
        "mcp_server_url": "https://oauth.example.org/mcp",
        "access_token": TOKEN,
        "expires_at": "2100-01-01T00:00:00Z",
        "refresh": {
            "token_endpoint": "https://oauth.example.invalid/token",
            "client_id": "agents",
            "refresh_token": f"{TOKEN}-2",
            "scope": "read",
            "token_endpoint_auth": {"type": "client_secret_post", "client_secret": f"{TOKEN}-3"},
        },
    },
}


@pytest.fixture
def vault(alice):
    return alice.beta.vaults.create(display_name=f"Vault {uuid.uuid4()}", metadata={"a": "1"})


@pytest.fixture
def credential(alice, vault):
    return alice.beta.vaults.credentials.create(vault.id, auth=CREDENTIALS["static_bearer"])


def test_a_vault_is_made_found_changed_archived_and_deleted(alice, vault):
    vaults = alice.beta.vaults
    assert vaults.retrieve(vault.id) == vault
    assert vault.id in {one.id for one in vaults.list(limit=1)}
    changed = vaults.update(vault.id, display_name="Other", metadata={"a": None, "b": "2"})
    assert (changed.display_name, changed.metadata) == ("Other", {"b": "2"})
    archived = vaults.archive(vault.id)
    assert archived.archived_at is not None
    assert vault.id not in {one.id for one in vaults.list()}
    assert vault.id in {one.id for one in vaults.list(include_archived=True)}
    with pytest.raises(anthropic.ConflictError):
        vaults.update(vault.id, display_name="Again")
    with pytest.raises(anthropic.ConflictError):
        vaults.credentials.create(vault.id, auth=CREDENTIALS["static_bearer"])
    assert vaults.delete(vault.id).type == "vault_deleted"
    with pytest.raises(anthropic.NotFoundError):
        vaults.retrieve(vault.id)


@pytest.mark.parametrize("kind", CREDENTIALS)
def test_a_credential_never_shows_its_secrets(alice, vault, kind):
    held = alice.beta.vaults.credentials
    made = held.create(vault.id, auth=CREDENTIALS[kind], display_name="Mine", metadata={"a": "1"})
    assert (made.auth.type, made.vault_id, made.display_name) == (kind, vault.id, "Mine")
    assert made.auth.mcp_server_url == CREDENTIALS[kind]["mcp_server_url"]
    shown = [
        made,
        held.retrieve(made.id, vault_id=vault.id),
        *held.list(vault.id),
        held.update(made.id, vault_id=vault.id, display_name=None, metadata={"a": None}),
        held.archive(made.id, vault_id=vault.id),
        *held.list(vault.id, include_archived=True),
    ]
    assert TOKEN not in "".join(one.model_dump_json() for one in shown)
    assert (shown[3].display_name, shown[3].metadata) == (None, {})
    assert not list(held.list(vault.id))
    with pytest.raises(anthropic.ConflictError):
        held.update(made.id, vault_id=vault.id, display_name="Again")
    assert held.delete(made.id, vault_id=vault.id).type == "vault_credential_deleted"


def test_what_of_an_oauth_credential_may_be_shown_is_shown_and_changed(alice, vault):
    held = alice.beta.vaults.credentials
    made = held.create(vault.id, auth=CREDENTIALS["mcp_oauth"])
    assert made.auth.refresh.token_endpoint_auth.type == "client_secret_post"
    assert (made.auth.refresh.scope, made.auth.refresh.client_id) == ("read", "agents")
    auth = {
        "type": "mcp_oauth",
        "access_token": f"{TOKEN}-new",
        "expires_at": "2101-01-01T00:00:00Z",
        "refresh": {
            "scope": "",
            "token_endpoint_auth": {"type": "client_secret_basic", "client_secret": "new-secret"},
        },
    }
    changed = held.update(made.id, vault_id=vault.id, auth=auth)
    assert changed.auth.expires_at.year == 2101
    assert changed.auth.refresh.scope is None
    assert changed.auth.refresh.token_endpoint_auth.type == "client_secret_post"


def test_one_address_has_one_credential_in_force(alice, vault, credential):
    same = {**CREDENTIALS["static_bearer"], "mcp_server_url": "HTTPS://MCP.example.org:443/team/"}
    held = alice.beta.vaults.credentials
    with pytest.raises(anthropic.ConflictError):
        held.create(vault.id, auth=same)
    held.archive(credential.id, vault_id=vault.id)
    assert held.create(vault.id, auth=same).id != credential.id


@pytest.mark.parametrize(
    ("auth", "field"),
    [
        ({**CREDENTIALS["static_bearer"], "token": "short"}, "token"),
        ({**CREDENTIALS["static_bearer"], "token": "with a space in it"}, "token"),
        ({**CREDENTIALS["static_bearer"], "mcp_server_url": "ftp://example.org"}, "mcp_server_url"),
        ({**CREDENTIALS["mcp_oauth"], "expires_at": "2001-01-01T00:00:00Z"}, "expires_at"),
        (
            {
                **CREDENTIALS["mcp_oauth"],
                "refresh": {
                    **CREDENTIALS["mcp_oauth"]["refresh"],
                    "token_endpoint": "https://169.254.169.254/token",
                },
            },
            "token_endpoint",
        ),
        (
            {
                "type": "environment_variable",
                "secret_name": "KEY",
                "secret_value": "token-that-nobody-may-read",
                "networking": {"type": "unrestricted"},
            },
            "auth.type",
        ),
    ],
)
def test_a_bad_credential_is_refused_by_its_field_and_without_its_secret(alice, vault, auth, field):
    with pytest.raises(anthropic.BadRequestError) as caught:
        alice.beta.vaults.credentials.create(vault.id, auth=auth)
    error = caught.value.response.json()["error"]
    assert error["details"]["field"].rpartition(".")[2] == field.rpartition(".")[2]
    assert error["details"]["hint"] or error["message"]
    assert TOKEN not in caught.value.response.text
    assert not list(alice.beta.vaults.credentials.list(vault.id))


def test_a_credential_keeps_its_kind(alice, vault, credential):
    with pytest.raises(anthropic.BadRequestError):
        alice.beta.vaults.credentials.update(
            credential.id, vault_id=vault.id, auth={"type": "mcp_oauth", "access_token": TOKEN}
        )


def test_a_session_says_which_vaults_it_draws_on(alice, world, make_agent, vault):
    other = alice.beta.vaults.create(display_name="Second")
    agent = make_agent()
    session = alice.beta.sessions.create(
        agent=agent.id, environment_id=world.environment, vault_ids=[other.id, vault.id]
    )
    assert session.vault_ids == [other.id, vault.id]
    assert alice.beta.sessions.retrieve(session.id).vault_ids == [other.id, vault.id]
    alice.beta.vaults.delete(other.id)
    assert alice.beta.sessions.retrieve(session.id).vault_ids == [vault.id]
    with pytest.raises(anthropic.BadRequestError):
        alice.beta.sessions.update(session.id, vault_ids=[])
    for wrong in (["vlt_nobodys"], [vault.id, vault.id]):
        with pytest.raises(anthropic.BadRequestError):
            alice.beta.sessions.create(
                agent=agent.id, environment_id=world.environment, vault_ids=wrong
            )


def test_a_token_that_nobody_answers_for_is_neither_valid_nor_invalid(alice, vault):
    auth = {**CREDENTIALS["mcp_oauth"], "mcp_server_url": "https://127.0.0.1/mcp"}
    made = alice.beta.vaults.credentials.create(vault.id, auth=auth)
    verdict = alice.beta.vaults.credentials.mcp_oauth_validate(made.id, vault_id=vault.id)
    assert (verdict.status, verdict.has_refresh_token) == ("unknown", True)
    assert verdict.mcp_probe.method == "initialize"
    assert verdict.mcp_probe.http_response is None


def test_nobody_else_finds_a_vault_or_lends_it(world, vault, credential):
    for who in ("mallory", "staff"):
        other = world.client(who)
        assert vault.id not in {one.id for one in other.beta.vaults.list()}
        held = other.beta.vaults.credentials
        for attempt in (
            lambda other=other: other.beta.vaults.retrieve(vault.id),
            lambda other=other: other.beta.vaults.update(vault.id, display_name="Mine now"),
            lambda other=other: other.beta.vaults.archive(vault.id),
            lambda other=other: other.beta.vaults.delete(vault.id),
            lambda held=held: held.list(vault.id),
            lambda held=held: held.create(vault.id, auth=CREDENTIALS["static_bearer"]),
            lambda held=held: held.retrieve(credential.id, vault_id=vault.id),
            lambda held=held: held.archive(credential.id, vault_id=vault.id),
            lambda held=held: held.mcp_oauth_validate(credential.id, vault_id=vault.id),
            lambda held=held: held.delete(credential.id, vault_id=vault.id),
        ):
            with pytest.raises(anthropic.NotFoundError):
                attempt()
        with pytest.raises(anthropic.APIStatusError) as caught:
            other.beta.sessions.create(
                agent=other.beta.agents.create(name=f"A {uuid.uuid4()}", model="demo").id,
                environment_id=world.environment,
                vault_ids=[vault.id],
            )
        assert error_type(caught) in {"invalid_request_error", "permission_error"}


def test_a_token_without_the_scope_reads_about_vaults_and_changes_none(world, vault, credential):
    reader = world.client("reader")
    assert reader.beta.vaults.retrieve(vault.id).id == vault.id
    with pytest.raises(anthropic.PermissionDeniedError):
        reader.beta.vaults.create(display_name="No")
    with pytest.raises(anthropic.PermissionDeniedError):
        reader.beta.vaults.credentials.archive(credential.id, vault_id=vault.id)

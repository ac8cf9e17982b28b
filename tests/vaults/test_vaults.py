"""Vaults: who may store a secret, which request it goes into, and that it is nowhere else."""

from __future__ import annotations

import asyncio
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from asgiref.testing import ApplicationCommunicator
from django.core.management import call_command
from django.db import connection, connections
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.actions.rotation import reseal_secrets
from accounts.actions.tokens import create_token
from accounts.models import Membership, TokenScope
from agentsite import pages
from agentsite.asgi import application
from audit.models import AuditEntry
from conversations.actions.conversations import create_conversation
from conversations.actions.lending import lend_vaults
from conversations.actions.messages import post_message
from conversations.bearers import ConversationCredentials, find_bearer
from harness.errors import Conflict, Invalid, LimitReached, NotFound, ToolError
from providers.scripted import call, reply
from tests.conversations.conftest import rested
from tests.patience import PATIENCE
from tests.webhooks.receiver import LISTENING, Answer, Receiver
from tools_app.workspace import workspace_for
from vaults import oauth
from vaults.actions import credentials as actions
from vaults.actions.vaults import archive_vault, change_vault, create_vault, delete_vault
from vaults.auth import ChangedAuth, Details, NewAuth, Refresh, Secrets, details_of, secrets_of
from vaults.models import Vault, VaultCredential
from webhooks.actions.endpoints import create_endpoint
from webhooks.models import WebhookDelivery
from webhooks.requests import Outcome

pytestmark = pytest.mark.django_db(transaction=True)

TOKEN = "token-that-nobody-may-read"
SERVICE = "https://mcp.example.org/team"
Kind = VaultCredential.Kind


def bearer(url: str = SERVICE, token: str = TOKEN) -> NewAuth:
    return NewAuth(Kind.STATIC_BEARER, url, Secrets(token=token))


@pytest.fixture
def vault(alice, acme) -> Vault:
    return create_vault(actor=alice, organisation=acme, display_name="Mine")


@pytest.fixture
def credential(alice, vault) -> VaultCredential:
    return actions.create_credential(actor=alice, vault=vault, auth=bearer())


@pytest.fixture
def conversation(alice, converse, vault):
    conversation, _ = converse()
    lend_vaults(actor=alice, conversation=conversation, vault_uids=[vault.uid])
    return conversation


def token_for(conversation, address: str = f"{SERVICE}/x") -> str:
    found = find_bearer(conversation.pk, address)
    return found.token if found else ""


# --- who ------------------------------------------------------------------------------------------


def test_nobody_but_its_owner_reaches_a_vault(alice, bob, mallory, staff, acme, vault, credential):
    for other in (bob, mallory, staff):
        assert not Vault.objects.visible_to(other).exists()
        assert not VaultCredential.objects.visible_to(other).exists()
        for attempt in (
            lambda who: change_vault(actor=who, vault=vault, display_name="No"),
            lambda who: archive_vault(actor=who, vault=vault),
            lambda who: delete_vault(actor=who, vault=vault),
            lambda who: actions.create_credential(
                actor=who, vault=vault, auth=bearer("https://a.b")
            ),
            lambda who: actions.change_credential(actor=who, credential=credential),
            lambda who: actions.archive_credential(actor=who, credential=credential),
            lambda who: actions.delete_credential(actor=who, credential=credential),
        ):
            with pytest.raises(NotFound):
                attempt(other)
    with pytest.raises(NotFound):
        create_vault(actor=mallory, organisation=acme, display_name="No")
    assert secrets_of(VaultCredential.objects.get()).token == TOKEN


def test_a_vault_is_lent_by_its_owner_to_her_own_conversations_only(
    alice, bob, acme, conversation, converse, vault
):
    other, _ = converse()
    with pytest.raises(NotFound):
        lend_vaults(actor=bob, conversation=other, vault_uids=[vault.uid])
    bobs = create_vault(actor=bob, organisation=acme, display_name="Bob's")
    archived = archive_vault(
        actor=alice, vault=create_vault(actor=alice, organisation=acme, display_name="Old")
    )
    for wrong in ([bobs.uid], ["vlt_none"], [archived.uid], [vault.uid, vault.uid], ["x"] * 51):
        with pytest.raises(Invalid) as caught:
            lend_vaults(actor=alice, conversation=other, vault_uids=wrong)
        assert caught.value.field.startswith("vault_ids")
    assert not other.session_vaults.exists()


def test_a_deactivated_account_uses_no_secret(alice, conversation, credential):
    alice.is_active = False
    alice.save(update_fields=["is_active"])
    assert token_for(conversation) == ""


def test_who_left_the_organisation_uses_no_secret_of_hers_there(
    alice, acme, conversation, credential
):
    assert token_for(conversation) == TOKEN
    Membership.objects.filter(user=alice, organisation=acme).delete()
    assert token_for(conversation) == ""


# --- which request --------------------------------------------------------------------------------


def test_the_first_vault_that_fits_counts_and_in_it_the_nearest_address(alice, acme, converse):
    first, second = (
        create_vault(actor=alice, organisation=acme, display_name=name) for name in "ab"
    )
    for held, url, token in (
        (second, "https://mcp.example.org/team/deep", "second-deep"),
        (first, "https://mcp.example.org", "first-whole"),
        (first, "https://mcp.example.org/team", "first-team"),
        (second, "https://else.example.org", "second-else"),
    ):
        actions.create_credential(actor=alice, vault=held, auth=bearer(url, token))
    conversation, _ = converse()
    lend_vaults(actor=alice, conversation=conversation, vault_uids=[first.uid, second.uid])
    for address, token in (
        ("https://mcp.example.org/team/deep/x", "first-team"),
        ("https://mcp.example.org/other", "first-whole"),
        ("https://else.example.org/", "second-else"),
        ("https://mcp.example.org.evil.example/team", ""),
        ("http://mcp.example.org/team", ""),
    ):
        assert token_for(conversation, address) == token


def test_conversations_below_share_the_vaults_and_others_do_not(
    alice, acme, conversation, converse, credential
):
    below = create_conversation(
        actor=alice,
        organisation=acme,
        agent=conversation.agent_version.agent,
        environment=conversation.environment,
        parent=conversation,
    )
    other, _ = converse()
    assert (token_for(below), token_for(other)) == (TOKEN, "")


def test_a_change_holds_for_the_very_next_request(alice, conversation, vault, credential):
    assert token_for(conversation) == TOKEN
    change = ChangedAuth("static_bearer", token="another-token")
    actions.change_credential(actor=alice, credential=credential, auth=change)
    assert token_for(conversation) == "another-token"
    actions.archive_credential(actor=alice, credential=credential)
    assert token_for(conversation) == ""
    assert VaultCredential.objects.get().sealed == ""
    actions.create_credential(actor=alice, vault=vault, auth=bearer())
    assert token_for(conversation) == TOKEN
    archive_vault(actor=alice, vault=vault)
    assert token_for(conversation) == ""
    assert not VaultCredential.objects.exclude(sealed="").exists()
    delete_vault(actor=alice, vault=vault)
    assert token_for(conversation) == ""


def test_a_conversation_without_vaults_asks_the_tables_little(
    converse, django_assert_max_num_queries
):
    conversation, _ = converse()
    with django_assert_max_num_queries(2):
        assert token_for(conversation) == ""


# --- where it is not ------------------------------------------------------------------------------


def test_a_secret_is_sealed_at_rest_and_in_no_table_audit_or_webhook(
    alice, acme, vault, tmp_path: Path
):
    create_endpoint(
        actor=alice, organisation=acme, url="https://hooks.example.invalid/", event_types=["*"]
    )
    with CaptureQueriesContext(connection) as asked:
        row = actions.create_credential(actor=alice, vault=vault, auth=bearer())
        actions.change_credential(
            actor=alice,
            credential=row,
            auth=ChangedAuth("static_bearer", token=f"{TOKEN}-2"),
        )
        actions.archive_credential(actor=alice, credential=row)
    assert TOKEN not in "".join(query["sql"] for query in asked)
    dump = tmp_path / "dump.json"
    call_command("dumpdata", "conversations", "vaults", "accounts", output=str(dump))
    assert TOKEN not in dump.read_text(encoding="utf-8")
    assert TOKEN not in repr([bearer(), Secrets(token=TOKEN), ChangedAuth("x", token=TOKEN)])
    told = list(AuditEntry.objects.order_by("pk").values_list("action", flat=True))
    assert told[1:3] == ["vault_made", "webhook_made"]
    assert told[3:] == ["secret_stored", "secret_replaced", "secret_archived"]
    entry = AuditEntry.objects.latest("pk")
    assert (entry.actor, entry.organisation) == (alice, acme)
    assert entry.details["credential"] == row.uid
    heard = WebhookDelivery.objects.order_by("pk").values_list("event_type", flat=True)
    assert list(heard) == ["vault_credential.created", "vault_credential.archived"]
    body = json.loads(WebhookDelivery.objects.first().body)
    assert body["data"]["vault_id"] == vault.uid


def test_no_command_of_the_conversation_finds_the_secret(alice, converse, vault, credential):
    look = "env; cat /proc/self/environ /proc/1/environ; grep -rs 'that-nobody' . /tmp; set"
    conversation, _ = converse(
        [reply(call("bash", command=look)), reply("Nothing.")],
    )
    lend_vaults(actor=alice, conversation=conversation, vault_uids=[vault.uid])
    post_message(actor=alice, conversation=conversation, text="Find it.")
    rested(conversation)
    payloads = [json.dumps(event.payload) for event in conversation.events.all()]
    assert not any(TOKEN in payload for payload in payloads)
    assert any("PATH=" in payload for payload in payloads)
    files = [file for file in workspace_for(conversation.uid).rglob("*") if file.is_file()]
    assert not any(TOKEN.encode() in file.read_bytes() for file in files)


def test_a_new_vault_key_reaches_credentials_too(credential, settings):
    new = "bmV3LW5ldy1uZXctbmV3LW5ldy1uZXctbmV3LW5ldyE="
    settings.AGENTSITE_VAULT_KEYS = [new, *settings.AGENTSITE_VAULT_KEYS]
    assert reseal_secrets() >= 1
    settings.AGENTSITE_VAULT_KEYS = [new]
    assert secrets_of(VaultCredential.objects.get()).token == TOKEN


def test_a_secret_that_cannot_be_opened_is_said_to_the_model_in_words(
    conversation, credential, settings
):
    settings.AGENTSITE_VAULT_KEYS = ["bmV3LW5ldy1uZXctbmV3LW5ldy1uZXctbmV3LW5ldyE="]
    ask = ConversationCredentials(conversation.pk).bearer_for
    with pytest.raises(ToolError, match="It was not fetched"):
        async_to_sync(ask)(f"{SERVICE}/x")


# --- limits ---------------------------------------------------------------------------------------


def test_a_vault_holds_twenty_credentials_in_force(alice, vault):
    for number in range(actions.MOST_CREDENTIALS):
        row = actions.create_credential(
            actor=alice, vault=vault, auth=bearer(f"https://s{number}.example.org")
        )
    with pytest.raises(LimitReached):
        actions.create_credential(actor=alice, vault=vault, auth=bearer())
    actions.archive_credential(actor=alice, credential=row)
    actions.create_credential(actor=alice, vault=vault, auth=bearer())


def test_one_address_has_one_credential_whatever_its_kind_and_spelling(alice, vault, credential):
    with pytest.raises(Conflict):
        actions.create_credential(
            actor=alice,
            vault=vault,
            auth=NewAuth(Kind.MCP_OAUTH, "HTTPS://MCP.example.org:443/team/", Secrets(token=TOKEN)),
        )


# --- OAuth ----------------------------------------------------------------------------------------


@pytest.fixture
def loopback_may_be_reached(settings):
    settings.AGENTSITE_WEBHOOK_ALLOW_HTTP = True
    settings.AGENTSITE_WEBHOOK_PRIVATE_HOSTS = LISTENING


@pytest.fixture
def renewable(alice, vault, loopback_may_be_reached):
    """A credential whose access token is over, renewed at the receiver."""

    def make(
        receiver: Receiver, *, url: str = SERVICE, client_auth="client_secret_post", over=True
    ):
        refresh = Refresh(
            token_endpoint=receiver.url, client_id="agents", client_auth=client_auth, scope="read"
        )
        secret = "" if client_auth == "none" else "client-secret"
        row = actions.create_credential(
            actor=alice,
            vault=vault,
            auth=NewAuth(
                Kind.MCP_OAUTH,
                url,
                Secrets(token=TOKEN, refresh_token="refresh-1", client_secret=secret),
                Details(expires_at=timezone.now() + timedelta(hours=1), refresh=refresh),
            ),
        )
        if over:
            past = Details(expires_at=timezone.now() - timedelta(1), refresh=refresh)
            row.details = past.model_dump(mode="json")
            row.save(update_fields=["details"])
        return row

    return make


def granted(token: str, **more: object) -> Answer:
    body = json.dumps({"access_token": token, "token_type": "Bearer", **more})
    return Answer(200, (("Content-Type", "application/json"),), body.encode())


def ask_for(conversation) -> str:
    return async_to_sync(ConversationCredentials(conversation.pk).bearer_for)(f"{SERVICE}/x")


def test_a_token_that_is_over_is_renewed_once_and_kept(conversation, renewable):
    with Receiver(granted("new-token", refresh_token="refresh-2", expires_in=3600)) as receiver:
        row = renewable(receiver)
        assert ask_for(conversation) == "new-token"
        assert ask_for(conversation) == "new-token"
    (request,) = receiver.received
    assert "grant_type=refresh_token&refresh_token=refresh-1" in request.body
    assert "client_id=agents&client_secret=client-secret" in request.body
    row.refresh_from_db()
    assert secrets_of(row).refresh_token == "refresh-2"
    expires = details_of(row).expires_at
    assert expires is not None
    assert timedelta(minutes=59) < expires - timezone.now()
    assert row.refreshing_until is None


def test_of_those_who_find_a_token_over_at_the_same_moment_one_exchanges_it(renewable):
    granting = threading.Event()

    async def all_at_once(receiver: Receiver, pk: int) -> list[str]:
        asking = [asyncio.ensure_future(oauth.fresh_token(pk)) for _ in range(6)]
        await asyncio.to_thread(receiver.wait_for, 1)
        granting.set()
        return await asyncio.gather(*asking)

    with Receiver(replace(granted("new-token", expires_in=3600), hold=granting)) as receiver:
        found = async_to_sync(all_at_once)(receiver, renewable(receiver).pk)
    assert found == ["new-token"] * 6
    assert len(receiver.received) == 1


@pytest.mark.parametrize("client_auth", ["none", "client_secret_basic"])
def test_the_client_shows_who_it_is_as_was_agreed(conversation, renewable, client_auth):
    with Receiver(granted("new-token")) as receiver:
        renewable(receiver, client_auth=client_auth)
        assert ask_for(conversation) == "new-token"
    (request,) = receiver.received
    assert "client_secret" not in request.body
    assert ("client_id=agents" in request.body) is (client_auth == "none")
    assert ("authorization" in request.headers) is (client_auth == "client_secret_basic")


@pytest.mark.parametrize(
    "answer",
    [Answer(400, body=b'{"error":"invalid_grant"}'), Answer(200, body=b"[[["), granted("")],
)
def test_a_refused_renewal_is_said_announced_and_loses_nothing(
    alice, acme, conversation, renewable, answer
):
    create_endpoint(
        actor=alice,
        organisation=acme,
        url="https://hooks.example.invalid/",
        event_types=["vault_credential.refresh_failed"],
    )
    with Receiver(answer) as receiver:
        row = renewable(receiver)
        with pytest.raises(ToolError, match="token endpoint"):
            ask_for(conversation)
    row.refresh_from_db()
    assert secrets_of(row).refresh_token == "refresh-1"
    assert row.refreshing_until is None
    assert WebhookDelivery.objects.get().subject == row.uid


def test_who_replaced_the_secret_meanwhile_has_the_last_word(alice, conversation, renewable):
    with Receiver() as receiver:
        row = renewable(receiver)
        claimed = oauth._claim(row.pk, None)
        assert isinstance(claimed, oauth.Claimed)
        assert oauth._claim(row.pk, None) is None, "one process exchanges, the others wait"
        change = ChangedAuth(
            "mcp_oauth", token="by-hand-token", expires_at=timezone.now() + timedelta(hours=2)
        )
        actions.change_credential(actor=alice, credential=row, auth=change)
        kept = oauth._store(claimed, Secrets(token="from-endpoint"), claimed.details)
    assert kept == "by-hand-token"
    assert ask_for(conversation) == "by-hand-token"
    assert not receiver.received


def test_a_credential_is_tried_at_its_server_and_renewed_when_refused(renewable):
    refused = Answer(401, body=f"no {TOKEN}".encode())
    good = Answer(200, (("Mcp-Session-Id", "s1"),), b"{}")
    with Receiver(refused, granted("new-token"), good) as server:
        row = renewable(server, url=server.url, over=False)
        verdict = async_to_sync(oauth.validate)(row.pk)
    assert verdict.status == "valid"
    assert verdict.refreshed is not None
    assert verdict.refreshed.status == "succeeded"
    tried, _renewed, first, second = server.received
    assert tried.headers["authorization"] == f"Bearer {TOKEN}"
    assert first.headers["authorization"] == "Bearer new-token"
    assert (json.loads(second.body)["method"], second.headers["mcp-session-id"]) == (
        "tools/list",
        "s1",
    )


def test_a_refusal_is_told_without_the_secret():
    told = {"content-type": f"text/{TOKEN}"}
    outcome = Outcome(403, body=f"not you, {TOKEN}", headers=told)
    answered = oauth._answered(outcome, Secrets(token=TOKEN))
    assert answered is not None
    assert answered.body == "not you, [secret]"
    assert answered.content_type == "text/[secret]"


def test_of_a_refusal_inside_the_network_the_status_is_told_alone(
    alice, vault, loopback_may_be_reached
):
    kind = (("Content-Type", "text/inside"),)
    with Receiver(Answer(403, kind, b"requirepass hunter2")) as server:
        row = actions.create_credential(actor=alice, vault=vault, auth=bearer(server.url))
        verdict = async_to_sync(oauth.validate)(row.pk)
    assert (verdict.status, verdict.failed_step) == ("invalid", "initialize")
    assert verdict.answered == oauth.Answered(403, "", "", body_truncated=False)
    assert verdict.refreshed is None


def test_a_try_keeps_no_thread_of_requests_and_a_second_one_is_refused_meanwhile(
    alice, acme, vault, loopback_may_be_reached, monkeypatch
):
    """All pages and requests of this site have one thread here; the service says nothing yet."""
    monkeypatch.setattr(pages, "_threads", ThreadPoolExecutor(1))
    issued = create_token(actor=alice, organisation=acme, name="one", scopes=TokenScope.values)
    answers = threading.Event()

    async def asked(method: str, path: str) -> tuple[int, dict[str, str], dict[str, Any]]:
        headers = [(b"host", b"testserver"), (b"x-api-key", issued.secret.encode())]
        scope = {"type": "http", "http_version": "1.1", "method": method, "path": path}
        rest = {"raw_path": path.encode(), "query_string": b"", "headers": headers}
        line = ApplicationCommunicator(application, {**scope, **rest})
        await line.send_input({"type": "http.request", "body": b""})
        start = await line.receive_output(10)
        body = await line.receive_output(10)
        told = {name.decode().lower(): value.decode() for name, value in start["headers"]}
        return start["status"], told, json.loads(body["body"])

    async def all_of_it(server: Receiver, path: str) -> None:
        first = asyncio.ensure_future(asked("POST", path))
        await asyncio.to_thread(server.wait_for, 1)
        try:
            status, headers, body = await asked("POST", path)
            assert (status, body["error"]["details"]["error_code"]) == (429, "busy")
            assert int(headers["retry-after"]) > 0
            assert headers["request-id"]
            assert (await asked("GET", f"/v1/vaults/{vault.uid}"))[0] == 200
        finally:
            answers.set()
        status, _, body = await first
        assert (status, body["status"], body["mcp_probe"]["method"]) == (
            200,
            "invalid",
            "initialize",
        )
        assert (await asked("POST", path))[0] == 200  # her place is free again

    with Receiver(Answer(403, hold=answers)) as server:
        row = actions.create_credential(actor=alice, vault=vault, auth=bearer(server.url))
        path = f"/v1/vaults/{vault.uid}/credentials/{row.uid}/mcp_oauth_validate"
        async_to_sync(all_of_it)(server, path)
    pages._threads.submit(connections.close_all).result(PATIENCE)

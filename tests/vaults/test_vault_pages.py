"""The pages of one's vaults, and what staff see of them: names and addresses, never a secret."""

from __future__ import annotations

import pytest
from django.urls import reverse

from conversations.models import Conversation, SessionVault
from tests.cast import shown
from tests.tables import table
from vaults.actions.credentials import create_credential
from vaults.actions.vaults import create_vault
from vaults.auth import NewAuth, Secrets, secrets_of
from vaults.models import Vault, VaultCredential

pytestmark = pytest.mark.django_db

TOKEN = "token-that-nobody-may-read"
SERVICE = "https://mcp.example.org/team"


@pytest.fixture
def vault(alice, acme) -> Vault:
    return create_vault(actor=alice, organisation=acme, display_name="Mine")


@pytest.fixture
def credential(alice, vault) -> VaultCredential:
    auth = NewAuth(VaultCredential.Kind.STATIC_BEARER, SERVICE, Secrets(token=TOKEN))
    return create_credential(actor=alice, vault=vault, auth=auth)


def page(name: str, *uids: str) -> str:
    return reverse(f"vaults:{name}", args=uids)


def test_a_person_makes_a_vault_and_stores_a_token(client_of, alice, acme):
    client = client_of(alice)
    answer = client.post(page("vaults"), shown(acme, display_name=" Work  tokens "))
    vault = Vault.objects.get()
    assert answer["Location"] == page("vault", vault.uid)
    assert (vault.owner, vault.organisation, vault.display_name) == (alice, acme, "Work tokens")
    answer = client.post(
        page("vault", vault.uid), {"mcp_server_url": SERVICE, "token": TOKEN}, follow=True
    )
    assert SERVICE in answer.content.decode()
    assert TOKEN not in answer.content.decode()
    assert secrets_of(VaultCredential.objects.get()).token == TOKEN


def test_a_refused_token_keeps_the_address_and_shows_no_token(client_of, alice, vault):
    answer = client_of(alice).post(
        page("vault", vault.uid), {"mcp_server_url": SERVICE, "token": "with a space in it"}
    )
    assert answer.status_code == 422
    assert SERVICE in answer.content.decode()
    assert "with a space in it" not in answer.content.decode()


def test_a_secret_is_replaced_forgotten_and_deleted(client_of, alice, vault, credential):
    client = client_of(alice)
    uids = (vault.uid, credential.uid)
    refused = client.post(page("vault-replace", *uids), {"token": "short"})
    assert refused.status_code == 422
    assert "8 to 8" in refused.content.decode()
    client.post(page("vault-replace", *uids), {"token": "another-token"})
    credential.refresh_from_db()
    assert secrets_of(credential).token == "another-token"
    client.post(page("vault-credential-archive", *uids))
    credential.refresh_from_db()
    assert credential.sealed == ""
    client.post(page("vault-credential-delete", *uids))
    assert not VaultCredential.objects.exists()
    client.post(page("vault-archive", vault.uid))
    assert not Vault.objects.in_force().exists()
    assert client.post(page("vault-delete", vault.uid))["Location"] == page("vaults")
    assert not Vault.objects.exists()


def test_bob_and_staff_find_no_page_of_alices_vault(client_of, bob, staff, vault, credential):
    for other in (bob, staff):
        client = client_of(other)
        assert client.get(page("vault", vault.uid)).status_code == 404
        for name in ("vault-archive", "vault-delete"):
            assert client.post(page(name, vault.uid)).status_code == 404
        uids = (vault.uid, credential.uid)
        for name in ("vault-replace", "vault-credential-archive", "vault-credential-delete"):
            assert client.post(page(name, *uids), {"token": TOKEN}).status_code == 404


def test_a_conversation_begins_with_the_vaults_that_were_ticked(
    client_of, alice, bob, acme, vault, environment, make_agent
):
    begin = {"agent": make_agent().uid, "environment": environment.uid}
    client = client_of(alice)
    assert vault.uid in client.get(reverse("conversations:new")).content.decode()
    client.post(reverse("conversations:new"), shown(acme, **begin, vaults=[vault.uid]))
    assert SessionVault.objects.get().conversation == Conversation.objects.get()
    theirs = client_of(bob)
    assert vault.uid not in theirs.get(reverse("conversations:new")).content.decode()
    answer = theirs.post(reverse("conversations:new"), shown(acme, **begin, vaults=[vault.uid]))
    assert answer.status_code == 422
    assert Conversation.objects.count() == 1


def test_staff_see_in_the_admin_that_there_is_a_secret_and_not_which(
    client_of, staff, vault, credential
):
    client = client_of(staff)
    for name, row in (("vault", vault), ("vaultcredential", credential)):
        for address in (
            reverse(f"admin:{table(name)}_changelist"),
            reverse(f"admin:{table(name)}_change", args=[row.pk]),
        ):
            text = client.get(address).content.decode()
            assert row.uid in text
            assert TOKEN not in text
            assert credential.sealed not in text
        delete = reverse(f"admin:{table(name)}_delete", args=[row.pk])
        assert client.post(delete, {"post": "yes"}).status_code == 403


def test_the_audit_log_names_the_vault_and_the_service(client_of, alice, vault, credential):
    text = client_of(alice).get(reverse("audit:audit")).content.decode()
    assert vault.uid in text
    assert SERVICE in text
    assert TOKEN not in text

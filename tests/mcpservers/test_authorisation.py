"""People connect accounts of their own at MCP servers, against a real authorisation server on loopback."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from accounts.actions.rotation import reseal_secrets
from accounts.models import Organisation, User
from audit.models import AuditEntry
from conversations.actions.messages import post_message
from conversations.actions.sharing import share_conversation
from conversations.models import Conversation
from harness.agentconfig import McpUse, ToolRule
from harness.content import text_of
from harness.errors import AgentError, Forbidden, Invalid, NotFound
from mcpservers.actions.connections import begin_connection, finish_connection, register_client
from mcpservers.actions.servers import add_server, change_server
from mcpservers.connecting import MOST_STEPS, connection_of
from mcpservers.listing import note_failure
from mcpservers.models import McpClient, McpConnection, McpFlow, McpServer
from providers.scripted import call, reply
from tests.cast import ClientOf, shown
from tests.conversations.conftest import Converse, rested
from tests.standins.authorisation import AuthorisationServer
from tests.standins.mcp_server import Remote
from vaults.actions.credentials import archive_credential
from vaults.models import VaultCredential

from .test_calls import answered

pytestmark = pytest.mark.django_db(transaction=True)

BACK = "https://agents.example.org/settings/mcp-servers/x/connected/"


@pytest.fixture
def guarded(
    remote: Remote, guard: AuthorisationServer, alice: User, acme: Organisation
) -> McpServer:
    """One that refused to be looked at."""
    scope = McpServer.Scope.ORGANISATION
    return add_server(actor=alice, organisation=acme, scope=scope, name="guarded", url=remote.url)


def begun(actor: User, acme: Organisation, server: McpServer, **more: Any) -> str:
    given = {"redirect_uri": BACK, **more}
    return begin_connection(actor=actor, organisation=acme, server=server, **given).url


def connected(
    actor: User, acme: Organisation, server: McpServer, guard: AuthorisationServer
) -> McpConnection:
    given = guard.allow(begun(actor, acme, server))
    made = finish_connection(actor=actor, server=server, given=given).connection
    assert made is not None
    return made


def used(alice: User, converse: Converse, *, shared_with: User | None = None) -> Conversation:
    """A turn in which the agent calls the tool of the server."""
    conversation, _script = converse(
        [reply(call("mcp__guarded__echo", text="ahoy")), reply("Done.")],
        tools=(ToolRule(tool="mcp:guarded:*"),),
        mcp_servers=(McpUse(name="guarded"),),
    )
    if shared_with is not None:
        share_conversation(
            actor=alice, conversation=conversation, user_uid=shared_with.uid, role="decider"
        )
    post_message(actor=alice, conversation=conversation, text="Go.")
    return rested(conversation)


def words(conversation: Conversation) -> str:
    return text_of(answered(conversation).content)


def wanted(conversation: Conversation) -> str:
    """What the conversation rests for: an account."""
    assert conversation.waits_for_person
    question = conversation.mcp_questions.get()
    assert question.kind == "connect"
    return str(question.asked["account"]["message"])


def test_a_person_connects_on_the_page_of_a_server_and_her_calls_carry_her_token(
    alice: User, bob: User, mallory: User, acme: Organisation, guarded: McpServer,
    guard: AuthorisationServer, remote: Remote, client_of: ClientOf, converse: Converse,
):  # fmt: skip
    client, page = client_of(alice), reverse("mcpservers:server", args=[guarded.uid])
    guarded.refresh_from_db()
    assert guarded.wants_authorisation
    assert "Connect" in client.get(page).content.decode()
    back = "/conversations/"
    shown_way = client.post(f"{page}connect/", shown(acme, back=back)).content.decode()
    found = re.search(r'href="(http://127[^"]+)"', shown_way)
    assert found is not None
    url = html.unescape(found[1])
    assert f"Continue to {guard.issuer.removeprefix('http://')}" in shown_way
    assert {"resource", "code_challenge", "state"} <= {
        each.split("=")[0] for each in url.split("&")
    }
    answer = client.get(f"{page}connected/", guard.allow(url))
    assert answer["Location"] == back
    (token,) = guard.tokens
    assert AuditEntry.objects.filter(action="mcp_connected").count() == 1
    stored = VaultCredential.objects.get()
    assert token not in f"{stored.sealed} {stored.details}"
    # Its tools were looked at with it, since alice may do so.
    assert guarded.tools.get().remote_name == "echo"
    conversation = used(alice, converse)
    assert words(conversation) == "you said ahoy"
    assert remote.headers[-1]["authorization"] == f"Bearer {token}"
    assert token not in str([row.payload for row in conversation.events.all()])
    assert token not in client.get(page).content.decode()
    # Whoever manages the server sees whose accounts are connected, and nobody else does.
    assert "Who is connected" in client.get(page).content.decode()
    assert "Who is connected" not in client_of(bob).get(page).content.decode()
    for who in (bob, mallory):
        assert not McpConnection.objects.visible_to(who).exists()
    answer = client.post(f"{page}disconnect/", shown(acme))
    assert not McpConnection.objects.exists()
    assert guard.revoked
    assert "connect an account" in wanted(used(alice, converse))


def test_a_server_that_answers_that_it_wants_an_account_is_failing_no_more(guarded: McpServer):
    note_failure(guarded.pk, "Nobody is there.")
    guarded.refresh_from_db()
    assert guarded.failing_since
    note_failure(guarded.pk, "It wants other credentials (401).", unauthorised=True)
    now = McpServer.objects.get(pk=guarded.pk)
    assert now.failing_since is None
    assert now.wants_authorisation


def test_a_token_is_renewed_when_the_server_takes_it_no_more_and_the_call_is_made_once(
    alice: User, acme: Organisation, guarded: McpServer, guard: AuthorisationServer,
    remote: Remote, converse: Converse, client_of: ClientOf,
):  # fmt: skip
    connected(alice, acme, guarded, guard)
    client_of(alice).post(reverse("mcpservers:server-look", args=[guarded.uid]))
    guard.tokens.clear()
    assert words(used(alice, converse)) == "you said ahoy"
    assert len(remote.called) == 1
    guard.tokens.clear()
    guard.renewals.clear()
    assert "connect an account" in wanted(used(alice, converse))
    assert len(remote.called) == 1


def test_a_server_that_wants_more_is_connected_anew_with_both_and_not_without_end(
    alice: User, acme: Organisation, guarded: McpServer, guard: AuthorisationServer,
    client_of: ClientOf, converse: Converse,
):  # fmt: skip
    connected(alice, acme, guarded, guard)
    client_of(alice).post(reverse("mcpservers:server-look", args=[guarded.uid]))
    guard.needs = "write"
    assert "allow more: write" in wanted(used(alice, converse))
    page = client_of(alice).get(reverse("mcpservers:server", args=[guarded.uid]))
    assert "The server wants more: write" in page.content.decode()
    url = begun(alice, acme, guarded)
    assert "scope=read+write" in url
    finish_connection(actor=alice, server=guarded, given=guard.allow(url))
    assert words(used(alice, converse)) == "you said ahoy"
    guard.tokens = dict.fromkeys(guard.tokens, "read")
    assert "does not let" in words(used(alice, converse)), "it was asked for before"
    guard.needs = "more"
    assert "allow more" in wanted(used(alice, converse))
    McpConnection.objects.update(steps=MOST_STEPS, wanted_scope="")
    assert "does not let" in words(used(alice, converse))


def test_nobody_acts_by_anothers_account(
    alice: User, bob: User, mallory: User, acme: Organisation, elsewhere: Organisation,
    guarded: McpServer, guard: AuthorisationServer, client_of: ClientOf, converse: Converse,
):  # fmt: skip
    connected(alice, acme, guarded, guard)
    client_of(alice).post(reverse("mcpservers:server-look", args=[guarded.uid]))
    assert connection_of(guarded, bob.pk, acme.pk) is None
    assert "connect an account" in words(used(alice, converse, shared_with=bob))
    bobs = guard.allow(begun(bob, acme, guarded))
    with pytest.raises(NotFound):
        finish_connection(actor=alice, server=guarded, given=bobs)
    with pytest.raises(NotFound):
        begun(mallory, elsewhere, guarded)
    for name in ("connect", "disconnect", "client"):
        path = reverse(f"mcpservers:server-{name}", args=[guarded.uid])
        assert client_of(mallory).post(path, shown(elsewhere)).status_code == 404
    path = reverse("mcpservers:server-connected", args=[guarded.uid])
    assert client_of(mallory).get(path, bobs).status_code == 404
    with pytest.raises(Forbidden):
        register_client(actor=bob, server=guarded, issuer=guard.issuer, client_id="x")
    assert finish_connection(actor=bob, server=guarded, given=bobs).connection is not None
    with pytest.raises(NotFound):
        finish_connection(actor=bob, server=guarded, given=bobs)


def test_who_archives_the_secret_in_the_vault_or_moves_the_server_has_ended_it(
    alice: User, acme: Organisation, guarded: McpServer, guard: AuthorisationServer
):
    made = connected(alice, acme, guarded, guard)
    assert connection_of(guarded, alice.pk, acme.pk) == made
    moved = change_server(actor=alice, server=guarded, url="https://elsewhere.example.org/mcp")
    assert connection_of(moved, alice.pk, acme.pk) is None
    assert not McpClient.objects.exists()
    back = change_server(actor=alice, server=guarded, url=guarded.url)
    archive_credential(actor=alice, credential=made.credential)
    assert connection_of(back, alice.pk, acme.pk) is None


def test_a_client_by_hand_goes_before_our_document_and_that_before_registering(
    alice: User, acme: Organisation, guarded: McpServer, guard: AuthorisationServer, client: Client
):
    document = "https://agents.example.org/mcp-clients/x.json"
    begun(alice, acme, guarded, document=document)
    assert McpClient.objects.get().kind == McpClient.Kind.DYNAMIC
    begun(alice, acme, guarded)
    assert len(guard.clients) == 1, "it is registered once"
    McpClient.objects.all().delete()
    guard.said["client_id_metadata_document_supported"] = True
    assert "client_id=https%3A%2F%2Fagents" in begun(alice, acme, guarded, document=document)
    register_client(
        actor=alice, server=guarded, issuer=guard.issuer, client_id="ours", client_secret="s3cret"
    )
    assert "client_id=ours" in begun(alice, acme, guarded, document=document)
    assert "s3cret" not in McpClient.objects.get().sealed + McpFlow.objects.get().sealed
    reseal_secrets()
    guard.clients["ours"] = {"redirect_uris": [BACK], "client_secret": "s3cret"}
    assert connected(alice, acme, guarded, guard).issuer == guard.issuer
    path = reverse("mcpservers:client-document", args=[guarded.uid])
    told = client.get(path).json()
    assert told["client_id"].endswith(path)
    assert told["redirect_uris"] == [told["client_id"].replace(path, reverse(
        "mcpservers:server-connected", args=[guarded.uid]))]  # fmt: skip
    with pytest.raises(Invalid) as refused:
        register_client(actor=alice, server=guarded, issuer="http://10.0.0.1", client_id="x")
    assert refused.value.field == "issuer"


@pytest.mark.parametrize(
    ("of_server", "of_guard", "why"),
    [
        ({"resource": "https://bank.example.org/mcp"}, {}, "about another address"),
        ({}, {"issuer": "https://login.example.org"}, "another authorisation server"),
        ({}, {"code_challenge_methods_supported": ["plain"]}, "PKCE"),
        ({}, {"code_challenge_methods_supported": None}, "PKCE"),
        ({}, {"token_endpoint": "http://169.254.169.254/token"}, "leads to"),
        ({}, {"authorization_endpoint": "http://login.example.org/"}, "leads to"),
        ({}, {"authorization_endpoint": "javascript:alert(1)"}, "does not say who"),
        ({}, {"registration_endpoint": "https://10.1.2.3/"}, "leads to"),
        ({}, {"registration_endpoint": None}, "registers nobody"),
        ({"authorization_servers": ["http://10.0.0.7/"]}, {}, "leads to"),
        ({"scopes_supported": ["x" * 3_000]}, {}, "more permissions"),
    ],
)
def test_what_a_server_says_of_its_guard_is_not_believed_blindly(
    of_server: dict[str, Any], of_guard: dict[str, Any], why: str, alice: User,
    acme: Organisation, guarded: McpServer, guard: AuthorisationServer,
):  # fmt: skip
    guard.resource_said, guard.said = of_server, of_guard
    with pytest.raises(AgentError) as refused:
        begun(alice, acme, guarded)
    assert why in refused.value.message
    assert not McpFlow.objects.exists()


@pytest.mark.parametrize(
    "said",
    [
        {"client_secret": "abc", "client_secret_expires_at": 10**400},
        {"client_secret": "abc", "client_secret_expires_at": "soon"},
        {"client_id": "a\n"},
        {"client_id": "a", "client_name": "\ud800"},
    ],
    ids=["endless", "words", "control", "half"],
)
def test_a_registration_that_cannot_be_kept_is_refused(
    said: dict[str, Any], alice: User, acme: Organisation, guarded: McpServer,
    guard: AuthorisationServer,
):  # fmt: skip
    guard.registers_with = said
    with pytest.raises(AgentError, match="cannot be used"):
        begun(alice, acme, guarded)
    assert not McpFlow.objects.exists()


def test_an_answer_of_another_authorisation_server_or_none_gets_no_code_sent(
    alice: User, acme: Organisation, guarded: McpServer, guard: AuthorisationServer
):
    for more in ({"iss": "https://evil.example.org"}, {"iss": ""}):
        given = {**guard.allow(begun(alice, acme, guarded)), **more}
        with pytest.raises(AgentError) as refused:
            finish_connection(actor=alice, server=guarded, given=given)
        assert "Another authorisation server answered" in refused.value.message
    given = guard.allow(begun(alice, acme, guarded)) | {"error": "access_denied"}
    assert finish_connection(actor=alice, server=guarded, given=given).connection is None
    given = guard.allow(begun(alice, acme, guarded)) | {"state": "forged"}
    with pytest.raises(NotFound):
        finish_connection(actor=alice, server=guarded, given=given)
    assert "/token" not in [path for path, _form in guard.heard]

"""People let clients in at `/mcp`: what they are shown, what it opens, and what nobody else gets of it."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client as Browser
from django.utils import timezone

from accounts.actions.members import remove_member
from accounts.actions.own_account import delete_own_account
from accounts.actions.tokens import revoke_token, rotate_token
from accounts.models import ApiToken, Membership, Organisation, User
from audit.models import AuditEntry
from harness.errors import Conflict
from mcpclients.models import Connection
from tests.cast import ClientOf
from tests.mcpclients.flow import (
    BACK,
    ISSUER,
    RESOURCE,
    OAuthClient,
    brought_back,
    confirmed,
    opens,
)

Given = dict[str, Any]


@pytest.fixture
def hers(alice: User, acme: Organisation, client_of: ClientOf) -> Browser:
    return confirmed(client_of(alice))


@pytest.fixture
def notes(db: None) -> OAuthClient:
    return OAuthClient.registered()


def test_a_person_is_shown_who_asks_and_decides(hers: Browser, notes: OAuthClient):
    answer = hers.get(notes.address())
    page = answer.content.decode()
    assert "client.example asks" in page
    assert "Nobody has checked that" in page
    assert "You are signed in as alice." in page
    assert "Read conversations, memories, documents" in page
    assert answer["X-Frame-Options"] == "DENY"
    policy = answer["Content-Security-Policy"].split("; ")
    assert {"frame-ancestors 'none'", "form-action 'self' https:"} <= set(policy)
    assert "no-store" in answer["Cache-Control"]
    # With none, a browser would send the form with the origin `null`, which is nobody's.
    assert answer["Referrer-Policy"] == "same-origin"
    declined = hers.post(notes.address(), {"decline": "1"})
    assert declined["Location"].startswith(f"{BACK}?")
    back = {"error": "access_denied", "iss": ISSUER, "state": "as it was"}
    assert brought_back(declined) == back
    assert not ApiToken.objects.exists()


def test_what_was_allowed_is_a_token_of_hers_for_mcp_alone(
    hers: Browser, notes: OAuthClient, alice: User, acme: Organisation
):
    given = notes.let_in(hers, acme)
    assert given["token_type"] == "Bearer"
    assert given["scope"] == "conversations:read conversations:write"
    secret = given["access_token"]
    assert opens(secret)
    headers = {"Authorization": f"Bearer {secret}"}
    for address in ("/v1/agents", "/api/conversations", "/agui"):
        assert Browser().get(address, headers=headers).status_code in {401, 403, 405}
    assert Browser().get("/v1/agents", headers={"x-api-key": secret}).status_code == 401
    token = ApiToken.objects.get()
    assert (token.user, token.organisation, token.audience) == (alice, acme, "mcp")
    assert token.expiry is not None
    assert timedelta(days=89) < token.expiry - timezone.now() <= timedelta(days=90)
    page = hers.get("/settings/tokens/").content.decode()
    assert "Notes (client.example)" in page
    assert "a client that was let in at /mcp" in page
    assert AuditEntry.objects.get(action="token_made").details["only_for"] == "mcp"
    with pytest.raises(Conflict):
        rotate_token(actor=alice, token=token)
    row = Connection.objects.get()
    stored = " ".join(str(value) for value in vars(row).values())
    for known in (secret, given["refresh_token"], given["refresh_token"].partition(".")[0]):
        assert known not in stored


def test_a_session_without_the_password_lets_nobody_in(
    alice: User, acme: Organisation, client_of: ClientOf, notes: OAuthClient
):
    browser = client_of(alice)
    for answer in (browser.get(notes.address()), browser.post(notes.address(), {"allow": "1"})):
        assert answer.status_code == 302
        assert answer["Location"].startswith(("/accounts/reauthenticate/", "/oauth/authorize?"))
    stranger = Browser().get(notes.address())
    assert stranger["Location"].startswith("/accounts/login/?next=/oauth/authorize%3F")
    assert not ApiToken.objects.exists()


WRONG_REQUESTS: list[tuple[Given, str]] = [
    ({"redirect_uri": "https://evil.example/back"}, ""),
    ({"redirect_uri": f"{BACK}/more"}, ""),
    ({"redirect_uri": f"{BACK}?x=1"}, ""),
    ({"redirect_uri": "https://client.example@evil.example/back"}, ""),
    ({"redirect_uri": "https://client.example:8443/back"}, ""),
    ({"redirect_uri": None}, ""),
    ({"client_id": "nobody"}, ""),
    ({"client_id": None}, ""),
    ({"response_type": "token"}, "unsupported_response_type"),
    ({"response_type": "code token"}, "unauthorized_client"),
    ({"code_challenge": None}, "invalid_request"),
    ({"code_challenge_method": "plain"}, "invalid_request"),
    ({"code_challenge_method": None}, "invalid_request"),
    ({"code_challenge": "short"}, "invalid_request"),
    ({"resource": "https://elsewhere.example/mcp"}, "invalid_target"),
    ({"resource": f"{RESOURCE}/more"}, "invalid_target"),
    ({"scope": "admin"}, "invalid_scope"),
    ({"response_mode": "fragment"}, "invalid_request"),
]
"""And the error that the client is told; without one it is told nothing."""


def test_a_wrong_request_goes_nowhere_or_back_with_an_error(
    hers: Browser, notes: OAuthClient, acme: Organisation
):
    form = {"organisation": acme.uid, "scopes": ["conversations:read"], "days": "90", "allow": "1"}
    for more, error in WRONG_REQUESTS:
        address = notes.address(**more)
        for answer in (hers.get(address), hers.post(address, form)):
            if error:
                assert answer["Location"].startswith(f"{BACK}?"), more
                assert brought_back(answer)["error"] == error, more
                assert brought_back(answer)["iss"] == ISSUER
            else:
                assert answer.status_code == 400, more
                assert "Location" not in answer
    assert not ApiToken.objects.exists()


def test_on_her_own_machine_any_port_will_do(hers: Browser, acme: Organisation):
    local = OAuthClient.registered(redirect_uris=["http://127.0.0.1:1/cb"])
    local.redirect_uri = "http://127.0.0.1:54321/cb"
    page = hers.get(local.address()).content.decode()
    assert "A program on your own machine (127.0.0.1:54321) asks" in page
    assert local.let_in(hers, acme)["access_token"]
    for other in ("http://127.0.0.1:54321/other", "http://localhost:54321/cb"):
        assert hers.get(local.address(redirect_uri=other)).status_code == 400


def test_only_what_was_asked_and_chosen_is_allowed(
    hers: Browser, notes: OAuthClient, acme: Organisation, elsewhere: Organisation
):
    reads = {"scope": "conversations:read"}
    refusals: list[Given] = [
        {"scopes": ["conversations:write"]},
        {"scopes": ["admin"]},
        {"scopes": []},
        {"organisation": elsewhere.uid},
        {"days": "3650"},
    ]
    for wrong in refusals:
        form: Given = {
            "organisation": acme.uid, "scopes": ["conversations:read"], "days": "90", "allow": "1"
        }  # fmt: skip
        assert hers.post(notes.address(**reads), {**form, **wrong}).status_code == 422
    assert not ApiToken.objects.exists()


def test_a_code_serves_its_client_once_with_its_proof(
    hers: Browser, notes: OAuthClient, alice: User, acme: Organisation
):
    code = notes.code_of(hers, acme)
    mallorys = OAuthClient.registered(client_name="Mallory")
    mallorys.verifier = notes.verifier
    assert mallorys.token(code).json()["error"] == "invalid_grant"
    refusals: list[tuple[Given, str]] = [
        ({"code_verifier": "x" * 43}, "invalid_grant"),
        ({"code_verifier": None}, "invalid_request"),
        ({"redirect_uri": "https://client.example/other"}, "invalid_request"),
        ({"resource": "https://elsewhere.example/mcp"}, "invalid_target"),
        ({"client_id": "nobody"}, "invalid_client"),
        ({"grant_type": "password"}, "unsupported_grant_type"),
        ({"code": "\0"}, "invalid_request"),
        ({"code": "x" * 20_000}, "invalid_request"),
    ]
    for wrong, error in refusals:
        form: Given = {
            "grant_type": "authorization_code", "code": code, "redirect_uri": BACK,
            "code_verifier": notes.verifier, "resource": RESOURCE, **wrong,
        }  # fmt: skip
        answer = notes.post("token", **form)
        assert answer.status_code in {400, 401}, wrong
        assert answer.json()["error"] == error, wrong
    given = notes.token(code).json()
    assert opens(given["access_token"])
    again = notes.token(code)
    assert again.json()["error"] == "invalid_grant"
    assert not opens(given["access_token"])
    assert notes.renew(given["refresh_token"]).json()["error"] == "invalid_grant"
    assert AuditEntry.objects.filter(action="token_revoked", actor=alice).exists()


def test_who_lets_a_registered_client_in_anew_has_ended_what_it_was_let_do_before(
    hers: Browser, notes: OAuthClient, alice: User, acme: Organisation
):
    first = notes.let_in(hers, acme)
    code = notes.code_of(hers, acme)
    assert opens(first["access_token"]), "a code alone changes nothing"
    other = OAuthClient.registered(client_name="Other").let_in(hers, acme)
    second = notes.token(code).json()
    assert opens(second["access_token"])
    assert opens(other["access_token"])
    assert not opens(first["access_token"])
    assert notes.renew(first["refresh_token"]).json()["error"] == "invalid_grant"
    assert AuditEntry.objects.filter(action="token_revoked", actor=alice).count() == 1


def test_a_client_of_oauth_2_1_says_no_address_again(
    hers: Browser, notes: OAuthClient, acme: Organisation
):
    given = notes.token(notes.code_of(hers, acme), redirect_uri=None)
    assert opens(given.json()["access_token"])


def test_no_client_chooses_how_its_refresh_tokens_begin(
    hers: Browser, notes: OAuthClient, acme: Organisation
):
    for _time in range(2):
        given = notes.token(notes.code_of(hers, acme), refresh_token="chosen").json()
        assert given["refresh_token"].startswith("agn_")


def test_no_log_tells_a_secret_even_where_all_is_logged(
    hers: Browser, notes: OAuthClient, acme: Organisation, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.DEBUG)
    code = notes.code_of(hers, acme)
    first = notes.token(code).json()
    second = notes.renew(first["refresh_token"]).json()
    notes.renew("agn_never.given")
    issued = [each[name] for each in (first, second) for name in ("access_token", "refresh_token")]
    for secret in (code, "agn_never", *issued):
        assert secret not in caplog.text


def test_a_code_is_good_for_a_minute(hers: Browser, notes: OAuthClient, acme: Organisation):
    code = notes.code_of(hers, acme)
    ApiToken.objects.update(expiry=timezone.now() - timedelta(seconds=1))
    assert notes.token(code).json()["error"] == "invalid_grant"


def test_a_refresh_token_is_exchanged_once_and_its_copy_ends_all(
    hers: Browser, notes: OAuthClient, acme: Organisation
):
    first = notes.let_in(hers, acme)
    mallorys = OAuthClient.registered(client_name="Mallory")
    assert mallorys.renew(first["refresh_token"]).json()["error"] == "invalid_grant"
    other = notes.renew(first["refresh_token"], resource="https://elsewhere.example/mcp")
    assert other.json()["error"] == "invalid_target"
    more = notes.renew(first["refresh_token"], scope="conversations:read approvals:decide")
    assert more.json()["error"] == "invalid_scope"
    second = notes.renew(first["refresh_token"]).json()
    assert opens(second["access_token"])
    assert not opens(first["access_token"])
    assert not opens(second["refresh_token"])
    assert notes.renew(first["refresh_token"]).json()["error"] == "invalid_grant"
    assert not opens(second["access_token"])
    assert notes.renew(second["refresh_token"]).json()["error"] == "invalid_grant"


def test_an_access_token_ends_and_is_renewed(hers: Browser, notes: OAuthClient, acme: Organisation):
    given = notes.let_in(hers, acme)
    assert given["expires_in"] == 3600
    Connection.objects.update(access_ends_at=timezone.now() - timedelta(seconds=1))
    assert not opens(given["access_token"])
    given = notes.renew(given["refresh_token"]).json()
    assert opens(given["access_token"])


def test_a_client_gives_back_what_it_was_let_do_and_nobody_elses(
    hers: Browser, notes: OAuthClient, acme: Organisation
):
    given = notes.let_in(hers, acme)
    mallorys = OAuthClient.registered(client_name="Mallory")
    for token in (given["access_token"], given["refresh_token"], "unknown"):
        assert mallorys.post("revoke", token=token).status_code == 200
    assert opens(given["access_token"])
    assert notes.post("revoke", token=given["refresh_token"]).status_code == 200
    assert not opens(given["access_token"])
    again = notes.let_in(hers, acme)
    assert notes.post("revoke", token=again["access_token"]).status_code == 200
    assert notes.renew(again["refresh_token"]).json()["error"] == "invalid_grant"


def closed(alice: User, acme: Organisation) -> None:
    delete_own_account(actor=alice, typed="alice")


def revoked(alice: User, acme: Organisation) -> None:
    revoke_token(actor=alice, token=ApiToken.objects.get())


def left(alice: User, acme: Organisation) -> None:
    Membership.objects.filter(user=alice, organisation=acme).delete()


def expired(alice: User, acme: Organisation) -> None:
    ApiToken.objects.update(expiry=timezone.now())


@pytest.mark.parametrize("end", [closed, revoked, left, expired])
@pytest.mark.parametrize("redeemed", [True, False])
def test_what_ends_a_token_of_hers_ends_its_client(
    hers: Browser, notes: OAuthClient, alice: User, acme: Organisation, end: Any, redeemed: bool
):
    code = notes.code_of(hers, acme)
    given = notes.token(code).json() if redeemed else {}
    end(alice, acme)
    if not redeemed:
        assert notes.token(code).json()["error"] == "invalid_grant"
        return
    assert not opens(given["access_token"])
    assert notes.renew(given["refresh_token"]).json()["error"] == "invalid_grant"


def test_whoever_is_removed_from_the_organisation_takes_no_client_along(
    bob: User, alice: User, acme: Organisation, notes: OAuthClient, client_of: ClientOf
):
    his = confirmed(client_of(bob))
    given = notes.let_in(his, acme)
    membership = Membership.objects.get(user=bob, organisation=acme)
    remove_member(actor=alice, membership=membership)
    assert not opens(given["access_token"])


def test_the_row_goes_with_the_account(
    hers: Browser, notes: OAuthClient, alice: User, acme: Organisation
):
    notes.let_in(hers, acme)
    alice.delete()
    assert not Connection.objects.exists()


def test_mallory_sees_and_ends_nothing_of_alices(
    hers: Browser, notes: OAuthClient, acme: Organisation, mallory: User, client_of: ClientOf
):
    given = notes.let_in(hers, acme)
    token = ApiToken.objects.get()
    browser = confirmed(client_of(mallory))
    assert "Notes" not in browser.get("/settings/tokens/").content.decode()
    assert browser.post(f"/settings/tokens/{token.uid}/revoke/").status_code == 404
    assert opens(given["access_token"])


def test_a_person_has_no_more_clients_than_tokens(
    hers: Browser, notes: OAuthClient, acme: Organisation, settings: Any
):
    settings.AGENTSITE_TOKENS_PER_PERSON = 1
    notes.let_in(hers, acme)
    form = {"organisation": acme.uid, "scopes": ["conversations:read"], "days": "90", "allow": "1"}
    answer = hers.post(notes.address(), form)
    assert answer.status_code == 422
    assert "Revoke those that are not needed" in answer.content.decode()

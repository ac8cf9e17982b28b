"""The page of tokens, and the admin's: a secret is in one answer and nowhere else."""

from __future__ import annotations

import re

import pytest
from django.urls import reverse

from accounts.actions.service_accounts import create_service_account
from accounts.actions.tokens import create_token
from accounts.api.authentication import caller_with
from accounts.models import ApiToken, User
from tests.cast import PASSWORD, shown

PAGE = "/settings/tokens/"


def secret_in(answer) -> str:
    found = re.search(r"ags_[0-9a-f]{64}", answer.content.decode())
    assert found, answer.content.decode()[-3000:]
    return found[0]


def asked(organisation, **values):
    return shown(
        organisation, name="Laptop", scopes=["conversations:read"], lifetime="30", **values
    )


def confirmed(client):
    """The browser of somebody who has just typed the password once more."""
    answer = client.post(reverse("account_reauthenticate"), {"password": PASSWORD})
    assert answer.status_code == 302, answer.content.decode()
    return client


@pytest.fixture
def browser(alice, acme, client_of):
    return confirmed(client_of(alice))


def test_a_session_alone_makes_no_token(alice, acme, client_of):
    client = client_of(alice)
    token = create_token(
        actor=alice, organisation=acme, name="x", scopes=["conversations:read"]
    ).token
    for address, values in (
        (PAGE, asked(acme)),
        (f"{PAGE}{token.uid}/rotate/", shown(acme, hours="0")),
    ):
        answer = client.post(address, values)
        assert answer.status_code == 302
        assert answer["Location"].startswith(reverse("account_reauthenticate"))
    assert ApiToken.objects.count() == 1


def test_after_the_password_the_form_goes_on_where_it_was_stopped(alice, acme, client_of):
    client = client_of(alice)
    there = client.post(PAGE, asked(acme))["Location"]
    answer = client.post(there, {"password": PASSWORD}, follow=True)
    assert caller_with(secret_in(answer)) is not None


def test_a_wrong_password_makes_no_token(alice, acme, client_of):
    client = client_of(alice)
    there = client.post(PAGE, asked(acme))["Location"]
    assert client.post(there, {"password": "wrong"}).status_code == 200
    assert not ApiToken.objects.exists()


def test_a_token_is_made_and_its_secret_shown_once(browser, alice, acme):
    answer = browser.post(PAGE, asked(acme))
    secret = secret_in(answer)
    caller = caller_with(secret)
    assert caller is not None
    assert (caller.user, caller.organisation) == (alice, acme)
    assert "no-store" in answer["Cache-Control"]
    again = browser.get(PAGE).content.decode()
    assert secret not in again
    assert secret[:10] in again


def test_a_refusal_keeps_what_was_typed(browser, acme):
    answer = browser.post(PAGE, shown(acme, name="My program", lifetime="30"))
    assert answer.status_code == 422
    assert "My program" in answer.content.decode()
    assert not ApiToken.objects.exists()


def test_where_there_is_no_room_for_two_secrets_the_page_says_so_and_the_old_one_stays(
    browser, acme, settings
):
    settings.AGENTSITE_TOKENS_PER_PERSON = 1
    old = secret_in(browser.post(PAGE, asked(acme)))
    uid = ApiToken.objects.get().uid
    answer = browser.post(f"{PAGE}{uid}/rotate/", {"hours": "24"}, follow=True)
    assert "Revoke those that are not needed" in answer.content.decode()
    assert caller_with(old) is not None
    assert ApiToken.objects.count() == 1


def test_a_token_of_another_organisation_is_not_made_by_a_stale_tab(browser, acme, elsewhere):
    assert browser.post(PAGE, asked(elsewhere)).status_code == 409
    assert not ApiToken.objects.exists()


def test_a_token_is_replaced_and_revoked(browser, acme):
    old = secret_in(browser.post(PAGE, asked(acme)))
    uid = ApiToken.objects.get().uid
    new = secret_in(browser.post(f"{PAGE}{uid}/rotate/", {"hours": "24"}))
    assert caller_with(old) is not None
    assert caller_with(new) is not None
    browser.post(f"{PAGE}{uid}/revoke/")
    assert caller_with(old) is None
    assert caller_with(new) is not None


def test_a_manager_makes_a_service_account_and_its_token(browser, acme):
    browser.post(
        "/settings/service-accounts/",
        shown(acme, **{"service-name": "Nightly", "service-role": "member"}),
    )
    account = User.objects.get(kind="service")
    caller = caller_with(secret_in(browser.post(PAGE, asked(acme, account=account.uid))))
    assert caller is not None
    assert caller.user == account
    browser.post(f"/settings/service-accounts/{account.uid}/remove/", shown(acme))
    assert not ApiToken.objects.filter(revoked_at=None).exists()


def test_bob_is_offered_neither_administration_nor_service_accounts(bob, acme, client_of, alice):
    robot = create_service_account(actor=alice, organisation=acme, name="Nightly")
    browser = confirmed(client_of(bob))
    page = browser.get(PAGE).content.decode()
    assert "Administer the organisation" not in page
    assert "Nightly" not in page
    assert browser.post(PAGE, asked(acme, account=robot.uid)).status_code == 200
    assert ApiToken.objects.get().user == bob
    refused = browser.post(
        "/settings/service-accounts/",
        shown(acme, **{"service-name": "x", "service-role": "member"}),
    )
    assert refused.status_code == 422


def test_mallory_finds_neither_token_nor_service_account(
    alice, acme, mallory, elsewhere, client_of
):
    token = create_token(
        actor=alice, organisation=acme, name="x", scopes=["conversations:read"]
    ).token
    robot = create_service_account(actor=alice, organisation=acme, name="Nightly")
    browser = confirmed(client_of(mallory))
    for address in (
        f"{PAGE}{token.uid}/rotate/",
        f"{PAGE}{token.uid}/revoke/",
        f"/settings/service-accounts/{robot.uid}/remove/",
    ):
        assert browser.post(address, shown(elsewhere, hours="0")).status_code == 404
    assert token.shown_prefix not in browser.get(PAGE).content.decode()


# --- the admin ------------------------------------------------------------------------------------


def test_an_operator_makes_a_token_in_the_admin_for_a_service_account(
    staff, alice, acme, client_of
):
    robot = create_service_account(actor=alice, organisation=acme, name="Nightly")
    browser = confirmed(client_of(staff))
    values = {
        "name": "ci",
        "organisation": acme.pk,
        "user": robot.pk,
        "scopes": ["conversations:read"],
    }
    answer = browser.post(reverse("admin:accounts_apitoken_add"), values)
    caller = caller_with(secret_in(answer))
    assert caller is not None
    assert caller.user == robot
    assert ApiToken.objects.count() == 1


def test_an_operator_makes_no_token_that_speaks_for_a_person(staff, alice, acme, client_of):
    values = {
        "name": "ci",
        "organisation": acme.pk,
        "user": alice.pk,
        "scopes": ["conversations:read"],
    }
    answer = confirmed(client_of(staff)).post(reverse("admin:accounts_apitoken_add"), values)
    assert answer.status_code == 200
    assert not ApiToken.objects.exists()


def test_an_operator_replaces_and_revokes_in_the_admin(staff, alice, acme, client_of):
    robot = create_service_account(actor=alice, organisation=acme, name="Nightly")
    token = create_token(
        actor=alice, organisation=acme, name="x", scopes=["conversations:read"], user=robot
    ).token
    browser = confirmed(client_of(staff))
    address = reverse("admin:accounts_apitoken_replace", args=[token.pk])
    assert browser.get(address).status_code == 200
    assert ApiToken.objects.filter(revoked_at=None).get() == token
    secret = secret_in(browser.post(address))
    assert caller_with(secret) is not None
    browser.post(
        reverse("admin:accounts_apitoken_changelist"),
        {
            "action": "revoke",
            "_selected_action": list(ApiToken.objects.values_list("pk", flat=True)),
        },
    )
    assert caller_with(secret) is None


def test_staff_who_operate_nothing_reach_no_token_in_the_admin(alice, acme, client_of, db):
    token = create_token(
        actor=alice, organisation=acme, name="x", scopes=["conversations:read"]
    ).token
    helper = User.objects.create_user("helper", is_staff=True)
    browser = client_of(helper)
    for name, arguments in (
        ("changelist", []),
        ("add", []),
        ("change", [token.pk]),
        ("replace", [token.pk]),
    ):
        address = reverse(f"admin:accounts_apitoken_{name}", args=arguments)
        assert browser.get(address).status_code == 403, name
        assert browser.post(address).status_code in {403, 302}, name
    assert ApiToken.objects.filter(revoked_at=None).count() == 1

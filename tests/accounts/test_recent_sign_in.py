"""A session alone changes nothing with which its person signs in, and she is told of each change by mail."""

from __future__ import annotations

import re

import pytest
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from django.test import Client
from django.urls import reverse

from accounts.actions.service_accounts import create_service_account
from accounts.actions.tokens import create_token
from accounts.models import ApiToken, Organisation, User
from tests.cast import PASSWORD, retyped

NEW_PASSWORD = "an entirely new phrase"
EMAIL = "/accounts/email/"


@pytest.fixture
def session(alice: User, client: Client) -> Client:
    """Signed in, and the password was not typed for a while."""
    EmailAddress.objects.create(user=alice, email=alice.email, primary=True, verified=True)
    EmailAddress.objects.create(user=alice, email="second@example.org", verified=True)
    client.force_login(alice)
    return client


def addresses() -> list[tuple[str, bool]]:
    return list(EmailAddress.objects.order_by("pk").values_list("email", "primary"))


@pytest.mark.parametrize("what", ["action_add", "action_primary", "action_remove"])
def test_addresses_are_changed_only_once_the_password_was_typed(
    alice: User, session: Client, what: str
) -> None:
    before = addresses()
    email = "third@example.org" if what == "action_add" else "second@example.org"
    asked = session.post(EMAIL, {what: "", "email": email})
    assert asked["Location"].startswith(reverse("account_reauthenticate"))
    assert addresses() == before

    session.post(asked["Location"], {"password": PASSWORD}, follow=True)
    assert addresses() != before, "it goes on where it was stopped"


def test_a_change_of_the_password_is_mailed(
    alice: User, session: Client, mailoutbox, settings
) -> None:
    settings.AGENTSITE_EMAIL_CONFIGURED = True
    given = {"oldpassword": PASSWORD, "password1": NEW_PASSWORD, "password2": NEW_PASSWORD}
    assert session.post("/accounts/password/change/", given).status_code == 302
    [mail] = mailoutbox
    assert mail.to == [alice.email]
    assert "password has been changed" in mail.body
    assert NEW_PASSWORD not in mail.body


@pytest.mark.parametrize("sends", [False, True], ids=["no mails", "no mail server"])
def test_a_change_that_cannot_be_mailed_is_made(
    alice: User, session: Client, settings, sends: bool
) -> None:
    settings.AGENTSITE_EMAIL_CONFIGURED = sends
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 1
    given = {"oldpassword": PASSWORD, "password1": NEW_PASSWORD, "password2": NEW_PASSWORD}
    assert session.post("/accounts/password/change/", given).status_code == 302
    alice.refresh_from_db()
    assert alice.check_password(NEW_PASSWORD)


def test_in_the_admin_a_session_alone_makes_and_replaces_no_token(
    staff: User, alice: User, acme: Organisation, client: Client
) -> None:
    robot = create_service_account(actor=alice, organisation=acme, name="Nightly")
    scopes = ["conversations:read"]
    token = create_token(actor=alice, organisation=acme, name="x", scopes=scopes, user=robot).token
    client.force_login(staff)
    add = reverse("admin:accounts_apitoken_add")
    replace = reverse("admin:accounts_apitoken_replace", args=[token.pk])
    given = {"name": "ci", "user": robot.pk, "organisation": acme.pk, "scopes": scopes}
    for address in (add, replace):
        assert client.get(address).status_code == 200
        asked = client.post(address, given)
        assert asked["Location"].startswith(reverse("account_reauthenticate"))
    assert ApiToken.objects.get() == token

    there = client.post(add, given)["Location"]
    answer = client.post(there, {"password": PASSWORD}, follow=True)
    assert re.search(r"ags_[0-9a-f]{64}", answer.content.decode()), (
        "it goes on where it was stopped"
    )


GIVEN = {"password1": NEW_PASSWORD, "password2": NEW_PASSWORD, "usable_password": "true"}


def test_in_the_admin_a_session_alone_gives_nobody_a_password_and_keeps_none(
    staff: User, alice: User, client: Client
) -> None:
    """Not to others, not to its own person, and not to somebody new."""
    client.force_login(staff)
    pages = [reverse("admin:auth_user_password_change", args=[one.pk]) for one in (staff, alice)]
    pages += [reverse("admin:accounts_user_add")]
    for page in pages:
        assert client.get(page)["Location"].startswith(reverse("account_reauthenticate"))
        assert client.post(page, {"username": "eve", **GIVEN})["Location"] == page
        assert NEW_PASSWORD not in str(dict(client.session))
    assert not User.objects.filter(username="eve").exists()
    for one in (staff, alice):
        one.refresh_from_db()
        assert one.check_password(PASSWORD)

    retyped(client)
    for page in pages:
        assert client.get(page).status_code == 200
        assert client.post(page, {"username": "eve", **GIVEN}).status_code == 302
    assert User.objects.get(username="eve").check_password(NEW_PASSWORD)
    alice.refresh_from_db()
    assert alice.check_password(NEW_PASSWORD)


@pytest.mark.parametrize("change", [{"email": "eve@example.org"}, {"is_superuser": "on"}])
def test_in_the_admin_a_session_alone_says_neither_who_an_account_is_nor_what_it_may(
    staff: User, alice: User, client: Client, change: dict[str, str]
) -> None:
    client.force_login(staff)
    page = reverse("admin:accounts_user_change", args=[alice.pk])
    as_it_is = {"username": "alice", "email": alice.email, "is_active": "on"}
    assert client.post(page, {**as_it_is, "first_name": "A"})["Location"] != page
    assert User.objects.get(pk=alice.pk).first_name == "A", "a name may be corrected"

    asked = client.post(page, {**as_it_is, **change})
    assert asked["Location"].startswith(reverse("account_reauthenticate"))
    now = User.objects.get(pk=alice.pk)
    assert (now.email, now.is_superuser) == (alice.email, False)

    client.post(asked["Location"], {"password": PASSWORD}, follow=True)
    now = User.objects.get(pk=alice.pk)
    assert (now.email, now.is_superuser) != (alice.email, False), "it goes on where it was stopped"


def test_in_the_admin_a_session_alone_closes_an_account_and_opens_none(
    staff: User, alice: User, client: Client
) -> None:
    """One that was closed may be of whoever has the session."""
    client.force_login(staff)
    page = reverse("admin:accounts_user_change", args=[alice.pk])
    as_it_is = {"username": "alice", "email": alice.email}
    client.post(page, as_it_is)
    assert not User.objects.get(pk=alice.pk).is_active

    asked = client.post(page, {**as_it_is, "is_active": "on"})
    assert asked["Location"].startswith(reverse("account_reauthenticate"))
    assert not User.objects.get(pk=alice.pk).is_active
    client.post(asked["Location"], {"password": PASSWORD}, follow=True)
    assert User.objects.get(pk=alice.pk).is_active


@pytest.mark.parametrize("many", [False, True], ids=["one", "chosen from the list"])
def test_in_the_admin_a_session_alone_takes_no_second_factor_away(
    staff: User, client: Client, many: bool
) -> None:
    held = Authenticator.objects.create(user=staff, type="recovery_codes", data={"seed": "x"})
    client.force_login(staff)
    page = reverse("admin:mfa_authenticator_delete", args=[held.pk])
    given: dict[str, object] = {"post": "yes"}
    if many:
        page = reverse("admin:mfa_authenticator_changelist")
        given |= {"action": "delete_selected", "_selected_action": [held.pk]}
    asked = client.post(page, given)
    assert asked["Location"].startswith(reverse("account_reauthenticate"))
    assert Authenticator.objects.filter(pk=held.pk).exists()

    client.post(asked["Location"], {"password": PASSWORD}, follow=True)
    assert not Authenticator.objects.filter(pk=held.pk).exists()


@pytest.mark.parametrize("query", ["?_changelist_filters=user__kind__exact%3Dservice", "?_popup=1"])
def test_what_was_typed_into_a_form_with_a_query_outlasts_the_question_for_the_password(
    staff: User, alice: User, acme: Organisation, client: Client, query: str
) -> None:
    robot = create_service_account(actor=alice, organisation=acme, name="Nightly")
    client.force_login(staff)
    scopes = ["conversations:read"]
    given = {"name": "ci", "user": robot.pk, "organisation": acme.pk, "scopes": scopes}
    asked = client.post(reverse("admin:accounts_apitoken_add") + query, given)
    answer = client.post(asked["Location"], {"password": PASSWORD}, follow=True)
    assert re.search(r"ags_[0-9a-f]{64}", answer.content.decode())
    assert ApiToken.objects.get().name == "ci"


def test_so_does_what_was_typed_on_a_page_of_allauth(alice: User, session: Client) -> None:
    asked = session.post(f"{EMAIL}?from=mail", {"action_add": "", "email": "third@example.org"})
    session.post(asked["Location"], {"password": PASSWORD}, follow=True)
    assert ("third@example.org", False) in addresses()

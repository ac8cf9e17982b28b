"""The pages of organisations and provider keys, and what they refuse to whom."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import (
    format_hotp_value,
    hotp_value,
    yield_hotp_counters_from_time,
)
from django.core.cache import cache
from django.test import Client
from django.urls import reverse

from accounts.actions.invitations import invite_member
from accounts.actions.provider_keys import store_provider_key
from accounts.models import Invitation, Membership, Organisation, ProviderKey, Role
from tests.cast import PASSWORD, shown
from tests.standins.modellist import model_list

KEY = "sk-test-0123456789-abcd"


@pytest.fixture(autouse=True)
def no_keys_in_the_environment(settings):
    settings.AGENTSITE_PROVIDER_KEYS = {}


@pytest.mark.parametrize("name", ["accounts:organisation", "accounts:keys"])
def test_a_visitor_is_sent_to_sign_in(client, db, name):
    answer = client.get(reverse(name))

    assert answer.status_code == 302
    assert answer["Location"].startswith(reverse("account_login"))


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("accounts:organisation-invite", []),
        ("accounts:organisation-switch", []),
        ("accounts:organisation-create", []),
        ("accounts:organisation-rename", []),
        ("accounts:member-role", [1]),
        ("accounts:member-remove", [1]),
        ("accounts:invitation-withdraw", ["inv_x"]),
        ("accounts:key-remove", ["pkey_x"]),
    ],
)
def test_changes_take_a_post_of_somebody_signed_in(client, alice, client_of, name, arguments):
    address = reverse(name, args=arguments)

    assert client.post(address)["Location"].startswith(reverse("account_login"))
    assert client_of(alice).get(address).status_code == 405


def test_the_members_are_listed_with_their_roles(bob, alice, acme, client_of):
    page = client_of(bob).get(reverse("accounts:organisation")).content.decode()

    assert "alice@example.org" in page
    assert "Owner" in page
    assert "Invite somebody" not in page


def test_an_invitation_shows_its_link_once(alice, acme, client_of):
    client = client_of(alice)
    values = shown(acme, email="carol@example.org", role="member")
    answer = client.post(reverse("accounts:organisation-invite"), values)

    link = answer.context["link"]
    assert link in answer.content.decode()
    assert "no-store" in answer["Cache-Control"]
    later = client.get(reverse("accounts:organisation")).content.decode()
    assert "carol@example.org" in later
    assert link not in later


def test_a_refused_invitation_keeps_what_was_typed(alice, bob, acme, client_of):
    values = shown(acme, email="bob@example.org", role="reviewer")
    answer = client_of(alice).post(reverse("accounts:organisation-invite"), values)

    page = answer.content.decode()
    assert answer.status_code == 422
    assert 'value="bob@example.org"' in page
    assert "already belongs" in page


def test_a_member_who_invites_gets_a_refusal_and_no_link(bob, acme, client_of):
    values = shown(acme, email="carol@example.org", role="member")
    answer = client_of(bob).post(reverse("accounts:organisation-invite"), values)

    assert answer.status_code == 422
    assert not Invitation.objects.exists()


def test_the_owner_changes_a_role_and_removes_a_member(alice, bob, acme, client_of):
    client, row = client_of(alice), Membership.objects.get(user=bob)

    client.post(reverse("accounts:member-role", args=[row.pk]), shown(acme, role="reviewer"))
    assert Membership.objects.role_in(acme, bob) is Role.REVIEWER
    client.post(reverse("accounts:member-remove", args=[row.pk]), shown(acme))
    assert Membership.objects.role_in(acme, bob) is None


def test_the_last_owner_is_told_why_leaving_is_refused(alice, acme, client_of):
    row = Membership.objects.get(user=alice)
    address = reverse("accounts:member-remove", args=[row.pk])
    answer = client_of(alice).post(address, shown(acme), follow=True)

    assert "keeps at least one owner" in answer.content.decode()
    assert Membership.objects.role_in(acme, alice) is Role.OWNER


def test_mallory_finds_no_member_and_no_invitation_of_acme(
    alice, bob, acme, mallory, elsewhere, client_of
):
    client, row = client_of(mallory), Membership.objects.get(user=bob)
    issued = invite_member(actor=alice, organisation=acme, email="c@example.org", role="member")

    for address in (
        reverse("accounts:member-role", args=[row.pk]),
        reverse("accounts:member-remove", args=[row.pk]),
        reverse("accounts:invitation-withdraw", args=[issued.invitation.uid]),
    ):
        assert client.post(address, shown(elsewhere, role="owner")).status_code == 404
        assert client.post(address, shown(acme, role="owner")).status_code == 404
    page = client.get(reverse("accounts:organisation")).content.decode()
    assert "bob@example.org" not in page
    assert Membership.objects.role_in(acme, bob) is Role.MEMBER


def test_an_organisation_is_created_and_becomes_the_current_one(bob, acme, client_of):
    client = client_of(bob)
    client.post(reverse("accounts:organisation-create"), {"new-name": "Bobs"})

    current = client.get(reverse("accounts:organisation")).context["request"].organisation
    assert current == Organisation.objects.get(name="Bobs")


def test_the_owner_renames_the_organisation_and_a_member_cannot(alice, bob, acme, client_of):
    address = reverse("accounts:organisation-rename")
    assert client_of(bob).post(address, shown(acme, name="Bobs")).status_code == 422
    client_of(alice).post(address, shown(acme, name="Acme II"))

    acme.refresh_from_db()
    assert acme.name == "Acme II"


def test_a_key_goes_in_and_only_its_last_four_characters_come_out(alice, acme, client_of, settings):
    client = client_of(alice)
    with model_list() as service:
        settings.AGENTSITE_PRIVATE_PROVIDER_HOSTS = [service.address.removeprefix("http://")]
        values = {"provider": "anthropic", "base_url": service.address, "key": KEY, "scope": "user"}
        answer = client.post(reverse("accounts:keys"), shown(acme, **values), follow=True)

    page = answer.content.decode()
    assert "…abcd" in page
    assert KEY not in page


def test_a_refused_key_is_not_given_back(alice, acme, client_of):
    values = shown(acme, provider="anthropic", base_url="nonsense", key=KEY, scope="user")
    answer = client_of(alice).post(reverse("accounts:keys"), values)

    page = answer.content.decode()
    assert answer.status_code == 422
    assert 'value="nonsense"' in page
    assert KEY not in page


def test_a_member_is_offered_only_the_own_scope(bob, acme, client_of):
    client = client_of(bob)
    for scope in ("organisation", "deployment"):
        values = shown(acme, provider="anthropic", base_url="", key=KEY, scope=scope)
        assert client.post(reverse("accounts:keys"), values).status_code == 422
    assert not ProviderKey.objects.exists()


def test_mallory_can_neither_see_nor_remove_alices_key(alice, mallory, elsewhere, client_of):
    row = store_provider_key(actor=alice, scope="user", provider="anthropic", key=KEY)
    client = client_of(mallory)

    assert client.post(reverse("accounts:key-remove", args=[row.uid])).status_code == 404
    assert "abcd" not in client.get(reverse("accounts:keys")).content.decode()
    assert client_of(alice).post(reverse("accounts:key-remove", args=[row.uid])).status_code == 302
    assert not ProviderKey.objects.exists()


@pytest.mark.parametrize("typed", ["alice", "alice@example.org", "ALICE@example.org"])
def test_one_signs_in_by_name_or_address(client, alice, typed):
    client.post(reverse("account_login"), {"login": typed, "password": PASSWORD})

    assert client.get(reverse("accounts:organisation")).context["user"] == alice


def test_the_sixth_attempt_is_not_looked_at_even_if_it_is_right(client, alice, settings):
    settings.AXES_ENABLED = True
    address = reverse("account_login")
    for spelling in ("alice", "Alice", "alice ", "ALICE", "alice"):
        client.post(address, {"login": spelling, "password": "wrong"})

    answer = client.post(address, {"login": "alice", "password": PASSWORD})

    assert answer.status_code == 429
    assert "Too many attempts" in answer.content.decode()
    assert client.get(reverse("accounts:organisation")).status_code == 302


def test_one_locked_out_name_locks_out_nobody_else(client, alice, bob, settings):
    settings.AXES_ENABLED = True
    address = reverse("account_login")
    for _ in range(6):
        client.post(address, {"login": "alice", "password": "wrong"})

    client.post(address, {"login": "bob", "password": PASSWORD})

    assert client.get(reverse("accounts:organisation")).context["user"] == bob


class Inspector(HTMLParser):
    """Collects what an accessible page under the strict policy may not hold."""

    def __init__(self) -> None:
        super().__init__()
        self.fields: set[str] = set()
        self.labelled: set[str] = set()
        self.faults: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag in ("input", "select", "textarea") and given.get("type") != "hidden":
            self.fields.add(given.get("id") or f"<{tag} without id>")
        if tag == "label" and given.get("for"):
            self.labelled.add(str(given["for"]))
        self.faults += [f"{tag} {name}" for name in given if name == "style" or name[:2] == "on"]
        if tag == "script" and "src" not in given and given.get("type") != "application/json":
            self.faults.append("inline script")


@pytest.mark.parametrize(
    "name",
    [
        "account_login",
        "account_signup",
        "account_reset_password",
        "account_logout",
        "account_email",
        "account_change_password",
        "account_reauthenticate",
        "mfa_index",
        "mfa_activate_totp",
        "socialaccount_connections",
        "accounts:organisation",
        "accounts:keys",
    ],
)
def test_every_field_has_a_label_and_nothing_is_inline(alice, acme, name):
    browser = Client()
    if name not in ("account_login", "account_signup", "account_reset_password"):
        sign_in_afresh(browser)
    answer = browser.get(reverse(name))

    assert answer.status_code == 200
    inspector = Inspector()
    inspector.feed(answer.content.decode())
    assert inspector.fields - inspector.labelled == set()
    assert inspector.faults == []


def test_a_second_factor_is_asked_for_once_it_is_set_up(client, alice):
    sign_in_afresh(client)
    page = client.get(reverse("mfa_activate_totp"))
    secret = page.context["form"].secret
    client.post(reverse("mfa_activate_totp"), {"code": code_of(secret)})
    assert secret not in str(Authenticator.objects.values())
    client.post(reverse("account_logout"))

    client.post(reverse("account_login"), {"login": "alice", "password": PASSWORD})
    assert client.get(reverse("accounts:keys")).status_code == 302
    client.post(reverse("mfa_authenticate"), {"code": "000000"})
    assert client.get(reverse("accounts:keys")).status_code == 302
    cache.clear()  # a code counts once; the clock of this test does not wait for the next
    client.post(reverse("mfa_authenticate"), {"code": code_of(secret)})
    assert client.get(reverse("accounts:keys")).status_code == 200


def code_of(secret: str) -> str:
    counters = list(yield_hotp_counters_from_time())
    return str(format_hotp_value(hotp_value(secret, counters[len(counters) // 2])))


def sign_in_afresh(browser: Client) -> None:
    """Sign in and confirm the password, as the pages of the second factor demand."""
    browser.post(reverse("account_login"), {"login": "alice", "password": PASSWORD})
    browser.post(reverse("account_reauthenticate"), {"password": PASSWORD})


def test_a_forgotten_password_is_reset_by_mail(client, alice, mailoutbox):
    client.post(reverse("account_reset_password"), {"email": alice.email})
    [message] = mailoutbox
    link = next(word for word in message.body.split() if "/password/reset/key/" in word)

    form = client.get(link, follow=True)
    values = {"password1": "an entirely new phrase", "password2": "an entirely new phrase"}
    client.post(form.request["PATH_INFO"], values)

    alice.refresh_from_db()
    assert alice.check_password("an entirely new phrase")

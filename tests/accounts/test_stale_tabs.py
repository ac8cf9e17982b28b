"""Two tabs: what one of them shows is not what the other has switched to."""

from __future__ import annotations

import pytest
from django.urls import reverse

from accounts.actions.invitations import invite_member
from accounts.actions.organisations import create_organisation
from accounts.models import Invitation, Membership, ProviderKey, Role
from tests.cast import join, shown


@pytest.fixture
def second(alice, bob):
    """Another organisation of alice's, to which bob belongs too."""
    organisation = create_organisation(actor=alice, name="Second")
    join(bob, organisation)
    return organisation


@pytest.fixture
def client(alice, acme, second, client_of):
    """Alice's browser: one tab shows Acme, another has switched to Second since."""
    browser = client_of(alice)
    for name in ("accounts:organisation", "accounts:keys"):
        page = browser.get(reverse(name)).content.decode()
        assert f'name="shown_organisation" value="{acme.uid}"' in page
    browser.post(reverse("accounts:organisation-switch"), {"organisation": second.uid})
    return browser


def test_nobody_is_invited_into_the_other_organisation(client, acme):
    values = shown(acme, email="carol@example.org", role="owner")
    answer = client.post(reverse("accounts:organisation-invite"), values)

    page = answer.content.decode()
    assert answer.status_code == 409
    assert "in another tab" in page
    assert "Second" in page
    assert 'value="carol@example.org"' in page
    assert not Invitation.objects.exists()


def test_the_other_organisation_keeps_its_name(client, acme, second):
    answer = client.post(reverse("accounts:organisation-rename"), shown(acme, name="Acme II"))

    assert answer.status_code == 409
    for organisation in (acme, second):
        name = organisation.name
        organisation.refresh_from_db()
        assert organisation.name == name


def test_no_key_reaches_the_other_organisation(client, acme):
    values = {
        "provider": "anthropic",
        "base_url": "",
        "key": "sk-test-0123",
        "scope": "organisation",
    }
    answer = client.post(reverse("accounts:keys"), shown(acme, **values))

    assert answer.status_code == 409
    assert "in another tab" in answer.content.decode()
    assert "sk-test-0123" not in answer.content.decode()
    assert not ProviderKey.objects.exists()


def test_members_and_invitations_stay_as_they_are(client, alice, bob, acme, second):
    invitation = invite_member(
        actor=alice, organisation=second, email="c@example.org", role="member"
    ).invitation
    for organisation in (acme, second):
        row = Membership.objects.get(user=bob, organisation=organisation)
        for address in (
            reverse("accounts:member-role", args=[row.pk]),
            reverse("accounts:member-remove", args=[row.pk]),
            reverse("accounts:invitation-withdraw", args=[invitation.uid]),
        ):
            answer = client.post(address, shown(acme, role="admin"))
            assert answer.status_code == 409
            assert "in another tab" in answer.content.decode()
        assert Membership.objects.role_in(organisation, bob) is Role.MEMBER
    assert Invitation.objects.filter(organisation=second).exists()


def test_a_form_that_does_not_say_what_it_was_for_does_nothing(client, second):
    answer = client.post(reverse("accounts:organisation-rename"), {"name": "Third"})

    assert answer.status_code == 400
    second.refresh_from_db()
    assert second.name == "Second"


def test_repeated_for_the_organisation_now_shown_it_is_done(client, second):
    client.post(reverse("accounts:organisation-rename"), shown(second, name="Third"))

    second.refresh_from_db()
    assert second.name == "Third"

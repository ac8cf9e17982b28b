"""Invitations: shown once, for one address, working once."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core import mail
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.actions.invitations import accept_invitation, invite_member, withdraw_invitation
from accounts.models import Invitation, Membership, Role, User
from harness.errors import Conflict, Forbidden, Invalid, LimitReached, NotFound
from tests.cast import PASSWORD, join, make_user, shown


@pytest.fixture
def carol(db):
    return make_user("carol")


def invite(actor, organisation, email="carol@example.org", role="member"):
    return invite_member(actor=actor, organisation=organisation, email=email, role=role)


def test_the_invited_person_joins_in_the_promised_role(alice, acme, carol):
    issued = invite(alice, acme, role="reviewer")

    accept_invitation(actor=carol, token=issued.token)

    assert Membership.objects.role_in(acme, carol) is Role.REVIEWER


def test_an_address_is_matched_whatever_its_case(alice, acme, carol):
    issued = invite(alice, acme, email="Carol@Example.org")

    assert accept_invitation(actor=carol, token=issued.token).organisation == acme


def test_the_token_is_stored_only_as_a_hash_and_shown_in_no_representation(alice, acme):
    issued = invite(alice, acme)

    row = Invitation.objects.values().get()
    assert issued.token not in str(row)
    assert issued.token not in repr(issued)


def test_an_invitation_works_once(alice, acme, carol):
    issued = invite(alice, acme)
    accept_invitation(actor=carol, token=issued.token)
    Membership.objects.filter(user=carol).delete()

    with pytest.raises(NotFound):
        accept_invitation(actor=carol, token=issued.token)
    assert Membership.objects.role_in(acme, carol) is None


def test_an_expired_invitation_is_not_found(alice, acme, carol):
    issued = invite(alice, acme)
    Invitation.objects.update(expires_at=timezone.now() - timedelta(seconds=1))

    with pytest.raises(NotFound):
        accept_invitation(actor=carol, token=issued.token)


def test_mallory_cannot_use_an_invitation_for_carol(alice, acme, mallory):
    issued = invite(alice, acme)

    with pytest.raises(Forbidden):
        accept_invitation(actor=mallory, token=issued.token)
    assert Membership.objects.role_in(acme, mallory) is None
    assert Invitation.objects.get().accepted_at is None


def test_mallory_can_neither_invite_into_acme_nor_see_its_invitations(alice, acme, mallory):
    issued = invite(alice, acme)

    with pytest.raises(NotFound):
        invite(mallory, acme, email="mallory@example.org")
    with pytest.raises(NotFound):
        withdraw_invitation(actor=mallory, invitation=issued.invitation)
    assert not Invitation.objects.visible_to(mallory).exists()


def test_a_member_may_not_invite_and_sees_no_invitation(alice, bob, acme):
    invite(alice, acme)

    with pytest.raises(Forbidden):
        invite(bob, acme, email="dave@example.org")
    assert not Invitation.objects.visible_to(bob).exists()


def test_an_administrator_may_not_invite_an_owner(acme, carol):
    join(carol, acme, Role.ADMIN)

    with pytest.raises(Forbidden):
        invite(carol, acme, email="dave@example.org", role="owner")
    assert invite(carol, acme, email="dave@example.org", role="admin").token


def test_whoever_belongs_already_is_not_invited_again(alice, bob, acme):
    with pytest.raises(Conflict):
        invite(alice, acme, email="BOB@example.org")


def test_inviting_an_address_again_ends_the_earlier_link(alice, acme, carol):
    first = invite(alice, acme)
    second = invite(alice, acme, role="admin")

    with pytest.raises(NotFound):
        accept_invitation(actor=carol, token=first.token)
    assert accept_invitation(actor=carol, token=second.token).role == Role.ADMIN


def test_a_withdrawn_invitation_is_not_found(alice, acme, carol):
    issued = invite(alice, acme)
    withdraw_invitation(actor=alice, invitation=issued.invitation)

    with pytest.raises(NotFound):
        accept_invitation(actor=carol, token=issued.token)


def test_an_accepted_invitation_cannot_be_withdrawn(alice, acme, carol):
    issued = invite(alice, acme)
    accept_invitation(actor=carol, token=issued.token)

    with pytest.raises(Conflict):
        withdraw_invitation(actor=alice, invitation=issued.invitation)
    assert Membership.objects.role_in(acme, carol) is Role.MEMBER


@pytest.mark.parametrize("email", ["", "carol", "carol@", "x" * 250 + "@example.org"])
def test_what_is_no_address_is_refused_by_field(alice, acme, email):
    with pytest.raises(Invalid) as refusal:
        invite(alice, acme, email=email)
    assert refusal.value.field == "email"


def test_open_invitations_are_limited(alice, acme, settings):
    settings.AGENTSITE_MAX_OPEN_INVITATIONS = 2
    invite(alice, acme, email="a@example.org")
    invite(alice, acme, email="b@example.org")

    with pytest.raises(LimitReached):
        invite(alice, acme, email="c@example.org")
    assert invite(alice, acme, email="b@example.org").token


def sign_up(client: Client, **fields):
    values = {
        "email": "carol@example.org",
        "username": "carol",
        "password1": PASSWORD,
        "password2": PASSWORD,
        **fields,
    }
    return client.post(reverse("account_signup"), values)


def test_nobody_signs_up_without_an_invitation(client, db):
    page = client.get(reverse("account_signup"))
    sign_up(client)

    assert b"invitation" in page.content
    assert not User.objects.exists()


def test_a_visitor_signs_up_through_the_link_and_belongs_to_the_organisation(
    alice, acme, client, settings
):
    issued = invite(alice, acme, role="admin")
    page = client.get(reverse("accounts:invitation", args=[issued.token]))
    assert acme.name in page.content.decode()

    form = client.get(page.context["signup_url"])
    assert 'value="carol@example.org"' in form.content.decode()
    answer = sign_up(client)

    assert answer.status_code == 302
    carol = User.objects.get(username="carol")
    assert Membership.objects.role_in(acme, carol) is Role.ADMIN
    assert client.get(reverse("accounts:organisation")).context["request"].organisation == acme
    assert carol.organisations.count() == 1


def test_the_invited_address_cannot_be_exchanged_at_sign_up(alice, acme, client):
    issued = invite(alice, acme)
    client.get(reverse("accounts:invitation", args=[issued.token]))

    answer = sign_up(client, email="mallory@example.org")

    assert "carol@example.org" in answer.content.decode()
    assert not User.objects.filter(email="mallory@example.org").exists()


def test_sign_up_closes_when_the_invitation_is_withdrawn_meanwhile(alice, acme, client):
    issued = invite(alice, acme)
    client.get(reverse("accounts:invitation", args=[issued.token]))
    withdraw_invitation(actor=alice, invitation=issued.invitation)

    sign_up(client)

    assert not User.objects.filter(username="carol").exists()


def test_somebody_with_an_account_joins_with_one_button(alice, acme, carol, client_of):
    issued = invite(alice, acme)
    client = client_of(carol)
    address = reverse("accounts:invitation", args=[issued.token])

    assert client.get(address).context["matches"]
    assert client.post(address).status_code == 302
    assert Membership.objects.role_in(acme, carol) is Role.MEMBER
    assert client.get(address).status_code == 404


def test_mallorys_browser_may_look_at_the_link_but_not_join(alice, acme, mallory, client_of):
    issued = invite(alice, acme)
    address = reverse("accounts:invitation", args=[issued.token])

    client_of(mallory).post(address)

    assert Membership.objects.role_in(acme, mallory) is None


def test_a_wrong_token_is_a_clear_page_with_status_404(client, db):
    answer = client.get(reverse("accounts:invitation", args=["wrong"]))

    assert answer.status_code == 404
    assert "Ask whoever invited you" in answer.content.decode()


def test_the_link_is_mailed_where_mail_is_configured(alice, acme, client_of, settings):
    settings.AGENTSITE_EMAIL_CONFIGURED = True
    values = shown(acme, email="carol@example.org", role="member")
    page = client_of(alice).post(reverse("accounts:organisation-invite"), values)

    [message] = mail.outbox
    assert message.to == ["carol@example.org"]
    assert page.context["link"] in message.body


def test_a_refusing_mail_server_leaves_the_link_on_the_page(
    alice, acme, client_of, settings, caplog
):
    settings.AGENTSITE_EMAIL_CONFIGURED = True
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT, settings.EMAIL_TIMEOUT = "127.0.0.1", 1, 1
    values = shown(acme, email="carol@example.org", role="member")
    page = client_of(alice).post(reverse("accounts:organisation-invite"), values)

    assert page.context["sent"] is False
    assert page.context["link"] in page.content.decode()
    assert page.context["link"] not in caplog.text

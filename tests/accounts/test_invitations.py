"""Invitations: shown once, for one address, working once."""

from __future__ import annotations

from datetime import timedelta

import pytest
from allauth.account.models import EmailAddress
from django.core import mail
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.actions.invitations import accept_invitation, invite_member, withdraw_invitation
from accounts.actions.members import add_member, change_role, remove_member
from accounts.actions.people import delete_account, save_account
from accounts.models import Invitation, Membership, Role, User
from audit.models import AuditEntry
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


# --- whoever invited and may not any more ---------------------------------------------------------


@pytest.fixture
def dana(db):
    """Another account, such as carol could have made for herself."""
    return make_user("dana")


@pytest.fixture
def co_owner(carol, acme):
    join(carol, acme, Role.OWNER)
    return carol


def refusal_of(actor, token):
    with pytest.raises(NotFound) as refused:
        accept_invitation(actor=actor, token=token)
    return (refused.value.message, refused.value.hint)


def withdrawn_by() -> list[tuple[str, str]]:
    told = AuditEntry.objects.filter(action="invitation_withdrawn").order_by("pk")
    return [(entry.actor_name, entry.details["email"]) for entry in told]


LOSSES = {
    "removed": lambda carol: Membership.objects.filter(user=carol).delete(),
    "demoted": lambda carol: Membership.objects.filter(user=carol).update(role=Role.MEMBER),
    "an administrator": lambda carol: Membership.objects.filter(user=carol).update(role=Role.ADMIN),
    "inactive": lambda carol: User.objects.filter(pk=carol.pk).update(is_active=False),
    "deleted": lambda carol: carol.delete(),
}


@pytest.mark.parametrize("loss", LOSSES)
def test_what_an_owner_promised_is_not_found_once_she_could_not_promise_it(
    loss, acme, co_owner, dana, client_of
):
    token = invite(co_owner, acme, email=dana.email, role="owner").token
    LOSSES[loss](co_owner)

    assert refusal_of(dana, token) == refusal_of(dana, "unknown")
    address = reverse("accounts:invitation", args=[token])
    assert client_of(dana).get(address).status_code == 404
    assert client_of(dana).post(address).status_code == 404
    assert Membership.objects.role_in(acme, dana) is None


def test_sign_up_closes_when_whoever_invited_was_removed_meanwhile(acme, alice, co_owner, client):
    token = invite(co_owner, acme, email="new@example.org").token
    client.get(reverse("accounts:invitation", args=[token]))
    remove_member(actor=alice, membership=Membership.objects.get(user=co_owner, organisation=acme))

    sign_up(client, email="new@example.org", username="new")

    assert not User.objects.filter(username="new").exists()


def test_removing_an_owner_withdraws_what_she_promised_for_good(alice, acme, co_owner, dana):
    token = invite(co_owner, acme, email=dana.email, role="member").token
    kept = invite(alice, acme, email="kept@example.org")
    remove_member(actor=alice, membership=Membership.objects.get(user=co_owner, organisation=acme))

    assert list(Invitation.objects.all()) == [kept.invitation]
    assert withdrawn_by() == [("alice", dana.email)]
    join(co_owner, acme, Role.OWNER)
    refusal_of(dana, token)


def test_a_demotion_withdraws_only_what_is_above_the_new_role(alice, acme, co_owner, dana):
    invite(co_owner, acme, email="owner@example.org", role="owner")
    token = invite(co_owner, acme, email=dana.email, role="reviewer").token
    membership = Membership.objects.get(user=co_owner, organisation=acme)

    change_role(actor=alice, membership=membership, role="admin")
    assert withdrawn_by() == [("alice", "owner@example.org")]
    assert accept_invitation(actor=dana, token=token).role == Role.REVIEWER

    invite(co_owner, acme, email="member@example.org")
    change_role(actor=alice, membership=membership, role="member")
    assert withdrawn_by()[1:] == [("alice", "member@example.org")]


def test_who_leaves_one_organisation_keeps_her_invitations_elsewhere(
    alice, acme, co_owner, elsewhere
):
    join(co_owner, elsewhere, Role.ADMIN)
    kept = invite(co_owner, elsewhere, email="d@example.org").invitation
    invite(co_owner, acme, email="d@example.org")
    remove_member(
        actor=co_owner, membership=Membership.objects.get(user=co_owner, organisation=acme)
    )

    assert list(Invitation.objects.all()) == [kept]


def test_closing_or_deleting_an_account_withdraws_what_it_promised(staff, acme, carol, bob):
    for person in (carol, bob):
        Membership.objects.update_or_create(
            user=person, organisation=acme, defaults={"role": Role.ADMIN}
        )
    invite(carol, acme, email="d@example.org")
    carol.is_active = False
    save_account(actor=staff, user=carol, changed=["is_active"])
    assert withdrawn_by() == [("staff", "d@example.org")]

    invite(bob, acme, email="e@example.org")
    delete_account(actor=staff, user=bob)
    assert withdrawn_by()[1:] == [("staff", "e@example.org")]
    assert not Invitation.objects.exists()


def test_a_superuser_invites_as_an_owner_for_as_long_as_she_is_one(acme, staff, carol, dana):
    first = invite(staff, acme, email=carol.email, role="owner").token
    invite(staff, acme, email=dana.email, role="owner")
    assert accept_invitation(actor=carol, token=first).role == Role.OWNER

    operator = make_user("operator", is_staff=True, is_superuser=True)
    staff.is_superuser = False
    save_account(actor=operator, user=staff, changed=["is_superuser"])
    assert withdrawn_by() == [("operator", dana.email)]


def test_a_superuser_who_leaves_an_organisation_may_go_on_inviting_there(alice, acme, staff, dana):
    membership = join(staff, acme, Role.ADMIN)
    token = invite(staff, acme, email=dana.email).token
    remove_member(actor=alice, membership=membership)

    assert accept_invitation(actor=dana, token=token).organisation == acme


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


# --- an invitation that was not needed ------------------------------------------------------------


def test_whoever_was_removed_does_not_come_back_by_an_invitation_she_never_used(alice, acme, carol):
    issued = invite(alice, acme, email="Carol@example.org", role="admin")
    membership = add_member(actor=alice, organisation=acme, user=carol, role="member")
    assert not Invitation.objects.exists()
    assert AuditEntry.objects.filter(action="invitation_withdrawn").exists()

    remove_member(actor=alice, membership=membership)

    with pytest.raises(NotFound):
        accept_invitation(actor=carol, token=issued.token)
    assert Membership.objects.role_in(acme, carol) is None


def test_one_invitation_accepted_withdraws_those_to_her_other_addresses(alice, acme, carol):
    EmailAddress.objects.create(user=carol, email="c2@example.org", verified=True)
    one = invite(alice, acme)
    two = invite(alice, acme, email="C2@example.org")

    accept_invitation(actor=carol, token=one.token)

    carol.email = "c2@example.org"
    with pytest.raises(NotFound):
        accept_invitation(actor=carol, token=two.token)


def test_a_removal_withdraws_what_was_sent_to_her_other_address_meanwhile(alice, acme, carol):
    membership = join(carol, acme)
    EmailAddress.objects.create(user=carol, email="c2@example.org", verified=True)
    two = invite(alice, acme, email="c2@example.org", role="admin")

    remove_member(actor=alice, membership=membership)

    carol.email = "c2@example.org"
    with pytest.raises(NotFound):
        accept_invitation(actor=carol, token=two.token)


def test_invitations_to_others_and_elsewhere_outlive_a_joining_and_a_removal(
    alice, acme, carol, mallory, elsewhere
):
    # Whoever only claims an address ends nobody's invitation to it.
    EmailAddress.objects.create(user=carol, email="dave@example.org", verified=False)
    invite(alice, acme, email="dave@example.org")
    invite(mallory, elsewhere)

    membership = add_member(actor=alice, organisation=acme, user=carol)
    remove_member(actor=alice, membership=membership)

    assert Invitation.objects.count() == 2

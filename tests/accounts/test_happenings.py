"""What happens to people, organisations and keys stands in the audit log, and in no other hands."""

from __future__ import annotations

import re
import threading
import time

import pytest
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import (
    format_hotp_value,
    hotp_value,
    yield_hotp_counters_from_time,
)
from django.contrib import admin
from django.contrib.admin import ModelAdmin
from django.contrib.auth.hashers import MD5PasswordHasher
from django.contrib.auth.models import Permission
from django.core import mail
from django.db import connection
from django.test import Client
from django.urls import reverse

from accounts.actions import (
    invitations,
    members,
    organisations,
    people,
    provider_keys,
    service_accounts,
    tokens,
)
from accounts.happenings import Happening
from accounts.models import ApiToken, Invitation, Membership, Role, User
from audit.models import AuditEntry
from harness.errors import Conflict, Forbidden, Invalid, NotFound
from tests.cast import PASSWORD, make_user, retyped

NEW_PASSWORD = "an entirely new phrase"


def told() -> list[tuple[str, str]]:
    return [(entry.action, entry.actor_name) for entry in AuditEntry.objects.order_by("pk")]


def last() -> AuditEntry:
    return AuditEntry.objects.order_by("-pk")[0]


def test_the_log_knows_every_happening():
    assert {one.value for one in Happening} <= set(AuditEntry.Action.values)


def test_everything_about_members_is_told_with_who_did_it(alice, acme, bob):
    carol = make_user("carol")
    invited = invitations.invite_member(
        actor=alice, organisation=acme, email=carol.email, role="member"
    )
    invitations.accept_invitation(actor=carol, token=invited.token)
    membership = Membership.objects.get(user=carol)
    members.change_role(actor=alice, membership=membership, role="reviewer")
    members.change_role(actor=alice, membership=membership, role="reviewer")
    members.remove_member(actor=alice, membership=membership)
    withdrawn = invitations.invite_member(
        actor=alice, organisation=acme, email="d@example.org", role="member"
    ).invitation
    invitations.withdraw_invitation(actor=alice, invitation=withdrawn)
    organisations.rename_organisation(actor=alice, organisation=acme, name="Acme again")
    assert told() == [
        ("organisation_made", "alice"),
        ("invited", "alice"),
        ("member_joined", "carol"),
        ("role_changed", "alice"),
        ("member_removed", "alice"),
        ("invited", "alice"),
        ("invitation_withdrawn", "alice"),
        ("organisation_renamed", "alice"),
    ]
    changed = AuditEntry.objects.get(action="role_changed")
    assert changed.organisation == acme
    assert changed.details == {
        "member": {"id": carol.uid, "name": "carol"},
        "role": "reviewer",
        "before": "member",
    }
    assert invited.token not in str(list(AuditEntry.objects.values()))


def test_everything_about_keys_is_told_and_no_secret(alice, acme):
    robot = service_accounts.create_service_account(actor=alice, organisation=acme, name="Nightly")
    issued = tokens.create_token(
        actor=alice, organisation=acme, name="ci", scopes=["conversations:read"], user=robot
    )
    replaced = tokens.rotate_token(actor=alice, token=issued.token)
    tokens.revoke_token(actor=alice, token=replaced.token)
    tokens.revoke_token(actor=alice, token=replaced.token)
    key = provider_keys.store_provider_key(
        actor=alice,
        organisation=acme,
        scope="organisation",
        provider="anthropic",
        key="sk-ant-very-secret",
    )
    provider_keys.remove_provider_key(actor=alice, provider_key=key)
    service_accounts.remove_service_account(actor=alice, organisation=acme, account=robot)
    assert [action for action, _who in told()[1:]] == [
        "service_made",
        "token_made",
        "token_replaced",
        "token_revoked",
        "provider_key_stored",
        "provider_key_removed",
        "service_removed",
    ]
    written = str(list(AuditEntry.objects.values()))
    for secret in (issued.secret, replaced.secret, "sk-ant-very-secret"):
        assert secret not in written


def test_who_answers_for_a_service_account_from_now_on_is_told(alice, acme, bob):
    Membership.objects.filter(user=bob).update(role="owner")
    robot = service_accounts.create_service_account(actor=bob, organisation=acme, name="Nightly")
    members.remove_member(actor=alice, membership=Membership.objects.get(user=bob))
    robot.refresh_from_db()
    assert robot.made_by == alice
    entry = AuditEntry.objects.get(action="service_handed_on")
    assert (entry.actor, entry.organisation) == (alice, acme)
    assert entry.details == {
        "member": {"id": robot.uid, "name": robot.username},
        "account": "Nightly",
        "heir": {"id": alice.uid, "name": "alice"},
    }


def test_what_was_refused_is_not_told(alice, acme, mallory, bob):
    before = told()
    with pytest.raises(NotFound):
        invitations.invite_member(
            actor=mallory, organisation=acme, email="x@example.org", role="member"
        )
    with pytest.raises(Forbidden):
        organisations.rename_organisation(actor=bob, organisation=acme, name="Mine")
    with pytest.raises(Conflict):
        members.change_role(
            actor=alice, membership=Membership.objects.get(user=alice), role="member"
        )
    assert told() == before


def test_who_reviews_reads_it_and_mallory_does_not(alice, acme, bob, mallory):
    assert AuditEntry.objects.visible_to(alice).filter(action="organisation_made").exists()
    assert not AuditEntry.objects.visible_to(bob).exists()
    assert not AuditEntry.objects.visible_to(mallory).exists()


# --- signing in -----------------------------------------------------------------------------------


def test_a_changed_password_is_told_and_ends_no_token(alice, acme, client_of):
    issued = tokens.create_token(
        actor=alice, organisation=acme, name="ci", scopes=["conversations:read"]
    )
    values = {"oldpassword": PASSWORD, "password1": NEW_PASSWORD, "password2": NEW_PASSWORD}
    assert client_of(alice).post(reverse("account_change_password"), values).status_code == 302
    assert last().action == "password_changed"
    assert ApiToken.objects.get(uid=issued.token.uid).is_valid


def test_a_password_reset_by_mail_is_told_and_ends_every_token(alice, acme, elsewhere, mallory):
    for organisation in (acme, organisations.create_organisation(actor=alice, name="Second")):
        tokens.create_token(
            actor=alice, organisation=organisation, name="ci", scopes=["conversations:read"]
        )
    hers = tokens.create_token(
        actor=mallory, organisation=elsewhere, name="x", scopes=["conversations:read"]
    )
    client = Client()
    client.post(reverse("account_reset_password"), {"email": alice.email})
    [link] = re.findall(r"http://testserver(/\S+)", str(mail.outbox[-1].body))
    form = client.get(link, follow=True)
    values = {"password1": NEW_PASSWORD, "password2": NEW_PASSWORD}
    answer = client.post(form.redirect_chain[-1][0], values)
    assert answer.status_code == 302
    alice.refresh_from_db()
    assert alice.check_password(NEW_PASSWORD)
    assert {entry.user for entry in ApiToken.objects.filter(revoked_at=None)} == {mallory}
    assert hers.token.user == mallory
    assert last().action == "password_reset"
    assert last().details == {"tokens_revoked": 2}


def test_a_second_factor_added_and_removed_is_told(
    alice, client_of, django_capture_on_commit_callbacks
):
    client = client_of(alice)
    client.post(reverse("account_reauthenticate"), {"password": PASSWORD})
    page = client.get(reverse("mfa_activate_totp"))
    code = _totp(page.context["form"].secret)
    with django_capture_on_commit_callbacks(execute=True):
        client.post(reverse("mfa_activate_totp"), {"code": code})
    assert "factor_added" in {action for action, _who in told()}
    with django_capture_on_commit_callbacks(execute=True):
        client.post(reverse("mfa_deactivate_totp"))
    assert not Authenticator.objects.filter(user=alice).exists()
    assert last().action == "factor_removed"


def test_an_address_added_and_removed_is_told(alice, client_of):
    """Once it is confirmed, a password is reset through it."""
    client = client_of(alice)
    client.post(reverse("account_reauthenticate"), {"password": PASSWORD})
    other = "other@example.org"
    client.post(reverse("account_email"), {"action_add": "", "email": other})
    assert EmailAddress.objects.filter(user=alice, email=other).exists()
    assert (last().action, last().details) == ("address_changed", {"added": other})
    client.post(reverse("account_email"), {"action_remove": "", "email": other})
    assert not EmailAddress.objects.filter(email=other).exists()
    assert (last().action, last().details) == ("address_changed", {"removed": other})


def _totp(secret: str) -> str:
    return str(format_hotp_value(hotp_value(secret, next(yield_hotp_counters_from_time()))))


# --- the administration goes through the same actions ---------------------------------------------


@pytest.fixture
def helper(db, acme) -> User:
    """Staff with every permission there is, who is no superuser and belongs to nothing."""
    user = make_user("helper", is_staff=True)
    user.user_permissions.set(Permission.objects.all())
    return user


def test_staff_make_nobody_a_member_where_they_do_not_manage(helper, acme, alice, client_of):
    add = reverse("admin:accounts_membership_add")
    for user in (helper, make_user("carol")):
        values = {"user": user.pk, "organisation": acme.pk, "role": "owner"}
        client_of(helper).post(add, values)
        assert Membership.objects.role_in(acme, user) is None
    own = Membership.objects.get(user=alice)
    client_of(helper).post(
        reverse("admin:accounts_membership_change", args=[own.pk]), {"role": "member"}
    )
    client_of(helper).post(
        reverse("admin:accounts_membership_delete", args=[own.pk]), {"post": "yes"}
    )
    assert Membership.objects.role_in(acme, alice) is Role.OWNER


def test_an_operator_makes_a_member_and_it_is_told(staff, acme, client_of):
    carol = make_user("carol")
    values = {"user": carol.pk, "organisation": acme.pk, "role": "reviewer"}
    client_of(staff).post(reverse("admin:accounts_membership_add"), values)
    assert Membership.objects.role_in(acme, carol) is Role.REVIEWER
    assert (last().action, last().actor) == ("member_joined", staff)


def test_a_member_is_made_once_and_never_of_a_service_account(staff, alice, acme, elsewhere):
    with pytest.raises(Conflict):
        members.add_member(actor=staff, organisation=acme, user=alice)
    robot = service_accounts.create_service_account(actor=alice, organisation=acme, name="N")
    with pytest.raises(Invalid):
        members.add_member(actor=staff, organisation=elsewhere, user=robot)


def test_staff_neither_rename_nor_delete_what_they_do_not_manage(helper, acme, client_of):
    invited = invitations.invite_member(
        actor=acme.memberships.get().user, organisation=acme, email="x@example.org", role="member"
    ).invitation
    client = client_of(helper)
    client.post(reverse("admin:accounts_organisation_change", args=[acme.pk]), {"name": "Mine"})
    client.post(reverse("admin:accounts_organisation_delete", args=[acme.pk]), {"post": "yes"})
    client.post(reverse("admin:accounts_invitation_delete", args=[invited.pk]), {"post": "yes"})
    acme.refresh_from_db()
    assert acme.name == "Acme"
    assert Invitation.objects.filter(pk=invited.pk).exists()


def test_staff_change_no_address_with_which_they_could_become_somebody(helper, alice, client_of):
    values = {"username": "mine", "email": "helper2@example.org", "is_active": "on"}
    client_of(helper).post(reverse("admin:accounts_user_change", args=[alice.pk]), values)
    alice.refresh_from_db()
    assert (alice.username, alice.email) == ("alice", "alice@example.org")
    for changed in ("email", "username", "password", "is_staff", "user_permissions"):
        with pytest.raises(Forbidden):
            people.save_account(actor=helper, user=alice, changed=[changed])


def test_deleting_accounts_and_organisations_is_the_operators_and_is_told(
    helper, staff, alice, acme, bob
):
    with pytest.raises(Forbidden):
        people.delete_account(actor=helper, user=bob)
    with pytest.raises(Forbidden):
        organisations.delete_organisation(actor=alice, organisation=acme)
    people.delete_account(actor=staff, user=bob)
    organisations.delete_organisation(actor=staff, organisation=acme)
    assert [action for action, _who in told()[-2:]] == ["account_deleted", "organisation_deleted"]
    assert last().details["name"] == "Acme"


def test_what_people_sign_in_with_is_the_operators_to_take_away(helper, staff, alice, client_of):
    held = EmailAddress.objects.create(user=alice, email=alice.email, verified=True, primary=True)
    for name in ("account_emailaddress", "mfa_authenticator", "socialaccount_socialaccount"):
        assert client_of(helper).get(reverse(f"admin:{name}_changelist")).status_code == 403
        assert client_of(staff).get(reverse(f"admin:{name}_changelist")).status_code == 200
        assert client_of(staff).get(reverse(f"admin:{name}_add")).status_code == 403
    retyped(client_of(staff)).post(
        reverse("admin:account_emailaddress_delete", args=[held.pk]), {"post": "yes"}
    )
    assert not EmailAddress.objects.exists()
    assert last().action == "factor_removed"
    with pytest.raises(Forbidden):
        people.take_sign_in_away(actor=helper, means=held)


WRITES = {"add": ["save_model"], "change": ["save_model"]} | {
    "delete": ["delete_model", "delete_queryset"]
}
UNLOCKS = {"axes"}
"""Deleting one of its rows unlocks an account, and nothing more."""


def test_no_page_of_the_administration_writes_past_the_actions(helper, staff, rf):
    """Whoever may add, change or delete there does it by a method of ours, which calls an action."""
    past = []
    for user in (helper, staff):
        request = rf.get("/admin/")
        request.user = user
        for model, page in admin.site._registry.items():
            allowed = {
                "add": page.has_add_permission(request),
                "change": page.has_change_permission(request),
                "delete": page.has_delete_permission(request),
            }
            past += [
                f"{model.__name__}.{name}"
                for what, names in WRITES.items()
                for name in names
                if allowed[what]
                and model._meta.app_label not in UNLOCKS
                and getattr(type(page), name) is getattr(ModelAdmin, name)
            ]
    assert not past, sorted(set(past))


# --- several at once ------------------------------------------------------------------------------


class SlowHasher(MD5PasswordHasher):
    """The forms are judged before the first account is stored."""

    def encode(self, password: str, salt: str) -> str:
        time.sleep(0.3)
        return super().encode(password, salt)


@pytest.mark.django_db(transaction=True)
def test_of_four_who_sign_up_on_one_invitation_at_once_one_does_and_the_others_are_told(
    settings,
):
    settings.PASSWORD_HASHERS = [f"{__name__}.SlowHasher"]
    alice = make_user("alice")
    acme = organisations.create_organisation(actor=alice, name="Acme")
    email = "carol@example.org"
    issued = invitations.invite_member(actor=alice, organisation=acme, email=email, role="member")
    clients = [Client(raise_request_exception=False) for _ in range(4)]
    for client in clients:
        assert client.get(reverse("accounts:invitation", args=[issued.token])).status_code == 200
    answers: list[int] = []
    together = threading.Barrier(4)

    def sign_up(client: Client, number: int) -> None:
        values = {
            "email": email,
            "username": f"carol{number}",
            "password1": NEW_PASSWORD,
            "password2": NEW_PASSWORD,
        }
        together.wait()
        try:
            answers.append(client.post(reverse("account_signup"), values).status_code)
        finally:
            connection.close()

    threads = [
        threading.Thread(target=sign_up, args=(client, number))
        for number, client in enumerate(clients)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 4
    assert all(status < 500 for status in answers), answers
    assert User.objects.filter(email=email).count() == 1
    assert Membership.objects.filter(organisation=acme).count() == 2

"""What staff who are no superusers may do to people in the administration."""

from __future__ import annotations

import pytest
from axes.models import AccessAttempt
from django.contrib import admin
from django.contrib.auth.models import Permission
from django.test import RequestFactory
from django.urls import reverse

from accounts.actions.people import end_after_reset, save_account
from accounts.actions.tokens import create_token
from accounts.models import ApiToken, User
from audit.models import AuditEntry
from harness.errors import Forbidden
from tests.cast import PASSWORD, make_user, retyped

NEW_PASSWORD = "an entirely new phrase"


@pytest.fixture
def helper(db) -> User:
    """Staff who may see, change and delete people."""
    user = make_user("helper", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(content_type__app_label="accounts"))
    return user


def everything_ticked(user: User) -> dict[str, object]:
    return {
        "username": user.username,
        "email": user.email,
        "first_name": "Changed",
        "is_active": "on",
        "is_staff": "on",
        "is_superuser": "on",
        "user_permissions": list(Permission.objects.values_list("pk", flat=True)),
    }


def change_page(user: User) -> str:
    return reverse("admin:accounts_user_change", args=[user.pk])


def password_page(user: User) -> str:
    return reverse("admin:auth_user_password_change", args=[user.pk])


def test_staff_hand_out_no_powers_not_even_to_themselves(helper, alice, client_of):
    client, own = client_of(helper), helper.user_permissions.count()

    for user in (helper, alice):
        answer = client.post(change_page(user), everything_ticked(user))
        assert answer.status_code == 302, answer.content.decode()
        user.refresh_from_db()
        assert user.first_name == "Changed"
        assert not user.is_superuser
    assert not alice.is_staff
    assert alice.user_permissions.count() == 0
    assert helper.user_permissions.count() == own


def test_a_form_that_was_read_before_takes_nothing_else_back(staff, alice):
    read_before = User.objects.get(pk=alice.pk)
    alice.set_password(NEW_PASSWORD)
    alice.language = "de"
    alice.save()

    read_before.first_name = "Alice"
    save_account(actor=staff, user=read_before, changed=["first_name", "user_permissions"])
    alice.refresh_from_db()
    assert (alice.first_name, alice.language) == ("Alice", "de")
    assert alice.check_password(NEW_PASSWORD)


def test_staff_neither_change_nor_delete_a_superuser(helper, staff, client_of):
    client = client_of(helper)
    delete = reverse("admin:accounts_user_delete", args=[staff.pk])
    many = {"action": "delete_selected", "_selected_action": [staff.pk], "post": "yes"}

    assert client.post(change_page(staff), everything_ticked(staff)).status_code == 403
    assert client.post(delete, {"post": "yes"}).status_code == 403
    client.post(reverse("admin:accounts_user_changelist"), many)

    staff.refresh_from_db()
    assert staff.first_name == ""


def test_staff_who_are_no_superusers_set_nobodys_password(helper, staff, alice, client_of):
    client = client_of(helper)
    values = {"password1": NEW_PASSWORD, "password2": NEW_PASSWORD, "usable_password": "true"}

    for user in (staff, alice):
        assert client.post(password_page(user), values).status_code == 403
        user.refresh_from_db()
        assert user.check_password(PASSWORD)
    assert retyped(client_of(staff)).post(password_page(alice), values).status_code == 302
    alice.refresh_from_db()
    assert alice.check_password(NEW_PASSWORD)


def test_a_password_that_a_superuser_sets_ends_what_one_reset_by_mail_ends(
    staff, alice, bob, acme, client_of
):
    for person in (alice, bob):
        create_token(actor=person, organisation=acme, name="ci", scopes=["conversations:read"])
    hers, his = client_of(alice), client_of(bob)
    values = {"password1": NEW_PASSWORD, "password2": NEW_PASSWORD, "usable_password": "true"}
    page = retyped(client_of(staff)).post(password_page(alice), values, follow=True)

    assert hers.get("/").status_code == 302
    assert his.get("/").status_code == 200
    assert {token.user for token in ApiToken.objects.filter(revoked_at=None)} == {bob}
    assert "1 token was revoked" in page.content.decode()
    told = AuditEntry.objects.order_by("-pk")
    assert [(entry.action, entry.actor) for entry in told[:2]] == [
        ("password_reset", staff),
        ("token_revoked", staff),
    ]
    assert told[0].details == {
        "member": {"id": alice.uid, "name": "alice"},
        "tokens_revoked": 1,
    }


@pytest.mark.parametrize(
    "values",
    [
        {"password1": NEW_PASSWORD, "password2": "another", "usable_password": "true"},
        {"password1": "", "password2": "", "usable_password": "false"},
    ],
    ids=["two different ones", "neither set nor taken away"],
)
def test_a_password_that_was_not_set_ends_nothing(staff, alice, acme, client_of, values):
    create_token(actor=alice, organisation=acme, name="ci", scopes=["conversations:read"])
    before = AuditEntry.objects.count()
    assert retyped(client_of(staff)).post(password_page(alice), values).status_code in {200, 302}

    assert ApiToken.objects.get().is_valid
    assert AuditEntry.objects.count() == before


def test_nobody_but_a_superuser_ends_what_anothers_password_opened(helper, alice, bob, acme):
    create_token(actor=bob, organisation=acme, name="ci", scopes=["conversations:read"])
    for actor in (helper, alice):
        with pytest.raises(Forbidden):
            end_after_reset(actor=actor, user=bob)
    assert ApiToken.objects.get().is_valid


def test_a_superuser_hands_out_powers(staff, alice, client_of):
    answer = retyped(client_of(staff)).post(change_page(alice), everything_ticked(alice))
    assert answer.status_code == 302

    alice.refresh_from_db()
    assert alice.is_staff
    assert alice.is_superuser


def test_whoever_may_only_look_is_offered_nothing_to_do_in_any_list(helper):
    helper.user_permissions.set(Permission.objects.filter(codename__startswith="view_"))
    request = RequestFactory().get("/admin/")
    request.user = User.objects.get(pk=helper.pk)
    offered = {
        f"{model._meta.label}: {name}"
        for model, page in admin.site._registry.items()
        for name in page.get_actions(request)
    }
    changed = {
        model._meta.label
        for model, page in admin.site._registry.items()
        if page.has_add_permission(request)
        or page.has_change_permission(request)
        or page.has_delete_permission(request)
    }

    assert (offered, changed) == (set(), set())


def test_only_an_operator_lets_somebody_try_to_sign_in_again_before_its_time(
    helper, staff, client_of
):
    helper.user_permissions.add(*Permission.objects.filter(content_type__app_label="axes"))
    failed = AccessAttempt.objects.create(
        username="account:1",
        ip_address="198.51.100.1",
        failures_since_start=5,
        post_data="typed=horse-battery",
    )
    listed = reverse("admin:axes_accessattempt_changelist")
    page = reverse("admin:axes_accessattempt_change", args=[failed.pk])
    delete = reverse("admin:axes_accessattempt_delete", args=[failed.pk])
    many = {"action": "delete_selected", "_selected_action": [failed.pk], "post": "yes"}
    helping = client_of(helper)

    assert "horse-battery" not in helping.get(page).content.decode()
    assert helping.post(page, {"username": "account:2"}).status_code == 403
    assert helping.post(delete, {"post": "yes"}).status_code == 403
    helping.post(listed, many)
    helping.post(listed, {**many, "action": "cleanup_expired_attempts"})
    failed.refresh_from_db()
    assert failed.username == "account:1"

    assert client_of(staff).post(delete, {"post": "yes"}).status_code == 302
    assert not AccessAttempt.objects.exists()

"""A key of an environment ends with the powers of the staff who were shown it."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group, Permission
from django.urls import reverse
from rest_framework.exceptions import AuthenticationFailed

from accounts.actions.people import delete_account, save_account
from accounts.models import User
from audit.models import AuditEntry
from harness.errors import Forbidden
from providers.scripted import reply
from tests.cast import make_user, retyped
from tests.workers.working import READ, taken
from v1.workers import worker_with
from workers import items as work
from workers.actions.keys import create_key
from workers.models import EnvironmentKey, WorkItem

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def operator(db) -> User:
    """Staff who manage the keys of workers, and no superuser."""
    user = make_user("operator", is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="change_environmentkey"))
    return User.objects.get(pk=user.pk)


@pytest.fixture
def secret(operator, environment) -> str:
    return create_key(actor=operator, environment=environment, name="hers").secret


def opens(secret: str) -> bool:
    try:
        return worker_with(secret) is not None
    except AuthenticationFailed:
        return False


@pytest.mark.parametrize("power", ["is_active", "is_staff"])
def test_a_key_ends_with_the_powers_of_who_was_shown_it(staff, operator, key, secret, power):
    assert opens(secret)
    setattr(operator, power, False)
    save_account(actor=staff, user=operator, changed=[power])

    assert not opens(secret)
    assert EnvironmentKey.objects.valid().get() == key, "what others were shown stays"
    told = AuditEntry.objects.get(action="key_revoked")
    assert (told.actor, told.details["name"]) == (staff, "hers")


def test_a_key_ends_with_the_superuser_who_was_shown_it(staff, environment):
    root = make_user("root", is_staff=True, is_superuser=True)
    secret = create_key(actor=root, environment=environment, name="theirs").secret
    root.is_superuser = False
    save_account(actor=staff, user=root, changed=["is_superuser"])
    assert not opens(secret)


def test_a_key_ends_with_the_account_of_who_was_shown_it(staff, operator, secret):
    delete_account(actor=staff, user=operator)
    assert not opens(secret)


def test_a_key_ends_with_the_permission_that_the_admin_takes_away(
    client_of, staff, operator, secret
):
    form = {
        "username": operator.username,
        "email": operator.email,
        "is_active": "on",
        "is_staff": "on",
    }
    address = reverse("admin:accounts_user_change", args=[operator.pk])
    assert retyped(client_of(staff)).post(address, form).status_code == 302
    assert not operator.user_permissions.exists()
    assert not opens(secret)


@pytest.mark.parametrize("way", ["permission", "group", "membership"])
def test_a_key_ends_with_the_group_that_gave_the_power(environment, way):
    group = Group.objects.create(name="Keepers")
    group.permissions.add(Permission.objects.get(codename="change_environmentkey"))
    keeper = make_user("keeper", is_staff=True)
    keeper.groups.add(group)
    keeper = User.objects.get(pk=keeper.pk)
    secret = create_key(actor=keeper, environment=environment, name="hers").secret
    group.permissions.remove(Permission.objects.get(codename="view_environmentkey"))
    assert opens(secret)

    match way:
        case "permission":
            group.permissions.clear()
        case "group":
            group.delete()
        case "membership":
            group.user_set.remove(keeper)

    assert not opens(secret)


def test_a_key_stays_while_who_was_shown_it_may_manage_keys(staff, operator, secret):
    operator.is_superuser = True
    save_account(actor=staff, user=operator, changed=["is_superuser"])
    operator.is_superuser = False
    save_account(actor=staff, user=operator, changed=["is_superuser"])
    operator.email = "new@example.org"
    save_account(actor=staff, user=operator, changed=["email"])
    assert opens(secret)


def test_what_a_worker_has_by_such_a_key_goes_to_another(staff, operator, begin, secret):
    begin(READ, reply("Read."))
    item = taken(EnvironmentKey.objects.get())
    operator.is_active = False
    save_account(actor=staff, user=operator, changed=["is_active"])

    assert not work.holds(item)
    assert WorkItem.objects.alive().get().state == "queued"


def test_who_lost_her_powers_since_she_was_read_is_shown_no_key(operator, environment):
    User.objects.filter(pk=operator.pk).update(is_staff=False)
    with pytest.raises(Forbidden):
        create_key(actor=operator, environment=environment, name="late")
    assert not EnvironmentKey.objects.exists()

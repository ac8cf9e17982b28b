"""Secrets of service accounts end with the role of whoever was shown them."""

from __future__ import annotations

import pytest
from django.urls import reverse

from accounts.actions.members import change_role, remove_member
from accounts.actions.people import delete_account, save_account
from accounts.actions.service_accounts import create_service_account
from accounts.actions.tokens import create_token, rotate_token
from accounts.api.authentication import caller_with
from accounts.models import Membership, Organisation, Role, User
from audit.models import AuditEntry
from tests.cast import join, make_user, shown


@pytest.fixture
def carol(acme: Organisation) -> User:
    """Owns Acme with alice."""
    carol = make_user("carol")
    join(carol, acme, Role.OWNER)
    return carol


@pytest.fixture
def robot(alice: User, acme: Organisation) -> User:
    return create_service_account(actor=alice, organisation=acme, name="Nightly", role=Role.ADMIN)


def secret_for(account: User, *, shown_to: User, organisation: Organisation) -> str:
    return create_token(
        actor=shown_to, organisation=organisation, name="ci", scopes=["admin"], user=account
    ).secret


def place(user: User, organisation: Organisation) -> Membership:
    return Membership.objects.get(user=user, organisation=organisation)


def revoked_by() -> list[tuple[str, str]]:
    told = AuditEntry.objects.filter(action="token_revoked").order_by("pk")
    return [(entry.actor_name, entry.details["holder"]["name"]) for entry in told]


def test_a_removed_owner_keeps_no_way_in_through_a_service_account(alice, carol, robot, acme):
    known = secret_for(robot, shown_to=carol, organisation=acme)
    unknown = secret_for(robot, shown_to=alice, organisation=acme)
    remove_member(actor=alice, membership=place(carol, acme))

    assert caller_with(known) is None
    assert caller_with(unknown) is not None
    assert revoked_by() == [("alice", robot.username)]


def test_a_demoted_owner_keeps_those_secrets_as_long_as_she_manages(alice, carol, robot, acme):
    known = secret_for(robot, shown_to=carol, organisation=acme)
    change_role(actor=alice, membership=place(carol, acme), role="admin")
    assert caller_with(known) is not None

    change_role(actor=alice, membership=place(carol, acme), role="reviewer")
    assert caller_with(known) is None


def test_a_secret_that_another_manager_replaced_outlives_who_made_the_first(
    alice, carol, robot, acme
):
    made = create_token(
        actor=carol, organisation=acme, name="ci", scopes=["admin"], user=robot
    ).token
    replaced = rotate_token(actor=alice, token=made).secret
    remove_member(actor=alice, membership=place(carol, acme))

    assert caller_with(replaced) is not None


def test_leaving_one_organisation_ends_no_secret_of_another(alice, carol, robot, acme, elsewhere):
    join(carol, elsewhere, Role.ADMIN)
    theirs = create_service_account(actor=carol, organisation=elsewhere, name="Theirs")
    kept = create_token(
        actor=carol,
        organisation=elsewhere,
        name="ci",
        scopes=["conversations:read"],
        user=theirs,
    ).secret
    remove_member(actor=carol, membership=place(carol, acme))

    assert caller_with(kept) is not None


def test_closing_or_deleting_an_account_ends_the_secrets_that_it_was_shown(
    staff, carol, robot, acme
):
    first = secret_for(robot, shown_to=carol, organisation=acme)
    carol.is_active = False
    save_account(actor=staff, user=carol, changed=["is_active"])
    assert caller_with(first) is None

    dana = make_user("dana")
    join(dana, acme, Role.ADMIN)
    second = secret_for(robot, shown_to=dana, organisation=acme)
    delete_account(actor=staff, user=dana)
    assert caller_with(second) is None
    assert revoked_by() == [("staff", robot.username)] * 2


def test_who_is_no_superuser_any_more_keeps_only_secrets_of_what_she_manages(
    staff, alice, robot, acme
):
    operator = make_user("operator", is_staff=True, is_superuser=True)
    known = secret_for(robot, shown_to=operator, organisation=acme)
    alice.is_superuser = True
    alice.save()
    hers = secret_for(robot, shown_to=alice, organisation=acme)
    for user in (operator, alice):
        user.is_superuser = False
        save_account(actor=staff, user=user, changed=["is_superuser"])

    assert caller_with(known) is None
    assert caller_with(hers) is not None


def test_the_page_says_how_many_secrets_ended_with_a_role(alice, carol, robot, acme, client_of):
    secret_for(robot, shown_to=carol, organisation=acme)
    client, hers = client_of(alice), place(carol, acme).pk
    page = client.post(
        reverse("accounts:member-role", args=[hers]), shown(acme, role="member"), follow=True
    )
    assert "1 token of a service account was revoked" in page.content.decode()
    page = client.post(reverse("accounts:member-remove", args=[hers]), shown(acme), follow=True)
    assert "token of a service account" not in page.content.decode()

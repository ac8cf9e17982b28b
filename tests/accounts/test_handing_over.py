"""Whose place a service account takes, also once its maker has left: always one person's who is there."""

from __future__ import annotations

import pytest

from accounts.actions.members import remove_member
from accounts.actions.organisations import create_organisation
from accounts.actions.people import delete_account
from accounts.actions.service_accounts import create_service_account
from accounts.models import Membership, Organisation, Role, User
from accounts.persons import persons_behind, sharing_place, whose_place
from tests.cast import join, make_user


@pytest.fixture
def carol(acme: Organisation) -> User:
    """Administers Acme."""
    carol = make_user("carol")
    join(carol, acme, Role.ADMIN)
    return carol


@pytest.fixture
def hers(carol: User, acme: Organisation) -> User:
    return create_service_account(actor=carol, organisation=acme, name="Carol's")


def place_now(account: User) -> int:
    return whose_place(User.objects.get(pk=account.pk))


def leave(person: User, organisation: Organisation) -> None:
    remove_member(
        actor=person, membership=Membership.objects.get(user=person, organisation=organisation)
    )


def test_a_service_account_takes_the_place_of_its_maker_with_all_others_of_hers(
    alice: User, carol: User, acme: Organisation, hers: User
):
    other = create_service_account(actor=carol, organisation=acme, name="Other")
    assert {place_now(who) for who in (carol, hers, other)} == {carol.pk}
    assert set(sharing_place(carol.pk)) == {carol, hers, other}
    assert set(sharing_place(alice.pk)) == {alice}


def test_what_a_service_account_makes_takes_the_place_of_the_same_person(
    carol: User, acme: Organisation
):
    first = create_service_account(actor=carol, organisation=acme, name="1", role=Role.ADMIN)
    second = create_service_account(actor=first, organisation=acme, name="2", role=Role.ADMIN)
    third = create_service_account(actor=second, organisation=acme, name="3")
    assert {place_now(who) for who in (first, second, third)} == {carol.pk}


def test_when_its_maker_leaves_an_account_takes_the_place_of_the_longest_standing_owner(
    alice: User, carol: User, acme: Organisation, hers: User
):
    elsewhere = create_organisation(actor=carol, name="Carol's own")
    kept = create_service_account(actor=carol, organisation=elsewhere, name="Kept")
    leave(carol, acme)
    assert place_now(hers) == alice.pk
    assert place_now(kept) == carol.pk, "she is there still"
    assert alice.pk in persons_behind(User.objects.get(pk=hers.pk))


def test_a_deleted_account_leaves_no_service_account_to_itself(
    alice: User, carol: User, staff: User, acme: Organisation, hers: User
):
    mine = create_service_account(actor=alice, organisation=acme, name="Alice's")
    delete_account(actor=staff, user=carol)
    assert place_now(hers) == alice.pk
    carol = make_user("carol")
    join(carol, acme, Role.ADMIN)
    delete_account(actor=staff, user=alice)
    assert {place_now(who) for who in (mine, hers)} == {carol.pk}, "without owners, who manages"

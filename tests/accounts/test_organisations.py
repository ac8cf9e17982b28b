"""Organisations come into being, and one of them is the current one."""

from __future__ import annotations

import threading

import pytest
from django.db import IntegrityError, connection, transaction
from django.urls import reverse

from accounts.actions.members import remove_member
from accounts.actions.organisations import (
    create_organisation,
    ensure_personal_organisation,
    rename_organisation,
)
from accounts.models import Membership, Organisation, Role, User
from harness.errors import Forbidden, Invalid, LimitReached, NotFound
from tests.cast import join, make_user


def test_whoever_creates_an_organisation_owns_it(alice):
    organisation = create_organisation(actor=alice, name="  Acme   Works ")

    assert organisation.name == "Acme Works"
    assert Membership.objects.role_in(organisation, alice) is Role.OWNER


def test_two_organisations_of_one_name_differ_in_their_short_names(alice, mallory):
    first = create_organisation(actor=alice, name="Acme")
    second = create_organisation(actor=mallory, name="Acme")

    assert first.slug != second.slug


@pytest.mark.parametrize("name", ["", "   ", "x" * 121])
def test_a_name_outside_its_limits_is_refused_by_field(alice, name):
    with pytest.raises(Invalid) as refusal:
        create_organisation(actor=alice, name=name)
    assert refusal.value.field == "name"
    assert not Organisation.objects.exists()


def test_a_name_at_its_limit_is_taken(alice):
    assert create_organisation(actor=alice, name="x" * 120).name == "x" * 120


def test_a_name_without_a_single_letter_still_gets_a_short_name(alice):
    assert create_organisation(actor=alice, name="!!!").slug.startswith("organisation-")


def test_only_those_who_manage_may_rename(alice, bob, mallory, acme):
    with pytest.raises(Forbidden):
        rename_organisation(actor=bob, organisation=acme, name="Bobs")
    with pytest.raises(NotFound):
        rename_organisation(actor=mallory, organisation=acme, name="Mallorys")
    rename_organisation(actor=alice, organisation=acme, name="Acme II")

    acme.refresh_from_db()
    assert acme.name == "Acme II"


def test_a_person_without_any_organisation_gets_a_personal_one(alice):
    made = ensure_personal_organisation(user=alice)

    assert ensure_personal_organisation(user=alice) == made
    assert Membership.objects.role_in(made, alice) is Role.OWNER
    assert Organisation.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_two_first_requests_at_once_make_one_personal_organisation():
    user = make_user("carol")
    both = threading.Barrier(2)

    def ask() -> None:
        both.wait()
        ensure_personal_organisation(user=user)
        connection.close()

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Organisation.objects.filter(personal_of=user).count() == 1
    assert user.memberships.count() == 1


def test_whoever_was_removed_from_her_personal_organisation_does_not_come_back(
    alice, bob, client_of
):
    former = ensure_personal_organisation(user=alice)
    Membership.objects.filter(user=alice).exclude(organisation=former).delete()
    join(bob, former, Role.OWNER)
    remove_member(actor=bob, membership=former.memberships.get(user=alice))

    page = client_of(alice).get(reverse("accounts:organisation"))

    assert Membership.objects.role_in(former, alice) is None
    current = page.context["request"].organisation
    assert current != former
    assert current.personal_of == alice
    assert Membership.objects.role_in(current, alice) is Role.OWNER
    former.refresh_from_db()
    assert former.personal_of is None
    assert ensure_personal_organisation(user=alice) == current


def test_personal_organisations_given_away_count_as_made(alice, bob, settings):
    settings.AGENTSITE_ORGANISATIONS_PER_PERSON = 4
    Membership.objects.filter(user=alice).delete()
    given = []
    with pytest.raises(LimitReached):
        for _round in range(10):
            own = ensure_personal_organisation(user=alice)
            join(bob, own, Role.OWNER)
            remove_member(actor=alice, membership=own.memberships.get(user=alice))
            given.append(own)
    assert len(given) <= 4
    assert Organisation.objects.filter(made_by=alice).count() <= 4
    assert ensure_personal_organisation(user=alice).personal_of == alice


def test_a_request_works_in_the_first_organisation_until_another_is_chosen(alice, acme, client_of):
    second = create_organisation(actor=alice, name="Second")
    client = client_of(alice)

    assert client.get(reverse("accounts:organisation")).context["request"].organisation == acme
    client.post(reverse("accounts:organisation-switch"), {"organisation": second.uid})
    assert client.get(reverse("accounts:organisation")).context["request"].organisation == second


def test_a_choice_is_passed_over_once_one_no_longer_belongs_there(bob, acme, client_of):
    own = create_organisation(actor=bob, name="Bobs")
    client = client_of(bob)
    client.post(reverse("accounts:organisation-switch"), {"organisation": acme.uid})
    Membership.objects.filter(user=bob, organisation=acme).delete()

    assert client.get(reverse("accounts:organisation")).context["request"].organisation == own


def test_mallory_cannot_switch_into_acme(mallory, elsewhere, acme, client_of):
    client = client_of(mallory)

    answer = client.post(reverse("accounts:organisation-switch"), {"organisation": acme.uid})

    assert answer.status_code == 404
    page = client.get(reverse("accounts:organisation"))
    assert page.context["request"].organisation == elsewhere


def test_mallory_sees_only_her_own_organisation(mallory, elsewhere, acme):
    assert list(Organisation.objects.visible_to(mallory)) == [elsewhere]


@pytest.mark.parametrize(
    ("username", "email"), [("other", "ALICE@example.org"), ("ALICE", "other@example.org")]
)
def test_names_and_addresses_are_unique_whatever_their_case(alice, username, email):
    with pytest.raises(IntegrityError), transaction.atomic():
        User.objects.create_user(username, email, "x")

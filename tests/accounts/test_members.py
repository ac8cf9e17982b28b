"""Who may change whose membership."""

from __future__ import annotations

import pytest
from django.urls import reverse

from accounts.actions.members import change_role, remove_member
from accounts.actions.service_accounts import create_service_account
from accounts.models import Membership, Role, User
from audit.models import AuditEntry
from conversations.actions.stored_files import store_file
from conversations.models import StoredFile
from harness.errors import Conflict, Forbidden, Invalid, NotFound
from tests.cast import join, make_user


def membership_of(user, organisation):
    return Membership.objects.get(user=user, organisation=organisation)


def test_an_owner_makes_a_member_an_administrator(alice, bob, acme):
    change_role(actor=alice, membership=membership_of(bob, acme), role="admin")

    assert Membership.objects.role_in(acme, bob) is Role.ADMIN


def test_a_member_may_not_change_roles(bob, acme, alice):
    with pytest.raises(Forbidden):
        change_role(actor=bob, membership=membership_of(bob, acme), role="owner")
    assert Membership.objects.role_in(acme, bob) is Role.MEMBER


def test_to_mallory_a_membership_of_acme_does_not_exist(mallory, elsewhere, bob, acme):
    with pytest.raises(NotFound):
        change_role(actor=mallory, membership=membership_of(bob, acme), role="reviewer")
    with pytest.raises(NotFound):
        remove_member(actor=mallory, membership=membership_of(bob, acme))
    assert Membership.objects.role_in(acme, bob) is Role.MEMBER


def test_an_administrator_neither_makes_nor_unmakes_an_owner(alice, bob, acme):
    carol = make_user("carol")
    join(carol, acme, Role.ADMIN)

    with pytest.raises(Forbidden):
        change_role(actor=carol, membership=membership_of(bob, acme), role="owner")
    with pytest.raises(Forbidden):
        change_role(actor=carol, membership=membership_of(alice, acme), role="member")
    with pytest.raises(Forbidden):
        remove_member(actor=carol, membership=membership_of(alice, acme))
    change_role(actor=carol, membership=membership_of(bob, acme), role="reviewer")
    assert Membership.objects.role_in(acme, bob) is Role.REVIEWER


def test_an_unknown_role_is_refused_by_name(alice, bob, acme):
    with pytest.raises(Invalid) as refusal:
        change_role(actor=alice, membership=membership_of(bob, acme), role="emperor")
    assert refusal.value.field == "role"
    assert "owner" in refusal.value.hint


def test_the_last_owner_can_neither_step_down_nor_leave(alice, bob, acme):
    with pytest.raises(Conflict):
        change_role(actor=alice, membership=membership_of(alice, acme), role="member")
    with pytest.raises(Conflict):
        remove_member(actor=alice, membership=membership_of(alice, acme))
    assert Membership.objects.role_in(acme, alice) is Role.OWNER


def test_the_last_owner_steps_down_once_there_is_another(alice, bob, acme):
    change_role(actor=alice, membership=membership_of(bob, acme), role="owner")
    change_role(actor=alice, membership=membership_of(alice, acme), role="member")

    assert Membership.objects.role_in(acme, alice) is Role.MEMBER


def test_a_stale_membership_does_not_fool_the_last_owner_rule(alice, bob, acme):
    stale = membership_of(alice, acme)
    change_role(actor=alice, membership=membership_of(bob, acme), role="owner")
    Membership.objects.filter(user=bob).update(role=Role.MEMBER)

    with pytest.raises(Conflict):
        remove_member(actor=alice, membership=stale)


def test_a_member_may_leave(bob, acme):
    remove_member(actor=bob, membership=membership_of(bob, acme))

    assert Membership.objects.role_in(acme, bob) is None


def test_a_membership_that_is_gone_is_not_found(alice, bob, acme):
    gone = membership_of(bob, acme)
    remove_member(actor=alice, membership=membership_of(bob, acme))

    with pytest.raises(NotFound):
        remove_member(actor=alice, membership=gone)


def test_one_sees_only_the_members_of_ones_own_organisations(alice, bob, acme, mallory, elsewhere):
    assert {row.user for row in Membership.objects.visible_to(bob)} == {alice, bob}
    assert {row.user for row in Membership.objects.visible_to(mallory)} == {mallory}


@pytest.fixture
def robot(alice, acme):
    return create_service_account(actor=alice, organisation=acme, name="Nightly")


def test_a_service_account_does_not_become_an_owner(alice, acme, robot):
    with pytest.raises(Forbidden):
        change_role(actor=alice, membership=membership_of(robot, acme), role="owner")
    assert Membership.objects.role_in(acme, robot) is Role.MEMBER
    change_role(actor=alice, membership=membership_of(robot, acme), role="admin")
    assert Membership.objects.role_in(acme, robot) is Role.ADMIN


def test_the_page_offers_no_service_account_to_be_an_owner(alice, bob, acme, robot, client_of):
    page = client_of(alice).get(reverse("accounts:organisation")).content.decode()

    def offered(user):
        choice = page.split(f'<select id="role-{membership_of(user, acme).pk}"')[1]
        return choice.split("</select>")[0]

    assert 'value="owner"' in offered(bob)
    assert 'value="admin"' in offered(robot)
    assert 'value="owner"' not in offered(robot)


@pytest.mark.parametrize("other", ["service account", "inactive person"])
def test_an_organisation_is_not_left_to_an_owner_who_cannot_act(alice, bob, acme, robot, other):
    if other == "service account":
        Membership.objects.filter(user=robot).update(role=Role.OWNER)
    else:
        Membership.objects.filter(user=bob).update(role=Role.OWNER)
        User.objects.filter(pk=bob.pk).update(is_active=False)

    with pytest.raises(Conflict):
        change_role(actor=alice, membership=membership_of(alice, acme), role="member")
    with pytest.raises(Conflict):
        remove_member(actor=alice, membership=membership_of(alice, acme))
    assert Membership.objects.role_in(acme, alice) is Role.OWNER


def test_a_service_account_removed_among_the_members_ends_with_its_uploads(
    alice, acme, robot, settings, tmp_path
):
    settings.AGENTSITE_FILES_DIR = tmp_path
    store_file(
        actor=robot, organisation=acme, filename="a", mime_type="text/plain", chunks=[b"x" * 10]
    )

    remove_member(actor=alice, membership=membership_of(robot, acme))

    assert not StoredFile.objects.kept().exists()
    assert not User.objects.get(pk=robot.pk).is_active
    assert AuditEntry.objects.filter(action="service_removed").exists()


def test_a_member_removes_no_service_account_among_the_members(bob, acme, robot):
    with pytest.raises(Forbidden):
        remove_member(actor=bob, membership=membership_of(robot, acme))
    assert Membership.objects.role_in(acme, robot) is Role.MEMBER

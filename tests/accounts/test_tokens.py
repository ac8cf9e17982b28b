"""Tokens: made, shown once, rotated, revoked; and whom a presented one speaks for."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from accounts.actions.members import remove_member
from accounts.actions.service_accounts import create_service_account, remove_service_account
from accounts.actions.tokens import create_token, revoke_token, rotate_token
from accounts.api.authentication import caller_with
from accounts.api.throttling import count_request
from accounts.models import ApiToken, Membership, Role, TokenScope, User
from harness.errors import Conflict, Forbidden, Invalid, LimitReached, NotFound, TooLarge, TooMany
from tests.cast import PASSWORD

READ = TokenScope.CONVERSATIONS_READ


@pytest.fixture
def issued(alice, acme):
    return create_token(actor=alice, organisation=acme, name="Laptop", scopes=[READ])


def test_a_secret_is_shown_once_and_stored_only_as_a_hash(issued):
    row = ApiToken.objects.values().get(pk=issued.token.pk)
    assert issued.secret.startswith("ags_")
    assert len(issued.secret) == 68
    assert issued.secret not in repr(issued)
    stored = " ".join(str(value) for value in row.values())
    assert issued.secret not in stored
    assert issued.secret[15:] not in stored
    assert issued.token.shown_prefix == issued.secret[:10] + "…"


def test_a_token_speaks_for_its_person_in_its_organisation(issued, alice, acme):
    caller = caller_with(issued.secret)
    assert caller is not None
    assert (caller.user, caller.organisation, caller.token) == (alice, acme, issued.token)


@pytest.mark.django_db
@pytest.mark.parametrize("secret", ["", "ags_", "ags_" + "0" * 64, "ü" * 68, "a" * 5000, "a\x00b"])
def test_a_wrong_secret_speaks_for_nobody(secret):
    assert caller_with(secret) is None


def test_an_expired_token_speaks_for_nobody_and_stays_on_the_list(issued, alice):
    ApiToken.objects.update(expiry=timezone.now() - timedelta(seconds=1))
    assert caller_with(issued.secret) is None
    assert ApiToken.objects.visible_to(alice).count() == 1


def test_a_revoked_token_speaks_for_nobody(issued, alice):
    revoke_token(actor=alice, token=issued.token)
    revoked_at = ApiToken.objects.get().revoked_at
    assert revoked_at is not None
    assert caller_with(issued.secret) is None
    revoke_token(actor=alice, token=issued.token)
    assert ApiToken.objects.get().revoked_at == revoked_at


def test_who_was_deactivated_is_spoken_for_no_more(issued, alice):
    User.objects.filter(pk=alice.pk).update(is_active=False)
    assert caller_with(issued.secret) is None


def test_who_left_is_spoken_for_no_more_and_not_after_coming_back(alice, acme, bob):
    secret = create_token(actor=bob, organisation=acme, name="x", scopes=[READ]).secret
    assert caller_with(secret) is not None
    remove_member(actor=alice, membership=Membership.objects.get(user=bob))
    assert caller_with(secret) is None
    Membership.objects.create(user=bob, organisation=acme)
    assert caller_with(secret) is None


def test_a_membership_that_goes_any_other_way_ends_the_token_too(acme, bob):
    secret = create_token(actor=bob, organisation=acme, name="x", scopes=[READ]).secret
    Membership.objects.filter(user=bob).delete()
    assert caller_with(secret) is None


def test_a_token_for_conversations_carries_no_powers_of_staff(staff, acme):
    Membership.objects.create(user=staff, organisation=acme)
    plain = create_token(actor=staff, organisation=acme, name="plain", scopes=[READ])
    managing = create_token(
        actor=staff, organisation=acme, name="managing", scopes=[READ, TokenScope.AGENTS_MANAGE]
    )
    powers = []
    for issued in (plain, managing):
        caller = caller_with(issued.secret)
        assert caller is not None
        powers.append((caller.user.is_staff, caller.user.is_superuser))
    assert powers == [(False, False), (True, True)]


def test_a_scope_that_is_offered_no_more_is_refused_and_does_no_harm_where_it_stands(alice, acme):
    with pytest.raises(Invalid) as refused:
        create_token(actor=alice, organisation=acme, name="x", scopes=["mcp"])
    assert refused.value.field == "scopes"

    old = create_token(actor=alice, organisation=acme, name="x", scopes=[READ]).token
    ApiToken.objects.filter(pk=old.pk).update(scopes=["mcp", READ])
    old.refresh_from_db()

    assert rotate_token(actor=alice, token=old).token.has_scope(READ)


def test_scopes_come_in_one_order_and_once(alice, acme):
    issued = create_token(
        actor=alice,
        organisation=acme,
        name="x",
        scopes=["vaults:manage", READ, "vaults:manage", "admin"],
    )
    assert issued.token.scopes == ["conversations:read", "vaults:manage", "admin"]


@pytest.mark.parametrize(
    ("changes", "error", "field"),
    [
        ({"scopes": []}, Invalid, "scopes"),
        ({"scopes": ["everything"]}, Invalid, "scopes"),
        ({"name": "  "}, Invalid, "name"),
        ({"name": "n" * 81}, TooLarge, "name"),
        ({"expires_at": timezone.now() - timedelta(days=1)}, Invalid, "expires_at"),
    ],
)
def test_a_value_that_breaks_a_rule_is_named(alice, acme, changes, error, field):
    values = {"name": "n" * 80, "scopes": [READ], **changes}
    with pytest.raises(error) as caught:
        create_token(actor=alice, organisation=acme, **values)
    assert caught.value.field == field
    assert caught.value.hint
    assert not ApiToken.objects.exists()


def test_a_member_makes_no_token_for_administration(bob, acme):
    with pytest.raises(Forbidden):
        create_token(actor=bob, organisation=acme, name="x", scopes=[TokenScope.ADMIN])


def test_mallory_makes_no_token_in_acme(mallory, acme):
    with pytest.raises(NotFound):
        create_token(actor=mallory, organisation=acme, name="x", scopes=[READ])


def test_mallory_finds_no_token_of_alices(mallory, elsewhere, issued):
    assert not ApiToken.objects.visible_to(mallory).exists()
    for attempt in (revoke_token, rotate_token):
        with pytest.raises(NotFound):
            attempt(actor=mallory, token=issued.token)
    assert caller_with(issued.secret) is not None


def test_alice_who_manages_acme_does_not_see_bobs_tokens(alice, bob, acme):
    his = create_token(actor=bob, organisation=acme, name="x", scopes=[READ]).token
    with pytest.raises(NotFound):
        revoke_token(actor=alice, token=his)


def test_nobody_makes_a_token_that_speaks_for_another_person(alice, bob, acme, staff):
    for actor in (alice, staff):
        with pytest.raises(Forbidden):
            create_token(actor=actor, organisation=acme, name="x", scopes=[READ], user=bob)


def test_the_number_of_valid_tokens_is_limited(alice, acme, settings):
    settings.AGENTSITE_TOKENS_PER_PERSON = 2
    first, _second = (
        create_token(actor=alice, organisation=acme, name="x", scopes=[READ]) for _ in range(2)
    )
    with pytest.raises(LimitReached):
        create_token(actor=alice, organisation=acme, name="x", scopes=[READ])
    revoke_token(actor=alice, token=first.token)
    create_token(actor=alice, organisation=acme, name="x", scopes=[READ])


def test_rotating_replaces_the_secret_and_keeps_the_rest(issued, alice):
    again = rotate_token(actor=alice, token=issued.token)
    assert caller_with(issued.secret) is None
    assert caller_with(again.secret) is not None
    for name in ("name", "scopes", "expiry", "organisation", "user"):
        assert getattr(again.token, name) == getattr(issued.token, name)


def test_rotating_with_an_overlap_leaves_the_old_secret_for_so_long(issued, alice):
    rotate_token(actor=alice, token=issued.token, overlap=timedelta(hours=1))
    old = ApiToken.objects.get(pk=issued.token.pk)
    assert old.revoked_at is None
    assert old.expiry is not None
    left = old.expiry - timezone.now()
    assert timedelta(minutes=59) < left <= timedelta(hours=1)
    assert caller_with(issued.secret) is not None


def test_a_secret_that_goes_on_working_beside_the_new_one_counts_too(issued, alice, settings):
    settings.AGENTSITE_TOKENS_PER_PERSON = 2
    again = rotate_token(actor=alice, token=issued.token, overlap=timedelta(hours=1))
    for token in (issued.token, again.token):
        with pytest.raises(LimitReached):
            rotate_token(actor=alice, token=token, overlap=timedelta(hours=1))
    rotate_token(actor=alice, token=again.token)


def test_a_revoked_token_cannot_be_rotated(issued, alice):
    revoke_token(actor=alice, token=issued.token)
    with pytest.raises(Conflict):
        rotate_token(actor=alice, token=issued.token)
    with pytest.raises(Invalid):
        rotate_token(actor=alice, token=issued.token, overlap=timedelta(days=8))


def test_past_a_limit_that_was_lowered_a_secret_can_still_be_replaced(
    issued, alice, acme, settings
):
    create_token(actor=alice, organisation=acme, name="x", scopes=[READ])
    settings.AGENTSITE_TOKENS_PER_PERSON = 1

    assert caller_with(rotate_token(actor=alice, token=issued.token).secret) is not None


TOMORROW = timezone.now().timestamp() + 24 * 3600
"""When requests are counted here, so that no midnight comes between them."""


def used_up(token) -> bool:
    try:
        count_request(token, writes=False, now=TOMORROW)
    except TooMany:
        return True
    return False


@pytest.mark.parametrize("hours", [0, 1])
def test_a_new_secret_is_no_new_quota(issued, alice, settings, hours):
    settings.AGENTSITE_API_REQUESTS_PER_DAY = 2
    count_request(issued.token, writes=False, now=TOMORROW)
    again = rotate_token(actor=alice, token=issued.token, overlap=timedelta(hours=hours)).token

    assert not used_up(again)
    assert used_up(again)


def test_a_new_secret_is_no_new_rate(issued, alice, settings):
    settings.AGENTSITE_API_WRITES_PER_MINUTE = 1
    count_request(issued.token, writes=True, now=TOMORROW)
    again = rotate_token(actor=alice, token=issued.token).token

    with pytest.raises(TooMany):
        count_request(again, writes=True, now=TOMORROW)


def test_revoked_and_made_again_tokens_have_no_more_than_the_quotas_of_those_one_may_have(
    alice, acme, settings
):
    settings.AGENTSITE_API_REQUESTS_PER_DAY = 1
    settings.AGENTSITE_TOKENS_PER_PERSON = 2
    requests = 0
    for _ in range(4):
        one = create_token(actor=alice, organisation=acme, name="x", scopes=[READ]).token
        other = rotate_token(actor=alice, token=one, overlap=timedelta(hours=1)).token
        for token in (one, other):
            requests += not used_up(token)
            revoke_token(actor=alice, token=token)

    assert requests == 2


def test_the_quota_of_one_who_has_room_for_more_tokens_is_not_taken_from_ended_ones(
    issued, alice, acme, settings
):
    settings.AGENTSITE_API_REQUESTS_PER_DAY = 1
    assert not used_up(issued.token)
    revoke_token(actor=alice, token=issued.token)

    other = create_token(actor=alice, organisation=acme, name="other", scopes=[READ]).token
    assert not used_up(other)


# --- service accounts -----------------------------------------------------------------------------


@pytest.fixture
def robot(alice, acme) -> User:
    return create_service_account(actor=alice, organisation=acme, name="Nightly build")


def test_a_service_account_is_a_member_that_cannot_sign_in(robot, acme):
    assert robot.is_service
    assert not robot.has_usable_password()
    assert Membership.objects.role_in(acme, robot) is Role.MEMBER
    robot.set_password(PASSWORD)
    robot.save()
    browser = Client()
    assert not browser.login(username=robot.username, password=PASSWORD)
    browser.force_login(robot)
    assert browser.get("/").status_code == 302


def test_its_managers_make_tokens_for_a_service_account(robot, alice, acme):
    issued = create_token(actor=alice, organisation=acme, name="ci", scopes=[READ], user=robot)
    caller = caller_with(issued.secret)
    assert caller is not None
    assert caller.user == robot
    assert list(ApiToken.objects.visible_to(alice)) == [issued.token]
    rotate_token(actor=alice, token=issued.token)


def test_neither_bob_nor_mallory_touches_a_service_account(robot, bob, mallory, elsewhere, acme):
    refused = {bob: Forbidden, mallory: NotFound}
    for actor, error in refused.items():
        with pytest.raises(error):
            create_service_account(actor=actor, organisation=acme, name="x")
        with pytest.raises(error):
            create_token(actor=actor, organisation=acme, name="x", scopes=[READ], user=robot)
        with pytest.raises(error):
            remove_service_account(actor=actor, organisation=acme, account=robot)
    with pytest.raises(NotFound):
        create_token(actor=mallory, organisation=elsewhere, name="x", scopes=[READ], user=robot)
    with pytest.raises(NotFound):
        remove_service_account(actor=mallory, organisation=elsewhere, account=robot)


def test_a_person_is_not_removed_as_a_service_account(alice, acme, bob):
    with pytest.raises(NotFound):
        remove_service_account(actor=alice, organisation=acme, account=bob)


def test_tokens_of_a_persons_service_accounts_count_with_hers(robot, alice, bob, acme, settings):
    settings.AGENTSITE_TOKENS_PER_PERSON = 2
    other = create_service_account(actor=alice, organisation=acme, name="Reports")
    first, _second = (
        create_token(actor=alice, organisation=acme, name="x", scopes=[READ], user=holder)
        for holder in (robot, alice)
    )
    for holder in (alice, robot, other):
        with pytest.raises(LimitReached):
            create_token(actor=alice, organisation=acme, name="x", scopes=[READ], user=holder)
    create_token(actor=bob, organisation=acme, name="x", scopes=[READ])
    revoke_token(actor=alice, token=first.token)
    create_token(actor=alice, organisation=acme, name="x", scopes=[READ], user=other)


def test_removing_a_service_account_ends_its_tokens(robot, alice, acme):
    secret = create_token(
        actor=alice, organisation=acme, name="ci", scopes=[READ], user=robot
    ).secret
    remove_service_account(actor=alice, organisation=acme, account=robot)
    assert caller_with(secret) is None
    assert ApiToken.objects.get().revoked_at is not None


@pytest.mark.parametrize(
    ("name", "error"), [(" ", Invalid), ("n" * 81, TooLarge), ("Nightly build", Conflict)]
)
def test_a_service_accounts_name_is_judged(robot, alice, acme, name, error):
    with pytest.raises(error):
        create_service_account(actor=alice, organisation=acme, name=name)


def test_a_service_account_never_owns(alice, acme):
    with pytest.raises(Forbidden):
        create_service_account(actor=alice, organisation=acme, name="x", role="owner")

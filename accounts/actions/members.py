"""Who belongs to an organisation, and as what. An organisation never loses its last owner.

Whoever joins or is removed has no invitation there left to join by again.
"""

from __future__ import annotations

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.actions.handed_out import take_back_invitations_of, take_back_what_is_lost
from accounts.actions.organisations import require_room_after
from accounts.actions.service_accounts import remove_service_account
from accounts.actions.tokens import revoke_tokens_of
from accounts.departures import stop_work_in
from accounts.handing_over import hand_over_service_accounts
from accounts.happenings import Happening, emit
from accounts.models import Membership, Organisation, Role, User
from accounts.permissions import require_manager, require_member
from accounts.roles import parse_role, require_role_for_service
from harness.errors import Conflict, Forbidden, Invalid, NotFound


def add_member(
    *, actor: User, organisation: Organisation, user: User, role: str = Role.MEMBER
) -> Membership:
    """Make somebody who has an account a member, without asking her: the operator's way.

    Takes somebody who manages the organisation, and grants no role above what she may grant.
    Raises Conflict if the person belongs to it already.
    """
    wanted = parse_role(role)
    with transaction.atomic():
        Organisation.objects.select_for_update(no_key=True).filter(pk=organisation.pk).first()
        _require_power(require_manager(actor, organisation), wanted)
        if user.is_service:
            raise Invalid(
                _("A service account belongs to the organisation it was made in."),
                field="user",
                hint=_("Make another one there."),
            )
        membership, made = Membership.objects.get_or_create(
            user=user, organisation=organisation, defaults={"role": wanted}
        )
        if not made:
            raise Conflict(
                _("This person already belongs to the organisation."),
                hint=_("Change the role instead."),
            )
        emit(
            Happening.MEMBER_JOINED,
            actor=actor,
            organisation=organisation,
            member=user,
            role=wanted.value,
        )
        take_back_invitations_of(actor=actor, person=user, organisation=organisation)
    return membership


def change_role(*, actor: User, membership: Membership, role: str) -> int:
    """Give a member another role. Nobody grants, or takes, a role above what they may grant.

    What she gave out and could not give out in the new role ends: invitations, and tokens of service
    accounts that she made. How many tokens that were.
    """
    new = parse_role(role)
    with transaction.atomic():
        current = _lock(membership)
        own = require_manager(actor, current.organisation)
        _require_power(own, Role(current.role))
        _require_power(own, new)
        if current.user.is_service:
            require_role_for_service(new)
        if Role(current.role) is Role.OWNER and new is not Role.OWNER:
            _require_another_owner(current)
        if Role(current.role) is not new:
            emit(
                Happening.ROLE_CHANGED,
                actor=actor,
                organisation=current.organisation,
                member=current.user,
                role=new.value,
                before=current.role,
            )
        current.role = new
        current.save(update_fields=["role"])
        return take_back_what_is_lost(
            actor=actor, giver=current.user, organisation=current.organisation
        )


def remove_member(*, actor: User, membership: Membership) -> int:
    """End a membership, its tokens and what the person's agents do there; one may end one's own.

    What she gave out ends as in `change_role`. How many tokens of service accounts that were. A service
    account is removed as `remove_service_account` does it.
    """
    with transaction.atomic():
        current = _lock(membership)
        require_member(actor, current.organisation)
        if current.user_id != actor.pk:
            _require_power(require_manager(actor, current.organisation), Role(current.role))
        if current.user.is_service:
            remove_service_account(
                actor=actor, organisation=current.organisation, account=current.user
            )
            return take_back_what_is_lost(
                actor=actor, giver=current.user, organisation=current.organisation
            )
        if Role(current.role) is Role.OWNER:
            _require_another_owner(current)
        if current.organisation.personal_of_id == current.user_id and not actor.is_superuser:
            require_room_after(current.user)
        current.delete()
        emit(
            Happening.MEMBER_REMOVED,
            actor=actor,
            organisation=current.organisation,
            member=current.user,
            role=current.role,
        )
        take_back_invitations_of(
            actor=actor, person=current.user, organisation=current.organisation
        )
        revoke_tokens_of(user=current.user, organisation=current.organisation)
        hand_over_service_accounts(
            actor=actor, maker=current.user, organisation_id=current.organisation_id
        )
        stop_work_in(user_id=current.user_id, organisation_id=current.organisation_id)
        return take_back_what_is_lost(
            actor=actor, giver=current.user, organisation=current.organisation
        )


def _lock(membership: Membership) -> Membership:
    """The row as it is now, with its organisation locked: two owners cannot remove each other."""
    Organisation.objects.select_for_update(no_key=True).filter(
        pk=membership.organisation_id
    ).first()
    current = (
        Membership.objects.select_related("organisation", "user").filter(pk=membership.pk).first()
    )
    if current is None:
        raise NotFound(_("There is no such member."))
    return current


def _require_power(own: Role, other: Role) -> None:
    if not own.may_grant(other):
        raise Forbidden(
            _("Only an owner may do this to an owner."), hint=_("Ask an owner of the organisation.")
        )


def _require_another_owner(membership: Membership) -> None:
    others = Membership.objects.filter(
        organisation_id=membership.organisation_id,
        user__kind=User.Kind.PERSON,
        user__is_active=True,
    ).exclude(pk=membership.pk)
    if not others.owners().exists():
        raise Conflict(
            _("An organisation keeps at least one owner."),
            hint=_("Make somebody else an owner first."),
        )

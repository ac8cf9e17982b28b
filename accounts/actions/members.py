"""Who belongs to an organisation, and as what. An organisation never loses its last owner."""

from __future__ import annotations

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.actions.tokens import revoke_tokens_of
from accounts.departures import stop_work_in
from accounts.models import Membership, Organisation, Role, User
from accounts.permissions import require_manager, require_member
from harness.errors import Conflict, Forbidden, Invalid, NotFound


def parse_role(value: str) -> Role:
    """The role of that name; Invalid for any other word."""
    if value not in Role.values:
        raise Invalid(
            _("There is no role “%(role)s”.") % {"role": value[:40]},
            field="role",
            hint=_("Choose one of: %(roles)s.") % {"roles": ", ".join(Role.values)},
        )
    return Role(value)


def change_role(*, actor: User, membership: Membership, role: str) -> Membership:
    """Give a member another role. Nobody grants, or takes, a role above what they may grant."""
    new = parse_role(role)
    with transaction.atomic():
        current = _lock(membership)
        own = require_manager(actor, current.organisation)
        _require_power(own, Role(current.role))
        _require_power(own, new)
        if Role(current.role) is Role.OWNER and new is not Role.OWNER:
            _require_another_owner(current)
        current.role = new
        current.save(update_fields=["role"])
    return current


def remove_member(*, actor: User, membership: Membership) -> None:
    """End a membership, its tokens and what the person's agents do there; one may end one's own."""
    with transaction.atomic():
        current = _lock(membership)
        require_member(actor, current.organisation)
        if current.user_id != actor.pk:
            _require_power(require_manager(actor, current.organisation), Role(current.role))
        if Role(current.role) is Role.OWNER:
            _require_another_owner(current)
        current.delete()
        revoke_tokens_of(user=current.user, organisation=current.organisation)
        stop_work_in(user_id=current.user_id, organisation_id=current.organisation_id)


def _lock(membership: Membership) -> Membership:
    """The row as it is now, with its organisation locked: two owners cannot remove each other."""
    Organisation.objects.select_for_update().filter(pk=membership.organisation_id).first()
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
    others = Membership.objects.filter(organisation_id=membership.organisation_id).exclude(
        pk=membership.pk
    )
    if not others.owners().exists():
        raise Conflict(
            _("An organisation keeps at least one owner."),
            hint=_("Make somebody else an owner first."),
        )

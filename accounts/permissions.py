"""What a role allows, asked by the actions of this app.

A stranger learns nothing: the organisation does not exist for them.
"""

from __future__ import annotations

from django.utils.translation import gettext as _

from accounts.models import Membership, Organisation, Role, User
from harness.errors import Forbidden, NotFound


def require_member(actor: User, organisation: Organisation) -> Role:
    """The actor's role; a superuser counts as owner. Raises NotFound for a stranger."""
    if not actor.is_active:
        raise Forbidden(_("This account is inactive."))
    role = Membership.objects.role_in(organisation, actor)
    if actor.is_superuser:
        return Role.OWNER
    if role is None:
        raise NotFound(_("There is no such organisation."))
    return role


def may_manage(actor: User, organisation: Organisation) -> bool:
    """Whether `require_manager` would let the actor pass."""
    if actor.is_superuser:
        return actor.is_active
    role = Membership.objects.role_in(organisation, actor)
    return actor.is_active and role is not None and role.manages


def may_grant(actor: User, organisation: Organisation, role: Role) -> bool:
    """Whether the actor could make somebody there a member in this role, now."""
    if not may_manage(actor, organisation):
        return False
    own = Role.OWNER if actor.is_superuser else Membership.objects.role_in(organisation, actor)
    return own is not None and own.may_grant(role)


def require_manager(actor: User, organisation: Organisation) -> Role:
    """As `require_member`, and Forbidden for members who do not manage."""
    role = require_member(actor, organisation)
    if not role.manages:
        raise Forbidden(
            _("Only owners and administrators may do this."),
            hint=_("Ask one of them."),
        )
    return role

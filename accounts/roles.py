"""Which role a word names, and which roles an account of a kind may have.

Who may grant a role says `permissions`; who has it, the rows in `models`.
"""

from __future__ import annotations

from django.utils.translation import gettext as _

from accounts.models import Role
from harness.errors import Forbidden, Invalid


def parse_role(value: str) -> Role:
    """The role of that name; Invalid for any other word."""
    if value not in Role.values:
        raise Invalid(
            _("There is no role “%(role)s”.") % {"role": value[:40]},
            field="role",
            hint=_("Choose one of: %(roles)s.") % {"roles": ", ".join(Role.values)},
        )
    return Role(value)


def require_role_for_service(role: Role) -> None:
    """Forbidden for a role that no service account may have: an organisation is owned by people."""
    if role is Role.OWNER:
        raise Forbidden(
            _("A service account does not own an organisation."), hint=_("Choose another role.")
        )

"""What staff may do with the agents, environments, prompts and prices, asked by the actions.

Whose conversation is whose is not asked here; that is `Conversation.objects.visible_to`.
"""

from __future__ import annotations

from django.utils.translation import gettext as _

from harness.errors import Forbidden

from .models import User


def has_staff_permission(actor: User, permission: str) -> bool:
    """Whether a member of staff was granted `app.verb_model`; superusers hold every permission."""
    return actor.is_active and (actor.is_staff or actor.is_superuser) and actor.has_perm(permission)


def require_staff(actor: User, permission: str) -> None:
    """Raise Forbidden for whoever is not staff with this permission."""
    if not has_staff_permission(actor, permission):
        raise Forbidden(
            _("Only staff with the permission “%(permission)s” may do this.")
            % {"permission": permission},
            hint=_("Ask an administrator of this server."),
        )

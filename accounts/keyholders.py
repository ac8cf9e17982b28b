"""Who can mend the key that a person's work uses, where she cannot: named to her when it fails.

Which key that is says `accounts.provider_keys`.
"""

from __future__ import annotations

from django.utils.translation import gettext as _

from accounts.models import Membership, Organisation, ProviderKey, Scope, User
from accounts.permissions import may_manage
from accounts.provider_keys import in_environment

NAMED = 3
"""Owners that a hint lists."""


def who_can_mend(user: User, organisation: Organisation, provider: str) -> str:
    """A sentence for a hint; empty where she can mend it herself."""
    scope = _scope_in_use(user, organisation, provider)
    if scope is Scope.USER or user.is_superuser:
        return ""
    manages = may_manage(user, organisation)
    if scope is Scope.DEPLOYMENT:
        return _("The key is this server's: its staff can change it.")
    if manages:
        return ""
    owners = Membership.objects.owners().filter(
        organisation=organisation, user__is_active=True, user__kind=User.Kind.PERSON
    )
    names = ", ".join(
        str(each.user) for each in owners.select_related("user").order_by("pk")[:NAMED]
    )
    if scope is Scope.ORGANISATION:
        words = _("The key is that of %(organisation)s: %(names)s can change it.")
    else:
        words = _("%(names)s can store one for everybody in %(organisation)s.")
    return words % {"organisation": organisation.name, "names": names or _("its owner")}


def _scope_in_use(user: User, organisation: Organisation, provider: str) -> Scope | None:
    """Whose key it is; None: there is none in a table. The deployment's may stand in its environment."""
    rows = ProviderKey.objects.filter(provider=provider)
    for scope, own in (
        (Scope.USER, {"user": user}),
        (Scope.ORGANISATION, {"organisation": organisation}),
        (Scope.DEPLOYMENT, {"user": None, "organisation": None}),
    ):
        if rows.filter(**own).exists():
            return scope
    return Scope.DEPLOYMENT if in_environment(provider) else None

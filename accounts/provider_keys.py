"""Which key a person's work uses for a model service: the narrowest that exists.

Storing and removing keys is `accounts.actions.provider_keys`'; the sealing is `accounts.vault`'s.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from django.conf import settings
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from accounts import vault
from accounts.models import Organisation, ProviderKey, Scope, User
from accounts.models.provider_key import ProviderKeyQuerySet
from jobs.prepared import Prepared

PROVIDERS = {
    "anthropic": _("Anthropic, or another Messages API"),
    "openai_compatible": _("OpenAI, Ollama, vLLM or another chat completions API"),
}
"""What a person may choose from, by the provider's name."""

_OF_BOTH = Prepared(
    lambda given: _reachable(given.user, given.organisation).filter(provider=given.provider)
)


@dataclass(frozen=True, slots=True)
class ResolvedKey:
    """An opened key with the address it belongs to. Hold it briefly; never store or log it."""

    provider: str
    base_url: str
    """Empty: the provider's own default."""
    scope: Scope
    key: str = field(repr=False)
    """Empty for a server that needs none."""


def resolve(
    user: User | None, organisation: Organisation | None, provider: str
) -> ResolvedKey | None:
    """User's own, else the organisation's, else the deployment's row, else the environment's.

    Key and address always come from one place together: a wider scope's key is never sent to an
    address that a narrower scope named. An organisation's key counts only for its members.
    Raises NotConfigured if the stored key cannot be opened.
    """
    if user is not None and organisation is not None:
        found = _OF_BOTH.all(user=user.pk, organisation=organisation.pk, provider=provider)
    else:
        found = list(_reachable(user, organisation).filter(provider=provider))
    rows = {row.scope: row for row in found}
    for scope in (Scope.USER, Scope.ORGANISATION, Scope.DEPLOYMENT):
        if scope in rows:
            row = rows[scope]
            key = vault.open_sealed(row.sealed_key) if row.sealed_key else ""
            return ResolvedKey(provider=provider, base_url=row.base_url, scope=scope, key=key)
    return _from_environment(provider)


def _reachable(user: User | None, organisation: Organisation | None) -> ProviderKeyQuerySet:
    scopes = Q(user=None, organisation=None)
    if user is not None:
        scopes |= Q(user=user)
    if organisation is not None:
        members = Q(organisation=organisation)
        if user is not None:
            members &= Q(organisation__memberships__user=user)
        scopes |= members
    return ProviderKey.objects.filter(scopes)


def _from_environment(provider: str) -> ResolvedKey | None:
    given = settings.AGENTSITE_PROVIDER_KEYS.get(provider, {})
    key, base_url = given.get("key", ""), given.get("base_url", "")
    if not key and not base_url:
        return None
    return ResolvedKey(provider=provider, base_url=base_url, scope=Scope.DEPLOYMENT, key=key)

"""Which key a person's work uses for a model service, the narrowest that exists, and who pays for it.

Storing and removing keys is `accounts.actions.provider_keys`'; the sealing is `accounts.vault`'s.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from django.conf import settings
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from accounts import vault
from accounts.models import Organisation, ProviderKey, Scope, User
from accounts.models.provider_key import ProviderKeyQuerySet
from accounts.provider_addresses import Server, leads_inside, server_of
from harness.errors import NotConfigured
from jobs.prepared import Prepared
from providers.table import KINDS

PROVIDERS = {
    "anthropic": _("Anthropic, or another Messages API"),
    "openai_compatible": _("OpenAI, Ollama, vLLM or another chat completions API"),
}
"""What a person may choose from, by the provider's name."""

_OURS = Q(user=None, organisation=None)
_OF_BOTH = Prepared(
    lambda given: _reachable(given.user, given.organisation).filter(
        Q(provider=given.provider) | _OURS
    )
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
    server_pays: bool = False
    """What it opens is the deployment's: its key, a service inside its network, or one of its own that
    asks for none. So far as spelling tells; for the rest see `open_services`."""
    open_services: frozenset[Server] = frozenset()
    """Services of the deployment that would serve it on the deployment's account, where it does not name
    one of them: whether its name leads to one is looked up for each run (`accounts.provider_connections`)."""


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
        found = list(_reachable(user, organisation).filter(Q(provider=provider) | _OURS))
    rows = {row.scope: row for row in found if row.provider == provider}
    for scope in (Scope.USER, Scope.ORGANISATION, Scope.DEPLOYMENT):
        if scope in rows:
            row = rows[scope]
            key = ResolvedKey(
                provider=provider, base_url=row.base_url, scope=scope, key=_opened(row)
            )
            return _with_payer(key, found)
    return _from_environment(provider)


def _reachable(user: User | None, organisation: Organisation | None) -> ProviderKeyQuerySet:
    scopes = _OURS
    if user is not None:
        scopes |= Q(user=user)
    if organisation is not None:
        members = Q(organisation=organisation)
        if user is not None:
            members &= Q(organisation__memberships__user=user)
        scopes |= members
    return ProviderKey.objects.filter(scopes)


def _opened(row: ProviderKey) -> str:
    return vault.open_sealed(row.sealed_key) if row.sealed_key else ""


def _with_payer(used: ResolvedKey, found: Iterable[ProviderKey]) -> ResolvedKey:
    """Whose row it is does not tell. Inside the network all is the deployment's, with any key: what asks
    for one there may take any. Elsewhere, where two have keys, those tell; else where they lead."""
    if used.scope is Scope.DEPLOYMENT or leads_inside(used.base_url):
        return replace(used, server_pays=True)
    there = server_of(used.base_url)
    others: set[Server] = set()
    for key, base_url in _deployments(found):
        if used.key and key:
            if used.key == key:
                return replace(used, server_pays=True)
            continue
        server = server_of(base_url)
        if server is None or there is None:
            continue
        if server == there:
            return replace(used, server_pays=True)
        if not leads_inside(base_url):
            others.add(server)
    return replace(used, open_services=frozenset(others))


def _deployments(found: Iterable[ProviderKey]) -> Iterator[tuple[str, str]]:
    """Key and address of each service that the operator gave to everybody."""
    for row in found:
        if row.scope is Scope.DEPLOYMENT and (row.sealed_key or _asks_for_no_key(row.provider)):
            try:
                key = _opened(row)
            except NotConfigured:
                key = row.sealed_key  # which is nobody's key
            yield key, row.base_url
    for provider, given in settings.AGENTSITE_PROVIDER_KEYS.items():
        key, base_url = given.get("key", ""), given.get("base_url", "")
        if key or (base_url and _asks_for_no_key(provider)):
            yield key, base_url


def _asks_for_no_key(provider: str) -> bool:
    """Else an address alone gives nobody anything."""
    return provider in KINDS and not KINDS[provider].needs_key


def in_environment(provider: str) -> bool:
    """Whether the operator's settings have a key or an address for it."""
    return _from_environment(provider) is not None


def _from_environment(provider: str) -> ResolvedKey | None:
    given = settings.AGENTSITE_PROVIDER_KEYS.get(provider, {})
    key, base_url = given.get("key", ""), given.get("base_url", "")
    if not key and not base_url:
        return None
    return ResolvedKey(
        provider=provider, base_url=base_url, scope=Scope.DEPLOYMENT, key=key, server_pays=True
    )

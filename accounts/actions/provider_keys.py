"""Storing and removing provider keys. A key goes in and never comes out here."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import SplitResult

from django.db import transaction
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_variables

from accounts import vault
from accounts.happenings import Happening, emit
from accounts.models import Organisation, ProviderKey, Scope, User
from accounts.permissions import require_manager
from accounts.provider_addresses import check_host
from harness.errors import Forbidden, Invalid, NotFound, TooLarge
from reading.hostnames import split_address

KEY_LENGTH = 500
URL_LENGTH = 500

_PROVIDER = re.compile(r"[a-z][a-z0-9_-]{0,59}")
_SHOW_FROM = 12
"""A key shorter than this shows no last four characters: they would be too much of it."""


@sensitive_variables("key")
def store_provider_key(
    *,
    actor: User,
    scope: str,
    provider: str,
    key: str,
    base_url: str = "",
    organisation: Organisation | None = None,
) -> ProviderKey:
    """Store a key, in the place of the scope's earlier one for this provider.

    `organisation` is read for the organisation scope only, which takes an owner or administrator;
    the deployment scope takes a superuser. A server that needs no key has an address alone.
    Errors name the field and never repeat the key.
    """
    wanted = _parse_scope(scope)
    owner: dict[str, Any] = {"user": None, "organisation": None}
    if wanted is Scope.USER:
        owner["user"] = actor
    elif wanted is Scope.ORGANISATION:
        if organisation is None:
            raise NotFound(_("There is no such organisation."))
        require_manager(actor, organisation)
        owner["organisation"] = organisation
    elif not (actor.is_active and actor.is_superuser):
        raise Forbidden(_("Only the operator of this server may set a key for everybody."))
    provider, key, base_url = check_provider_key(
        scope=wanted, provider=provider, key=key, base_url=base_url
    )
    sealed = vault.seal(key) if key else ""
    with transaction.atomic():
        row, _made = ProviderKey.objects.update_or_create(
            **owner,
            provider=provider,
            defaults={
                "base_url": base_url,
                "sealed_key": sealed,
                "last_four": key[-4:] if len(key) >= _SHOW_FROM else "",
                "created_by": actor,
            },
        )
        _emit(Happening.PROVIDER_KEY_STORED, row, actor)
    return row


@sensitive_variables("key")
def check_provider_key(
    *, scope: Scope, provider: str, key: str, base_url: str
) -> tuple[str, str, str]:
    """The three values tidied up; Invalid, naming the field, if one breaks its rule."""
    provider, key = _clean_provider(provider), _clean_key(key)
    base_url = _clean_base_url(base_url, scope)
    if not key and not base_url:
        raise Invalid(
            _("There is no key."),
            field="key",
            hint=_("Type the key, or the base URL of a server that needs none."),
        )
    return provider, key, base_url


def remove_provider_key(*, actor: User, provider_key: ProviderKey) -> None:
    """Forget a key. NotFound for whoever may not see it."""
    with transaction.atomic():
        seen = ProviderKey.objects.visible_to(actor).filter(pk=provider_key.pk)
        held = ProviderKey.objects.filter(pk__in=seen.values("pk")).first()
        if held is None or not actor.is_active:
            raise NotFound(_("There is no such key."))
        _emit(Happening.PROVIDER_KEY_REMOVED, held, actor)
        held.delete()


def _emit(happening: Happening, key: ProviderKey, actor: User) -> None:
    emit(
        happening,
        actor=actor,
        organisation=key.organisation,
        key=key.uid,
        provider=key.provider,
        scope=key.scope.value,
        base_url=key.base_url,
    )


def _clean_base_url(base_url: str, scope: Scope) -> str:
    """The address without a trailing slash; Invalid if a client could not or must not use it."""
    base_url = base_url.strip().rstrip("/")
    if not base_url:
        return ""
    if len(base_url) > URL_LENGTH:
        raise TooLarge(_("The base URL is too long."), field="base_url", hint=_("Shorten it."))
    try:
        parts = split_address(base_url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port, parts = None, None, SplitResult("", "", "", "", "")
    if (
        parts.scheme not in ("http", "https")
        or not host
        or parts.username is not None
        or parts.query
        or parts.fragment
        or re.search(r"[\s\x00-\x1f]", base_url)
    ):
        raise Invalid(
            _("This is not a base URL."),
            field="base_url",
            hint=_("Type it like https://models.example.org, without a key, query or fragment."),
        )
    check_host(host, port or {"https": 443, "http": 80}[parts.scheme], scope)
    return base_url


def _parse_scope(scope: str) -> Scope:
    if scope not in Scope.values:
        raise Invalid(
            _("There is no scope of this name."),
            field="scope",
            hint=_("Choose one of: %(scopes)s.") % {"scopes": ", ".join(Scope.values)},
        )
    return Scope(scope)


def _clean_provider(provider: str) -> str:
    provider = provider.strip()
    if not _PROVIDER.fullmatch(provider):
        raise Invalid(
            _("This is not a provider's name."),
            field="provider",
            hint=_("Use lower-case letters, digits, - and _, such as “anthropic”."),
        )
    return provider


@sensitive_variables("key")
def _clean_key(key: str) -> str:
    key = key.strip()
    if len(key) > KEY_LENGTH:
        raise TooLarge(
            _("The key is longer than %(limit)d characters.") % {"limit": KEY_LENGTH},
            field="key",
            hint=_("Paste the key alone."),
        )
    if not all("!" <= character <= "~" for character in key):
        raise Invalid(
            _("The key contains a space or another character that keys do not have."),
            field="key",
            hint=_("Paste the key alone, on one line."),
        )
    return key

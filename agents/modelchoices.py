"""Which providers and models a person may choose for an agent of her own: those that her work has a key
for, or that need none.

Whose key that is says `accounts.provider_keys`; any other name of a model may be typed.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.translation import gettext as _

from accounts.models import Organisation, User
from accounts.provider_keys import resolve
from harness.errors import Invalid, NotConfigured
from harness.modelcards import card_for
from providers.table import KINDS, ProviderKind

from .modelnames import known_models

AUTO = "auto"


@dataclass(frozen=True, slots=True)
class Offer:
    """A provider, and the models of it that somebody knows."""

    kind: ProviderKind
    models: tuple[str, ...]


def offers_for(user: User, organisation: Organisation) -> list[Offer]:
    known = known_models()
    return [
        Offer(kind, tuple(model for provider, model in known if provider == kind.name))
        for kind in KINDS.values()
        if kind.offered and may_use(user, organisation, kind.name)
    ]


def may_use(user: User, organisation: Organisation, provider: str) -> bool:
    """Whether there is a key for this person's work there, or the provider asks for none."""
    kind = KINDS.get(provider)
    if kind is None:
        return False
    if not kind.needs_key and not kind.needs_base_url:
        return True
    try:
        return resolve(user, organisation, provider) is not None
    except NotConfigured:
        return True  # there is one, which its keeper will mend


def require_usable(user: User, organisation: Organisation, provider: str) -> None:
    """Raises Invalid for a provider that this person's work has no key for."""
    if provider == AUTO or may_use(user, organisation, provider):
        return
    raise Invalid(
        _("You have no key for “%(provider)s”.") % {"provider": provider[:60]},
        field="provider",
        hint=_("Choose another one, or store a key under Settings → Provider keys."),
    )


def words_for(model: str) -> str:
    """A model's name with what its window holds, where that is known."""
    card = card_for(model)
    if not card.prefix:
        return model
    return _("%(model)s · %(thousands)s K tokens") % {
        "model": model,
        "thousands": card.context_window // 1000,
    }

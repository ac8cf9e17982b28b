"""Staff's changes of the price table. A price counts for model calls made from then on; what was
recorded keeps its cost."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from accounts.models import User
from accounts.staff import require_staff
from audit import record as audit
from harness.errors import Conflict, Invalid, NotFound
from spending.models import ModelPrice

RATES = ("input", "output", "cache_write", "cache_read")
"""The four prices of a row, in US dollars per million tokens."""
HIGHEST = Decimal("999999.9999")
"""The width of the columns."""

ADD = "spending.add_modelprice"
CHANGE = "spending.change_modelprice"
DELETE = "spending.delete_modelprice"


def create_price(
    *,
    actor: User,
    provider: str,
    model: str,
    from_prompt_tokens: int,
    rates: Mapping[str, Decimal],
) -> ModelPrice:
    """The price of a provider's models that begin so, from that prompt size on."""
    require_staff(actor, ADD)
    check_rates(rates)
    if not provider or not model or from_prompt_tokens < 0:
        raise Invalid(
            _("A price is for a provider, the beginning of a model's name and a prompt size."),
            field="provider" if not provider else "model" if not model else "from_prompt_tokens",
            hint=_("Fill in all three; the prompt size is 0 or more."),
        )
    try:
        with transaction.atomic():
            price = ModelPrice.objects.create(
                provider=provider, model=model, from_prompt_tokens=from_prompt_tokens, **rates
            )
            _record(audit.Action.PRICE_SET, price, actor, after=_rates(price))
            return price
    except IntegrityError:
        raise Invalid(
            _("There is a price for this model and prompt size already."),
            field="model",
            hint=_("Change that one."),
        ) from None


def change_price(*, actor: User, price: ModelPrice, rates: Mapping[str, Decimal]) -> ModelPrice:
    """Other amounts for the same models. Raises Invalid for a negative or missing one."""
    require_staff(actor, CHANGE)
    check_rates(rates)
    with transaction.atomic():
        current = _lock(price)
        if any(getattr(current, name) != rates[name] for name in RATES):
            before = _rates(current)
            for name in RATES:
                setattr(current, name, rates[name])
            current.save(update_fields=[*RATES, "updated_at"])
            _record(audit.Action.PRICE_SET, current, actor, before=before, after=_rates(current))
    return current


def delete_price(*, actor: User, price: ModelPrice) -> None:
    """The cost of such calls is unknown from then on. Raises Conflict for a price that comes with
    this software, which the next start would bring back."""
    require_staff(actor, DELETE)
    with transaction.atomic():
        current = _lock(price)
        if current.seed_digest:
            raise Conflict(
                _("The price of %(model)s comes with this software.") % {"model": current.model},
                hint=_("Change its amounts instead; they are kept."),
            )
        _record(audit.Action.PRICE_REMOVED, current, actor, before=_rates(current))
        current.delete()


def check_rates(rates: Mapping[str, Decimal]) -> None:
    for name in RATES:
        if name not in rates or not 0 <= rates[name] <= HIGHEST:
            raise Invalid(
                _("This is not a price."),
                field=name,
                hint=_("Give US dollars per million tokens, 0 or more."),
            )


def _rates(price: ModelPrice) -> dict[str, str]:
    return {name: f"{Decimal(getattr(price, name)).normalize():f}" for name in RATES}


def _record(action: audit.Action, price: ModelPrice, actor: User, **details: Any) -> None:
    audit.about_setting(
        action,
        actor=actor,
        organisation_id=None,
        provider=price.provider,
        model=price.model,
        from_prompt_tokens=price.from_prompt_tokens,
        **details,
    )


def _lock(price: ModelPrice) -> ModelPrice:
    current = ModelPrice.objects.select_for_update().filter(pk=price.pk).first()
    if current is None:
        raise NotFound(_("There is no such price."))
    return current

"""How the pages of evals write money and shares."""

from __future__ import annotations

from decimal import Decimal

from django import template
from django.utils.translation import gettext as _

from spending.amounts import money

register = template.Library()


@register.filter
def dollars(amount: Decimal | None) -> str:
    return _("unknown") if amount is None else money(amount)


@register.filter
def percent(share: float) -> str:
    return f"{100 * share:.0f}%"

"""What a run took, with all that its steps asked of models: calls, tokens, money, time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db.models import Count, Q, Sum
from django.utils import timezone
from django.utils.translation import gettext as _

from conversations.ancestry import TreeOf
from spending.amounts import money, number
from spending.models import Usage

SCRIPTED = "scripted"
"""The provider that plays scripts: what it says costs nothing, and has no price."""


@dataclass(frozen=True, slots=True)
class Figures:
    steps: int
    model_calls: int
    tokens: int
    cost: Decimal | None
    """US dollars; None where a model without a price was asked."""
    seconds: float

    @property
    def tokens_text(self) -> str:
        return number(self.tokens)

    @property
    def cost_text(self) -> str:
        return _("unknown") if self.cost is None else money(self.cost)

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "steps": self.steps,
            "model_calls": self.model_calls,
            "tokens": self.tokens,
            "cost_usd": None if self.cost is None else float(self.cost),
            "seconds": self.seconds,
        }


def figures_of(
    root_id: int, *, steps: int, began: datetime, ended: datetime | None, free: bool = False
) -> Figures:
    """Of a conversation and all below it. `free`: by scripts, which cost nothing."""
    rows: Any = Usage.objects.filter(conversation__in=TreeOf(root_id)).order_by()
    sums = rows.aggregate(
        calls=Count("id"),
        priced=Count("id", filter=Q(cost__isnull=False) | Q(provider=SCRIPTED)),
        money=Sum("cost"),
        **{name: Sum(name) for name in Usage.TOKENS},
    )
    known = free or sums["calls"] == sums["priced"]
    until = ended or timezone.now()
    return Figures(
        steps=steps,
        model_calls=sums["calls"],
        tokens=sum(sums[name] or 0 for name in Usage.TOKENS),
        cost=(Decimal(0) if free else sums["money"] or Decimal(0)) if known else None,
        seconds=round(max(0.0, (until - began).total_seconds()), 1),
    )

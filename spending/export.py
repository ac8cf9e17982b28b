"""What was spent, at the end of an exported conversation: every model call, and the sums.

The export itself is `keeping.export`'s, which tells the form of both.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.utils.translation import gettext as _

from conversations.models import Conversation

from .models import Usage

PAGE = 500
"""Rows of one query."""
TOKENS = (
    "input_tokens",
    "output_tokens",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
)


@dataclass
class _Totals:
    tokens: dict[str, int]
    cost: Decimal = Decimal(0)
    calls: int = 0
    without_price: int = 0

    def add(self, usage: Usage) -> None:
        self.calls += 1
        for name in TOKENS:
            self.tokens[name] += getattr(usage, name)
        if usage.cost is None:
            self.without_price += 1
        else:
            self.cost += usage.cost


class Spent:
    """A `keeping.export.Appendix`."""

    def as_json(self, conversation: Conversation) -> Iterator[str]:
        yield ',\n"usage": ['
        totals = _no_totals()
        for number, usage in enumerate(_usage(conversation)):
            totals.add(usage)
            yield (",\n" if number else "\n") + json.dumps(_call(usage), ensure_ascii=False)
        sums = {
            **totals.tokens,
            "cost_usd": str(totals.cost),
            "calls_without_price": totals.without_price,
        }
        yield f'\n],\n"totals": {json.dumps(sums)}'

    def as_markdown(self, conversation: Conversation) -> Iterator[str]:
        totals = _no_totals()
        for usage in _usage(conversation):
            totals.add(usage)
        yield _spent(totals)


def _call(usage: Usage) -> dict[str, Any]:
    return {
        "id": usage.model_request_id,
        "purpose": usage.purpose,
        "provider": usage.provider,
        "model": usage.model,
        **{name: getattr(usage, name) for name in TOKENS},
        "cost_usd": None if usage.cost is None else str(usage.cost),
        "milliseconds": usage.milliseconds,
        "created_at": usage.created_at.isoformat(timespec="seconds"),
    }


def _spent(totals: _Totals) -> str:
    if not totals.calls:
        return ""
    unknown = (
        _(" (the price of %(count)d calls is unknown)") % {"count": totals.without_price}
        if totals.without_price
        else ""
    )
    cost = _("unknown") if totals.without_price == totals.calls else f"${totals.cost}{unknown}"
    lines = [f"- {name}: {totals.tokens[name]}" for name in TOKENS]
    heading = _("Spent")
    return (
        f"---\n\n## {heading}\n\n- {_('Model calls')}: {totals.calls}\n"
        + "\n".join(lines)
        + f"\n- {_('Cost')}: {cost}\n"
    )


def _usage(conversation: Conversation) -> Iterator[Usage]:
    last = 0
    while page := list(
        Usage.objects.filter(conversation=conversation, pk__gt=last).order_by("pk")[:PAGE]
    ):
        yield from page
        last = page[-1].pk


def _no_totals() -> _Totals:
    return _Totals(dict.fromkeys(TOKENS, 0))


SPENT = Spent()

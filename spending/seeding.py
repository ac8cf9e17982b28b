"""Brings the prices we ship up to date at start-up. What staff changed stays as it is."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from agents.seeding import digest

from .models import ModelPrice
from .seeds import PRICES


def seed_prices() -> None:
    """Idempotent."""
    for (provider, model, size), (given, taken, write, read) in PRICES.items():
        prices = {
            "input": Decimal(given),
            "output": Decimal(taken),
            "cache_write": Decimal(write),
            "cache_read": Decimal(read),
        }
        fresh = _price_digest(prices)
        row, created = ModelPrice.objects.get_or_create(
            provider=provider,
            model=model,
            from_prompt_tokens=size,
            defaults={**prices, "seed_digest": fresh},
        )
        own = _price_digest({name: getattr(row, name) for name in prices})
        if not created and own == row.seed_digest and row.seed_digest != fresh:
            for name, value in prices.items():
                setattr(row, name, value)
            row.seed_digest = fresh
            row.save(update_fields=[*prices, "seed_digest", "updated_at"])


def _price_digest(prices: Mapping[str, Decimal]) -> str:
    return digest({name: format(value.normalize(), "f") for name, value in prices.items()})

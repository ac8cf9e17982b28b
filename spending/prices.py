"""What model calls cost by the price table: afterwards exactly, beforehand at most."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from agents.modelnames import Tariff
from harness.events import SpanModelRequestStart
from harness.messages import Usage as Tokens

from .amounts import rounded
from .models import ModelPrice

PER_MILLION = Decimal(1_000_000)


def find_price(provider: str, model: str, prompt_tokens: int) -> ModelPrice | None:
    """The price whose `model` is the longest beginning of the used model's name, at that size."""
    return _choose(_prices(provider, model), prompt_tokens)


def cost_of(price: ModelPrice | None, tokens: Tokens) -> Decimal | None:
    """US dollars to eight places, or None when no price is known; never 0 for lack of a price."""
    if price is None:
        return None
    total = (
        price.input * tokens.input_tokens
        + price.output * tokens.output_tokens
        + price.cache_write * tokens.cache_creation_input_tokens
        + price.cache_read * tokens.cache_read_input_tokens
    )
    return rounded(total / PER_MILLION)


def worst_cost(begun: SpanModelRequestStart) -> Decimal | None:
    """The most that a call of this size can cost, whatever the service counts as cached and however
    much smaller the prompt turns out; None when it might turn out to have no price."""
    prices = _prices(begun.provider, begun.model)
    prompt = begun.prompt_tokens_at_most
    sizes = {0, prompt, *(p.from_prompt_tokens for p in prices if p.from_prompt_tokens <= prompt)}
    worst = Decimal(0)
    for price in (_choose(prices, size) for size in sizes):
        if price is None:
            return None
        dearest = max(price.input, price.cache_write, price.cache_read)
        cost = dearest * prompt + price.output * begun.output_tokens_at_most
        worst = max(worst, cost / PER_MILLION)
    return worst


def _prices(provider: str, model: str) -> list[ModelPrice]:
    # The database chooses: turning a whole table into decimals would cost each call a millisecond.
    fitting = ModelPrice.objects.raw(
        "SELECT * FROM spending_modelprice"
        " WHERE provider = %s AND SUBSTR(%s, 1, LENGTH(model)) = model",
        [provider, model],
    )
    return list(fitting)


def _choose(prices: list[ModelPrice], prompt_tokens: int) -> ModelPrice | None:
    fitting = [price for price in prices if price.from_prompt_tokens <= prompt_tokens]
    return max(
        fitting, key=lambda price: (len(price.model), price.from_prompt_tokens), default=None
    )


def priced_models() -> list[tuple[str, str]]:
    """Provider and name of those that prices are kept for."""
    rows = ModelPrice.objects.order_by("provider", "model").values_list("provider", "model")
    return list(rows.distinct())


def tariffs(models: Iterable[tuple[str, str]]) -> dict[tuple[str, str], Tariff]:
    """What people are told beforehand of models: the price of a prompt of ordinary size. One query."""
    usual = list(ModelPrice.objects.filter(from_prompt_tokens=0))
    found: dict[tuple[str, str], Tariff] = {}
    for provider, model in models:
        fitting = [
            price for price in usual if price.provider == provider and model.startswith(price.model)
        ]
        if (price := _choose(fitting, 0)) is not None:
            found[provider, model] = Tariff(price.input, price.output)
    return found

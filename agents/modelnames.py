"""Models that somebody knows, offered where one is named, and what they cost. Any other name may be typed
as well."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal

Models = Callable[[], Iterable[tuple[str, str]]]
"""Pairs of a provider's name and a model's."""


@dataclass(frozen=True, slots=True)
class Tariff:
    """US dollars per million tokens, for a prompt of ordinary size."""

    input: Decimal
    output: Decimal


Tariffs = Callable[[Iterable[tuple[str, str]]], Mapping[tuple[str, str], Tariff]]
"""Of pairs of a provider's name and a model's, those with a price."""

_known: list[Models] = []
_priced: list[Tariffs] = []


def know(models: Models) -> None:
    """Have these offered from now on; once, however often it is said."""
    if models not in _known:
        _known.append(models)


def known_models() -> list[tuple[str, str]]:
    return sorted({each for models in _known for each in models()})


def known_names() -> list[str]:
    return sorted({model for _provider, model in known_models()})


def price_with(tariffs: Tariffs) -> None:
    """Have this say from now on what models cost; once, however often it is said."""
    if tariffs not in _priced:
        _priced.append(tariffs)


def tariffs_of(models: Iterable[tuple[str, str]]) -> dict[tuple[str, str], Tariff]:
    """What is known to cost something, or nothing; a model that is missing has no known price."""
    wanted = list(models)
    return {pair: tariff for tariffs in _priced for pair, tariff in tariffs(wanted).items()}

"""Models that somebody knows, offered where one is named. Any other name may be typed as well."""

from __future__ import annotations

from collections.abc import Callable, Iterable

Models = Callable[[], Iterable[tuple[str, str]]]
"""Pairs of a provider's name and a model's."""

_known: list[Models] = []


def know(models: Models) -> None:
    """Have these offered from now on; once, however often it is said."""
    if models not in _known:
        _known.append(models)


def known_models() -> list[tuple[str, str]]:
    return sorted({each for models in _known for each in models()})


def known_names() -> list[str]:
    return sorted({model for _provider, model in known_models()})

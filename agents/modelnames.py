"""Names of models that somebody knows, offered where one is typed. Any other name may be typed as well."""

from __future__ import annotations

from collections.abc import Callable, Iterable

Names = Callable[[], Iterable[str]]

_known: list[Names] = []


def know(names: Names) -> None:
    """Have these offered from now on; once, however often it is said."""
    if names not in _known:
        _known.append(names)


def known_names() -> list[str]:
    return sorted({name for names in _known for name in names()})

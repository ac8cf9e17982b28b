"""Sentences that the log keeps in English, told in the language of whoever reads them.

The log keeps one wording for ever, which the agent reads too; a page puts it into the reader's language by
the sentences that it knows. Which those are, and what stands in their places, say `reasons` and `failures`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from django.utils.translation import gettext

from reading.linear import linear, whole_characters

_PLACE = re.compile(r"%\((\w+)\)s")
_ENDS = re.compile(r"(?<=\.) ")
ANYTHING = ".+"


class Sentences:
    """Sentences of the catalogues with places for values, the narrower before the wider.

    `places` says what may stand in one, otherwise anything; `told` how a value is told, otherwise as it is.
    """

    def __init__(
        self,
        *known: str,
        places: Mapping[str, str] | None = None,
        told: Mapping[str, Callable[[str], str]] | None = None,
    ) -> None:
        self._known = known
        self._places = places or {}
        self._told = told or {}

    def told(self, text: str) -> str | None:
        """The same text in the language of the moment; None if it is none of these."""
        whole = whole_characters(text)
        for known, pattern in self._patterns:
            found = pattern.fullmatch(whole)
            if found:
                given: dict[str, str] = found.groupdict()
                for place in self._told.keys() & given.keys():
                    given[place] = self._told[place](given[place])
                return gettext(known) % given
        return None

    def told_by_sentence(self, text: str) -> str:
        """The same where it is several of them; one that is none of these stays as it was said."""
        return " ".join(self.told(each) or each for each in _ENDS.split(text))

    @cached_property
    def _patterns(self) -> Sequence[tuple[str, Any]]:
        return tuple((known, self._pattern(known)) for known in self._known)

    def _pattern(self, known: str) -> Any:
        literals = _PLACE.split(known)
        parts = [
            f"(?P<{part}>{self._places.get(part, ANYTHING)})" if number % 2 else re.escape(part)
            for number, part in enumerate(literals)
        ]
        return linear(f"(?s){''.join(parts)}")


def one_of(words: Sequence[str]) -> str:
    """The expression of a place in which one of these stands."""
    return "|".join(map(re.escape, words))

"""Why a call asks, in the language of whoever reads it: `harness.policy` says it in English, as the log keeps
it and the agent reads it.

Sentence by sentence: one that is not known here stays as it was said. What a rule says of itself, such as the
beginning of a command, is nobody's to translate.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from django.utils.translation import gettext, gettext_noop

from reading.linear import linear, whole_characters

_SENTENCES = (
    gettext_noop("A rule %(of)s asks before %(other)s, and %(tool)s can do the same."),
    gettext_noop("A rule %(of)s denies %(other)s, and %(tool)s can do the same."),
    gettext_noop(
        "A rule %(of)s denies %(call)s, and it cannot be told from the arguments whether this is such a call."
    ),
    gettext_noop("A rule %(of)s asks before %(call)s."),
    gettext_noop("A rule %(of)s denies %(call)s."),
    gettext_noop("No rule of this agent allows this call of %(tool)s."),
    gettext_noop("%(tool)s always asks a person."),
    gettext_noop("Approval is on in this conversation: everything that changes something asks."),
    gettext_noop(
        "Untrusted content (%(call)s) came into this run, and %(tool)s reaches outside: such calls ask"
        " until a person speaks again."
    ),
    gettext_noop("It was asked about, and nobody has answered yet."),
    gettext_noop(
        "This call was under way when its process ended, so it may or may not have happened."
    ),
    gettext_noop("Allow it to run it again; deny it to leave it at that."),
)
"""The narrower before the wider."""

_OF = (
    gettext_noop("of the tool"),
    gettext_noop("of this server"),
    gettext_noop("of this organisation"),
    gettext_noop("of this agent"),
    gettext_noop("of this conversation"),
    gettext_noop("of this run"),
)
_PLACES = {
    "of": "|".join(map(re.escape, _OF)),
    "tool": r"\S+",
    "other": r"\S+",
    "call": ".+",
}
_PLACE = re.compile(r"%\((\w+)\)s")
_ENDS = re.compile(r"(?<=\.) ")


def in_words(reason: str) -> str:
    """The same reason in the language of the moment."""
    return " ".join(map(_said, _ENDS.split(whole_characters(reason))))


def _said(sentence: str) -> str:
    for known, pattern in _patterns():
        found = pattern.fullmatch(sentence)
        if found:
            given: dict[str, str] = found.groupdict()
            if "of" in given:
                given["of"] = gettext(given["of"])
            return gettext(known) % given
    return sentence


@cache
def _patterns() -> tuple[tuple[str, Any], ...]:
    return tuple((known, _pattern(known)) for known in _SENTENCES)


def _pattern(known: str) -> Any:
    literals = _PLACE.split(known)
    parts = [
        f"(?P<{part}>{_PLACES[part]})" if number % 2 else re.escape(part)
        for number, part in enumerate(literals)
    ]
    return linear(f"(?s){''.join(parts)}")

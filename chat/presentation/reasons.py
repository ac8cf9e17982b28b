"""Why a call asks, in the language of whoever reads it: `harness.policy` says it in English.

What a rule says of itself, such as the beginning of a command, is nobody's to translate.
"""

from __future__ import annotations

from django.utils.translation import gettext, gettext_noop

from .sentences import Sentences, one_of

_OF = (
    gettext_noop("of the tool"),
    gettext_noop("of this server"),
    gettext_noop("of this organisation"),
    gettext_noop("of this agent"),
    gettext_noop("of this conversation"),
    gettext_noop("of this run"),
)
_REASONS = Sentences(
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
    places={"of": one_of(_OF), "tool": r"\S+", "other": r"\S+"},
    told={"of": gettext},
)


def in_words(reason: str) -> str:
    """The same reason in the language of the moment."""
    return _REASONS.told_by_sentence(reason)

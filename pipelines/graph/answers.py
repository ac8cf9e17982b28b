"""What an agent's answer says for the rules of a pipeline: one of some words, or fields of JSON. Pure."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _

from reading.foreignjson import Unreadable, read_json, without_nul
from reading.linear import linear, whole_characters

from .following import Outcome
from .spec import PipelineSpec, fields_of, is_number_wanted

JSON_LIMIT = 100_000
"""Characters of an answer in which JSON is looked for."""
TEXT_LIMIT = 200
"""Of a text that a rule looks at."""
WORDS_LIMIT = 20_000
"""Characters at the end of an answer in which a word is looked for."""
_WORDS = linear(r"[a-z0-9][a-z0-9_-]*")
_FENCE = "```"


class NotUsable(ValueError):
    """The answer cannot be used; the message says why, for people and for the next try."""


def outcome_of(spec: PipelineSpec, name: str, text: str) -> Outcome:
    """Raises NotUsable."""
    if not text.strip():
        raise NotUsable(_("It said nothing."))
    step, fields = spec.step(name), fields_of(spec, name)
    if step.words:
        return Outcome(word=_word(text, step.words))
    if not fields:
        return Outcome()
    given = _json(text)
    return Outcome(
        fields={
            each: _field(given, each, number=is_number_wanted(spec, name, each)) for each in fields
        }
    )


def _word(text: str, words: tuple[str, ...]) -> str:
    """The one that its last line says, or else all of it."""
    end = whole_characters(text[-WORDS_LIMIT:]).casefold().strip()
    for part in (end.rpartition("\n")[2], end):
        said: set[str] = set(_WORDS.findall(part)) & set(words)
        if len(said) == 1:
            return said.pop()
    raise NotUsable(
        _("Its answer does not say one of these words, and one alone: %(words)s.")
        % {"words": ", ".join(words)}
    )


def _json(text: str) -> dict[str, Any]:
    for part in _candidates(text):
        try:
            value = read_json(part, limit=JSON_LIMIT)
        except Unreadable:
            continue
        if isinstance(value, dict):
            return value
    raise NotUsable(_("Its answer is no JSON object, and has none in a code block."))


def _candidates(text: str) -> list[str]:
    """All of it, its first block of code, and what stands between its outermost braces."""
    found = [text]
    _before, fence, after = text.partition(_FENCE)
    if fence:
        found.append(after.partition("\n")[2].partition(_FENCE)[0])
    first, last = text.find("{"), text.rfind("}")
    if 0 <= first < last:
        found.append(text[first : last + 1])
    return found


def _field(given: dict[str, Any], path: str, *, number: bool) -> Any:
    value: Any = given
    for name in path.split("."):
        if not isinstance(value, dict) or name not in value:
            raise NotUsable(_("Its JSON has no “%(field)s”.") % {"field": path})
        value = value[name]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if number and not is_number:
        raise NotUsable(_("“%(field)s” of its JSON is no number.") % {"field": path})
    if not (is_number or isinstance(value, bool | str)):
        raise NotUsable(
            _("“%(field)s” of its JSON is neither text, number, true nor false.") % {"field": path}
        )
    return without_nul(value[:TEXT_LIMIT]) if isinstance(value, str) else value

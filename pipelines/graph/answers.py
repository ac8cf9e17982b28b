"""What an agent's answer says for the rules of a pipeline: one of some words, or fields of JSON. Pure."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _

from reading.foreignjson import Unreadable, read_json, without_nul
from reading.linear import linear, whole_characters

from .following import Call, Outcome
from .spec import MOST_CALLS, STRANDS, PipelineSpec, fields_of, is_number_wanted

JSON_LIMIT = 100_000
"""Characters of an answer in which JSON is looked for."""
TEXT_LIMIT = 200
"""Of a text that a rule looks at."""
WORDS_LIMIT = 20_000
"""Characters at the end of an answer in which a word is looked for."""
TASK_LIMIT = 4_000
"""Characters of what a specialist is to do."""
ASK = "ask"
"""The field by which an orchestrator's answer is no answer yet."""
_WORDS = linear(r"[a-z0-9][a-z0-9_-]*")
_FENCE = "```"


class NotUsable(ValueError):
    """The answer cannot be used; the message says why, for people and for the next try."""


def outcome_of(spec: PipelineSpec, name: str, text: str) -> Outcome:
    """Raises NotUsable."""
    if not text.strip():
        raise NotUsable(_("It said nothing."))
    step, fields = spec.step(name), fields_of(spec, name)
    if spec.engine == STRANDS and step == spec.steps[0]:
        return Outcome(calls=_calls(text, {each.name for each in spec.steps[1:]}))
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


def tasks_in(text: str) -> list[str]:
    """What an orchestrator's answer has specialists do, whether or not it can be used; none: it asks none."""
    asked = _asked(text)
    entries = asked if isinstance(asked, list) else []
    tasks = [each.get("task") for each in entries if isinstance(each, dict)]
    return [without_nul(task) for task in tasks if isinstance(task, str)]


def _asked(text: str) -> Any:
    """None: it asks for nothing, as an answer does."""
    for part in _candidates(text):
        try:
            value = read_json(part, limit=JSON_LIMIT)
        except Unreadable:
            continue
        if isinstance(value, dict) and ASK in value:
            return value[ASK]
    return None


def _calls(text: str, specialists: set[str]) -> tuple[Call, ...]:
    asked = _asked(text)
    if asked is None:
        if text.lstrip().startswith(("{", _FENCE + "json")):
            raise NotUsable(
                _("Its answer is to ask specialists by JSON, and no JSON that can be read.")
            )
        return ()
    if not isinstance(asked, list) or not 1 <= len(asked) <= MOST_CALLS:
        raise NotUsable(
            _("“ask” of its JSON is no list of 1 to %(most)d specialists.") % {"most": MOST_CALLS}
        )
    found = []
    for each in asked:
        to, task = (
            (each.get("specialist"), each.get("task")) if isinstance(each, dict) else ("", "")
        )
        if to not in specialists:
            raise NotUsable(
                _("It asks a specialist that there is not; there are: %(names)s.")
                % {"names": ", ".join(sorted(specialists))}
            )
        if not isinstance(task, str) or not task.strip() or len(task) > TASK_LIMIT:
            raise NotUsable(
                _("It asks “%(name)s” without a task, or with one above %(limit)d characters.")
                % {"name": to, "limit": TASK_LIMIT}
            )
        found.append(Call(to, without_nul(task)))
    return tuple(found)


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

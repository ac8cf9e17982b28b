"""Whether a check holds for a run: one pure function over the facts for each kind of check.

A check never raises for what a model said: what cannot be read does not pass, and says why. How judges are
asked and read is `checks.judges`'.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any

from harness.schemachecks import Checker, TooCostly
from harness.schemas import Unsound
from reading.foreignjson import Unreadable, read_json
from reading.linear import linear, whole_characters
from reading.pathglobs import fits

from .facts import Call, Facts, Looking
from .spec import (
    CallCheck,
    Check,
    CommandCheck,
    CostCheck,
    FileCheck,
    JudgeCheck,
    PreferenceCheck,
    SchemaCheck,
    StepsCheck,
    StopCheck,
    TextCheck,
    TimeCheck,
    Wanted,
)

SHOWN = 200
"""Characters of what was found that an outcome repeats."""
APART = 0.25
"""Of the scale: judges who differ by more disagree, and so do people with them."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one check."""

    name: str
    passed: bool
    why: str = ""
    """What was found where it did not pass; the judges' words where they say why it did."""
    points: float | None = None
    """Between 0 and 1, where the check is not a plain yes or no."""
    disagreed: bool = False
    """Its judges did."""

    def stored(self) -> dict[str, Any]:
        return asdict(self)


def judge(place: int, check: Check, facts: Facts) -> Outcome:
    """What came of the check that stands at `place` among those of its case."""
    name = check.name or name_of(check)
    kind: Callable[[int, Any, Facts], Outcome] = _KINDS[type(check)]
    try:
        made = kind(place, check, facts)
    except _TakesTooLong as problem:
        made = _held(str(problem))
    return Outcome(name, made.passed, made.why, made.points, made.disagreed)


def name_of(check: Check) -> str:
    """What a check without a name is called."""
    match check:
        case CallCheck(tool=tool, at_most=0):
            return f"does not call {tool}"
        case CallCheck(tool=tool):
            return f"calls {tool}"
        case FileCheck(path=path):
            return f"file {path}"
        case CommandCheck(run=run):
            return f"runs {_short(run, 60)}"
        case _:
            return check.type.replace("_", " ")


def _held(why: str) -> Outcome:
    return Outcome("", not why, why)


def _text(_place: int, check: TextCheck, facts: Facts) -> Outcome:
    text = facts.answer if check.of == "answer" else "\n\n".join(facts.said)
    return _held(missing_in(text, check, facts.looking))


class _TakesTooLong(Exception):
    """The message says what."""


def _found(expression: str, text: str, looking: Looking) -> bool:
    """Whether it is somewhere in the text, which is whole characters. Raises `_TakesTooLong`."""
    compiled = linear(whole_characters(expression))
    # At its worst the engine looks at each part of the expression for each character.
    steps = compiled.programsize * len(text)
    if steps > looking.left:
        raise _TakesTooLong(
            f"“{_short(expression)}” takes too long to look for in {len(text):,} characters"
        )
    looking.left -= steps
    return compiled.search(text) is not None


def missing_in(text: str, wanted: Wanted, looking: Looking) -> str:
    """What of `wanted` does not hold for the text, in words; empty: all of it does. Raises as `_found`."""
    text = whole_characters(text)
    folded = text.casefold() if wanted.ignore_case else text

    def has(phrase: str) -> bool:
        return (phrase.casefold() if wanted.ignore_case else phrase) in folded

    for phrase in wanted.all:
        if not has(phrase):
            return f"“{phrase}” is missing in: {_short(text)}"
    if wanted.any and not any(map(has, wanted.any)):
        return f"none of {_listed(wanted.any)} is in: {_short(text)}"
    for phrase in wanted.none:
        if has(phrase):
            return f"it says “{phrase}”"
    for expression in wanted.regex:
        if not _found(expression, text, looking):
            return f"nothing fits “{expression}” in: {_short(text)}"
    return ""


def _schema(_place: int, check: SchemaCheck, facts: Facts) -> Outcome:
    try:
        value = json_in(facts.answer)
    except Unreadable as problem:
        return _held(f"the answer is no JSON: {problem}")
    try:
        faults = Checker(check.schema_).faults(value)
    except (TooCostly, Unsound) as problem:
        return _held(f"the schema cannot be checked: {problem or 'it takes too long'}")
    return _held("; ".join(faults))


def json_in(text: str, read: Callable[[str], Any] = read_json) -> Any:
    """The value that a text is, or that its first code block holds. Raises `Unreadable`."""
    stripped = text.strip()
    head, fence, rest = stripped.partition("```")
    if fence and not head.lstrip().startswith(("{", "[")):
        stripped = rest.partition("\n")[2].partition("```")[0]
    return read(stripped)


def _call(_place: int, check: CallCheck, facts: Facts) -> Outcome:
    named = [call for call in facts.calls if fits(call.name[:200], check.tool)]
    fitting = [call for call in named if _fits(check, call, facts.looking)]
    most = check.at_most
    if len(fitting) >= check.at_least and (most is None or len(fitting) <= most):
        return _held("")
    wanted = f"{check.at_least} or more" if most is None else f"{check.at_least} to {most}"
    made = "; ".join(_short(f"{call.name} {_written(call.input)}", 80) for call in facts.calls[:8])
    return _held(
        f"{len(fitting)} calls of {check.tool} fit, {wanted} are wanted; "
        f"there were: {made or 'none'}"
    )


def _fits(check: CallCheck, call: Call, looking: Looking) -> bool:
    outcomes = {
        "any": True,
        "ok": call.answered and not call.is_error and not call.denied,
        "error": call.answered and call.is_error,
        "asked": call.asked,
        "denied": call.denied,
    }
    return (
        outcomes[check.outcome]
        and _within(check.arguments, call.input)
        and all(
            name in call.input
            and _found(expression, whole_characters(_written(call.input[name])), looking)
            for name, expression in check.matching.items()
        )
    )


def _within(wanted: Any, found: Any) -> bool:
    if isinstance(wanted, Mapping) and isinstance(found, Mapping):
        return all(key in found and _within(value, found[key]) for key, value in wanted.items())
    return bool(wanted == found)


def _file(_place: int, check: FileCheck, facts: Facts) -> Outcome:
    content = facts.files.get(check.path)
    if content is None or not check.exists:
        there = content is not None
        return _held("" if there == check.exists else "it exists" if there else "there is none")
    if check.sha256 and sha256(content).hexdigest() != check.sha256:
        return _held(f"its SHA-256 is {sha256(content).hexdigest()}")
    return _held(missing_in(content.decode(errors="replace"), check.text, facts.looking))


def _command(place: int, check: CommandCheck, facts: Facts) -> Outcome:
    ran = facts.commands.get(place)
    if ran is None:
        return _held("it was not run")
    if ran.problem:
        return _held(ran.problem)
    if ran.exit_code != check.exit_code:
        return _held(f"it ended with {ran.exit_code}: {_short(ran.output)}")
    return _held(missing_in(ran.output, check.output, facts.looking))


def _cost(_place: int, check: CostCheck, facts: Facts) -> Outcome:
    if facts.cost is None:
        return _held("a model that was used has no price")
    return _held("" if facts.cost <= check.at_most else f"it cost {facts.cost:f} dollars")


def _steps(_place: int, check: StepsCheck, facts: Facts) -> Outcome:
    return _held("" if facts.steps <= check.at_most else f"it took {facts.steps}")


def _time(_place: int, check: TimeCheck, facts: Facts) -> Outcome:
    return _held("" if facts.seconds <= check.at_most else f"it took {facts.seconds:g} s")


def _stop(_place: int, check: StopCheck, facts: Facts) -> Outcome:
    return _held(
        "" if facts.stop == check.reason else f"it ended with {facts.stop}: {facts.stop_words}"
    )


def _judged(place: int, check: JudgeCheck, facts: Facts) -> Outcome:
    verdicts = facts.verdicts.get(place, ())
    points = [each.points for each in verdicts if each.points is not None]
    reasons = " / ".join(_short(each.reason) for each in verdicts if each.reason)
    if not points or len(points) < len(verdicts):
        return _held(f"a judge’s answer cannot be read: {reasons or 'there is none'}")
    mean = sum(points) / len(points)
    return Outcome(
        "",
        mean >= check.at_least,
        f"{mean:g} of {check.scale}: {reasons}",
        points=(mean - 1) / (check.scale - 1),
        disagreed=max(points) - min(points) > APART * (check.scale - 1),
    )


def _preferred(place: int, check: PreferenceCheck, facts: Facts) -> Outcome:
    verdicts = facts.verdicts.get(place, ())
    points = [each.points for each in verdicts if each.points is not None]
    reasons = " / ".join(_short(each.reason) for each in verdicts if each.reason)
    if not points or len(points) < len(verdicts):
        return _held(f"a judge’s answer cannot be read: {reasons or 'there is none'}")
    mean = sum(points) / len(points)
    passed = mean > 0.5 or (mean == 0.5 and check.ties_pass)
    apart = max(points) - min(points) > 0.5
    return Outcome("", passed, reasons, points=mean, disagreed=apart)


_KINDS: Mapping[type[Any], Callable[[int, Any, Facts], Outcome]] = {
    TextCheck: _text,
    SchemaCheck: _schema,
    CallCheck: _call,
    FileCheck: _file,
    CommandCheck: _command,
    CostCheck: _cost,
    StepsCheck: _steps,
    TimeCheck: _time,
    StopCheck: _stop,
    JudgeCheck: _judged,
    PreferenceCheck: _preferred,
}


def _listed(phrases: tuple[str, ...]) -> str:
    return ", ".join(f"“{phrase}”" for phrase in phrases)


def _written(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _short(text: str, most: int = SHOWN) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"

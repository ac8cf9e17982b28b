"""What is wrong with something that was sent: which field, the rule it breaks, and the remedy.

The words of every door for one kind of mistake, so that all say the same. No value is repeated but a
misspelled name that is close to a right one: what was sent may be a secret. Plain Python; how a fault is
found in a body is `modelfaults`'s, how it is shown each door's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

MOST_FAULTS = 10
"""Told of one request; the rest shows when these are mended."""
MOST_NAMES = 40
"""Of accepted values in one sentence."""
NAME_CHARACTERS = 60
"""Of a name that the sender chose."""

_PLAIN = re.compile(r"[\w$-]+")


@dataclass(frozen=True, slots=True)
class Fault:
    field: str
    """As it was sent (`tools[2].configs[0].name`); empty: the whole."""
    rule: str
    remedy: str
    code: str = "invalid"
    """Stable: missing, unknown_field, wrong_type, not_among, unknown_type, too_long, too_short,
    too_many, too_few, out_of_range, malformed, invalid."""

    def under(self, outer: str) -> Fault:
        """The same, in something that `outer` held."""
        return replace(self, field=below(outer, self.field))

    def words(self) -> str:
        return f"{self.field}: {self.rule} {self.remedy}".removeprefix(": ").strip()


# --- places ---------------------------------------------------------------------------------------


def place(*parts: str | int) -> str:
    """The way to a value as its sender would write it: `events[0].content[1].text`."""
    written = ""
    for part in parts:
        if isinstance(part, int):
            written += f"[{part}]"
        elif len(part) <= NAME_CHARACTERS and _PLAIN.fullmatch(part):
            written += f".{part}"
        else:
            written += f'["{cut(part)}"]'
    return written.removeprefix(".")


def below(outer: str, inner: str) -> str:
    """The place `inner` of what stands at `outer`; either may be empty."""
    return f"{outer}{inner}" if not (outer and inner) or inner[0] == "[" else f"{outer}.{inner}"


def cut(name: object) -> str:
    """A name that somebody else chose, fit for a message."""
    text = "".join(
        char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in str(name)
    )
    return text if len(text) <= NAME_CHARACTERS else f"{text[:NAME_CHARACTERS]}…"


# --- kinds of fault -------------------------------------------------------------------------------


def missing(field: str, expected: str = "") -> Fault:
    name = field.rpartition(".")[2]
    return Fault(
        field,
        "It is missing.",
        f"Send “{name}”: {expected}." if expected else f"Send “{name}”.",
        "missing",
    )


def unknown_field(field: str, name: str, known: Sequence[str]) -> Fault:
    """`known`: what may stand there."""
    rule = "There is no such field here."
    if meant := nearest(name, known):
        return Fault(field, rule, f"Did you mean “{meant}”?", "unknown_field")
    if not known:
        return Fault(field, rule, "Leave it out; none is taken here.", "unknown_field")
    return Fault(field, rule, f"Leave it out, or choose from: {names(known)}.", "unknown_field")


def not_among(field: str, given: object, accepted: Sequence[object], *, code: str = "") -> Fault:
    """For a value that is none of a few."""
    code = code or "not_among"
    choices = [str(each) for each in accepted]
    if len(choices) == 1:
        only = f"“{choices[0]}”" if isinstance(accepted[0], str) else choices[0]
        return Fault(field, "This value is not taken.", f"Send {only}.", code)
    if isinstance(given, str) and (meant := nearest(given, choices)):
        rule = f"“{cut(given)}” is not among the values."
        return Fault(field, rule, f"Did you mean “{meant}”? Choose from: {names(choices)}.", code)
    rule = "The value is not among those that are taken."
    return Fault(field, rule, f"Choose from: {names(choices)}.", code)


def unknown_type(field: str, given: object, accepted: Sequence[str]) -> Fault:
    """For the `type` of an object that says which of several it is."""
    if given is None:
        rule = "It is missing, so that nobody knows what this is."
        return Fault(field, rule, f"Choose from: {names(accepted)}.", "missing")
    return not_among(field, given, accepted, code="unknown_type")


def wrong_type(field: str, given: object, expected: str, wanted: Iterable[str] = ()) -> Fault:
    """`wanted`: the kinds of JSON value (`kind_of`) that are taken."""
    needed = " or ".join(sorted(wanted)) or "something else"
    rule = f"{kind_of(given).capitalize()} was sent where {needed} is needed."
    return Fault(field, rule, f"Send {expected}.", "wrong_type")


def too_long(field: str, has: int, most: int) -> Fault:
    rule = f"It has {has:,} characters; at most {most:,} are taken."
    return Fault(field, rule, "Shorten it.", "too_long")


def too_short(field: str, has: int, least: int) -> Fault:
    if has == 0:
        return Fault(field, "It is empty.", f"Write at least {_counted(least)}.", "too_short")
    rule = f"It has {_counted(has)}; at least {least:,} are needed."
    return Fault(field, rule, "Write more.", "too_short")


def too_many(field: str, has: int, most: int) -> Fault:
    if most == 0:
        rule = "This server takes nothing here."
        return Fault(field, rule, "Leave it out, or send it empty.", "too_many")
    rule = f"It has {has:,} entries; at most {most:,} are taken."
    return Fault(field, rule, "Send fewer.", "too_many")


def too_many_faults(has: int) -> Fault:
    """For what is so wrong that nobody is told where."""
    rule = f"It breaks its rules in {has:,} places, too many to name."
    return Fault("", rule, "Compare it with the reference, and send a short one first.", "too_many")


def too_few(field: str, has: int, least: int) -> Fault:
    if has == 0:
        rule = "It is empty."
        return Fault(field, rule, f"Send at least {least:,}.", "too_few")
    rule = f"It has {has:,} entries; at least {least:,} are needed."
    return Fault(field, rule, "Send more.", "too_few")


def out_of_range(field: str, rule: str, expected: str) -> Fault:
    return Fault(field, rule, f"Send {expected}.", "out_of_range")


def malformed(field: str, expected: str, rule: str = "") -> Fault:
    rule = rule or "The value does not have the form that is needed."
    return Fault(field, rule, f"Send {expected}.", "malformed")


# --- words ----------------------------------------------------------------------------------------


def nearest(name: str, known: Iterable[str]) -> str:
    """Which of `known` was probably meant; empty: none."""
    if len(name) > NAME_CHARACTERS:
        return ""
    lowered = {each.lower(): each for each in known}
    found = get_close_matches(name.lower(), lowered, n=1, cutoff=0.7)
    return lowered[found[0]] if found else ""


def names(words: Sequence[str]) -> str:
    listed = ", ".join(words[:MOST_NAMES])
    return f"{listed} and {len(words) - MOST_NAMES:,} more" if len(words) > MOST_NAMES else listed


def kind_of(value: Any) -> str:
    """What JSON calls it."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case Mapping():
            return "an object"
        case list() | tuple():
            return "a list"
    return "a value"


def spanned(least: float | None, most: float | None) -> str:
    """` from 1 to 5`, ` of 1 or more`, ` of at most 5`, or nothing."""
    match least, most:
        case None, None:
            return ""
        case None, _:
            return f" of at most {_number(most)}"
        case _, None:
            return f" of {_number(least)} or more"
    return f" from {_number(least)} to {_number(most)}"


def _number(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) and abs(value) >= 10_000 else f"{value}"


def _counted(count: int) -> str:
    return "1 character" if count == 1 else f"{count:,} characters"

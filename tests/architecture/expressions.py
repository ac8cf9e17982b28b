"""Every regular expression of our own, tried out on texts made from its own parts to run away with it.

A judge of one expression: whatever it repeats is repeated, for thousands of characters, with what leads
there in front and with an end on which it fails. The engine that runs it is the one that runs in use, so
look-around and anchors count as they do there. Growing sizes end the trial long before it takes for ever.
"""

from __future__ import annotations

import ast
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from itertools import islice
from typing import Any

from reading.linear import linear
from tests.architecture.sources import MODULES, parsed

_parser: Any = import_module("re._parser")
_constants: Any = import_module("re._constants")

CALLS = {"compile", "search", "match", "fullmatch", "sub", "subn", "split", "findall", "finditer"}

SIZES = (8, 12, 16, 18, 20, 22, 24, 28, 32, 40, 50, 64, 90, 128, 250, 500, 900, 1_600, 3_000, 6_000)
"""Repetitions. An exponential expression shows itself below thirty, a quadratic one at the end."""
TRIES = 5
"""How often a suspicion is tried, in turn with what runs away for certain: a machine that others use is slow
for both."""
QUADRATIC, OF_SIGNS = re.compile("[^x]*y"), 6_000
"""What runs away on any machine: a search may take a third of it for as long a text. A linear one needs
a hundredth."""
ENOUGH = 900
"""Repetitions after which one that needs a twentieth of what it may is linear: a quadratic one that is
too slow at the end needs more than three of them by then."""
MOST_PUMPS = 45
RUNS_ON, OF_MANY_SIGNS, FINDS = linear("x[^y]*y|a"), 100_000, 8
"""RE2 is linear in one search. What runs away is many, each of which looks to the end of the text."""


@dataclass(frozen=True)
class Use:
    place: str
    """`package/module.py:name of what is around it`."""
    line: int
    pattern: str | bytes | None
    """None where it is put together at run time."""
    flags: int
    linear: bool = False
    """Given to `reading.linear`."""


# --- finding them ---------------------------------------------------------------------------------


@cache
def uses() -> tuple[Use, ...]:
    return tuple(use for path in MODULES for use in uses_in(path.as_posix(), parsed(path)))


def uses_in(name: str, tree: ast.Module) -> Iterator[Use]:
    """Every call of `re` and of `linear`, and what is handed to a library that compiles it with `re`."""
    yield from _walk(name, tree, "")


def _walk(name: str, node: ast.AST, around: str) -> Iterator[Use]:
    for child in ast.iter_child_nodes(node):
        inside = around
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inside = child.name
        elif isinstance(child, ast.Assign | ast.AnnAssign) and not around:
            target = child.targets[0] if isinstance(child, ast.Assign) else child.target
            inside = target.id if isinstance(target, ast.Name) else around
        if isinstance(child, ast.ImportFrom) and child.module in {"re", "regex", "sre_compile"}:
            yield Use(f"{name}:{inside}", child.lineno, None, 0)
        if isinstance(child, ast.Call):
            call = child.func
            if (
                isinstance(call, ast.Attribute)
                and isinstance(call.value, ast.Name)
                and call.value.id == "re"
                and call.attr in CALLS
            ):
                yield Use(f"{name}:{inside}", child.lineno, _text(child.args[0]), _flags(child))
            elif getattr(call, "id", getattr(call, "attr", "")) == "linear":
                yield Use(f"{name}:{inside}", child.lineno, _text(child.args[0]), 0, linear=True)
            elif getattr(call, "id", getattr(call, "attr", "")) in {
                "RegexValidator",
                "RegexField",
                "re_path",
            }:
                given = [*child.args, *(one.value for one in child.keywords if one.arg == "regex")]
                yield Use(f"{name}:{inside}", child.lineno, _text(given[0]) if given else None, 0)
        yield from _walk(name, child, inside)


def _text(node: ast.expr) -> str | bytes | None:
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return None
    return value if isinstance(value, str | bytes) else None


def _flags(call: ast.Call) -> int:
    named = {one.attr for one in ast.walk(call) if isinstance(one, ast.Attribute)}
    return sum(
        getattr(re, name).value
        for name in named
        if isinstance(getattr(re, name, None), re.RegexFlag)
    )


# --- judging one ----------------------------------------------------------------------------------


def fault_of(pattern: str | bytes, flags: int = 0) -> str:
    """How the expression can be made to run away; empty where nothing tried did it."""
    compiled = re.compile(pattern, flags)
    text = pattern.decode("latin-1") if isinstance(pattern, bytes) else pattern
    tree = _parser.parse(text, flags & ~re.LOCALE)
    for lead, pump in islice(dict.fromkeys(_pumps(tree, "")), MOST_PUMPS):
        for end in ("\0", "!\n"):
            for size in SIZES:
                given: Any = lead + pump * size + end
                if isinstance(pattern, bytes):
                    given = given.encode("latin-1", "replace")
                most = _too_long() * _length(given)
                seconds = _seconds(compiled, given)
                if seconds > most and _is_too_slow(compiled, given):
                    return f"{pump!r} × {size} behind {lead!r}, ended by {end!r}"
                if size >= ENOUGH and seconds < most / 20:
                    break
    return ""


def fault_of_linear(pattern: str) -> str:
    """How every search for the next find can be made to look far behind it; empty where nothing tried did
    it. Tried are what begins a find and ends none, and the same with a find behind."""
    compiled = linear(pattern)
    tree = _parser.parse(pattern.replace(r"\z", r"\Z"))
    begun = dict.fromkeys(
        part for lead, pump in _pumps(tree, "") for part in (lead, pump, lead + pump)
    )
    whole = dict.fromkeys(_sample(tree, turn) for turn in range(12))
    for one in (
        between.join((beginning, find, ""))
        for beginning in begun
        for find in ("", *whole)
        for between in ("", "-", " ", "/", "\n", "!")
    ):
        if one and _looks_far(compiled, one):
            return f"{one!r} again and again"
    return ""


def _looks_far(compiled: Any, one: str) -> bool:
    seconds, end = _first_finds(compiled, one)
    if end >= OF_MANY_SIGNS / 2 or seconds <= _too_far():
        return False
    own = other = 0.0
    for _try in range(TRIES):
        own += _first_finds(compiled, one)[0]
        other += _first_finds(RUNS_ON, "xa")[0]
    return own > other / 3


@cache
def _too_far() -> float:
    """A third of what finds take that all look through the rest of the text."""
    return min(_first_finds(RUNS_ON, "xa")[0] for _try in range(5)) / 3


def _first_finds(compiled: Any, one: str) -> tuple[float, int]:
    """Seconds for the first few finds in a text that says `one` throughout, and where the last ends."""
    text = one * (OF_MANY_SIGNS // len(one) + 1)
    began = time.thread_time()
    found = list(islice(compiled.finditer(text), FINDS))
    seconds = time.thread_time() - began
    return seconds, found[-1].end() if len(found) == FINDS else len(text)


@cache
def _too_long() -> float:
    """Seconds of this machine's processor."""
    return min(_seconds(QUADRATIC, "a" * OF_SIGNS) for _try in range(5)) / 3


def _is_too_slow(compiled: Any, given: Any) -> bool:
    own = other = 0.0
    for _try in range(TRIES):
        own += _seconds(compiled, given)
        other += _seconds(QUADRATIC, "a" * OF_SIGNS)
    return own > other / 3 * _length(given)


def _length(given: Any) -> float:
    """In lengths of what it is compared with; a short text may take as long."""
    return max(1.0, len(given) / OF_SIGNS)


def _seconds(compiled: Any, text: Any) -> float:
    began = time.thread_time()
    compiled.sub(type(text)(), text)
    compiled.match(text)
    return time.thread_time() - began


def _pumps(tree: Any, lead: str) -> Iterator[tuple[str, str]]:
    """What leads to every repetition, and what it repeats; and the same joined, for what follows itself."""
    whole = _sample(tree)
    for turn in range(3):
        yield "", _sample(tree, turn)
    yield "", whole[:-1] or "a"
    for part in _parts(tree):
        before = lead + _sample(part.before)
        for turn in range(3):
            piece = _sample(part.repeated, turn)
            for sign in dict.fromkeys((piece, *piece[:3])):
                if sign:
                    yield before, sign
                    yield "", sign
                    yield "", before + sign
    for sign in ("a", " ", "\n", "-", "/", ".", "0", "\\", '"', "a-", "a ", "a.", "[", "("):
        yield "", sign


@dataclass(frozen=True)
class _Repeated:
    before: Any
    repeated: Any


def _parts(tree: Any) -> Iterator[_Repeated]:
    items = list(tree)
    for place, (kind, value) in enumerate(items):
        before = items[:place]
        for inner in _inner(kind, value):
            for part in _parts(inner):
                yield _Repeated([*before, *part.before], part.repeated)
        if kind in _REPEATS and value[1] > 8:
            yield _Repeated(before, value[2])


_REPEATS = {_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT}


def _inner(kind: Any, value: Any) -> list[Any]:
    if kind in _REPEATS:
        return [value[2]]
    if kind is _constants.SUBPATTERN:
        return [value[3]]
    if kind is _constants.BRANCH:
        return list(value[1])
    if kind in {_constants.ASSERT, _constants.ASSERT_NOT}:
        return [value[1]]
    return [value] if kind is _constants.ATOMIC_GROUP else []


def _sample(tree: Any, turn: int = 0) -> str:
    """A short text that the expression would take, one of several by `turn`."""
    found = ""
    for kind, value in tree:
        if kind is _constants.LITERAL:
            found += chr(value)
        elif kind is _constants.NOT_LITERAL:
            found += "b" if value == ord("a") else "a"
        elif kind is _constants.ANY:
            found += "a \n"[turn % 2]
        elif kind is _constants.IN:
            found += _one_of(value, turn)
        elif kind is _constants.BRANCH:
            found += _sample(value[1][turn % len(value[1])], turn)
        elif kind in _REPEATS:
            found += _sample(value[2], turn) * min(max(value[0], 1), 40, max(value[1], 1))
        elif kind in {_constants.SUBPATTERN, _constants.ATOMIC_GROUP}:
            found += _sample(_inner(kind, value)[0], turn)
    return found


_LIKELY = "a0 -_/.:\n\t'\"\\=é~!<"


def _one_of(parts: Any, turn: int) -> str:
    written = []
    for kind, value in parts:
        if kind is _constants.LITERAL:
            written.append(chr(value))
        elif kind is _constants.RANGE:
            written.append(chr(value[0]))
    tried = [sign for sign in (*_LIKELY, *written) if _is_in(sign, parts)]
    return tried[turn % len(tried)] if tried else ""


def _is_in(sign: str, parts: Any) -> bool:
    negated, found = False, False
    for kind, value in parts:
        if kind is _constants.NEGATE:
            negated = True
        elif kind is _constants.LITERAL:
            found |= ord(sign) == value
        elif kind is _constants.RANGE:
            found |= value[0] <= ord(sign) <= value[1]
        elif kind is _constants.CATEGORY:
            found |= re.fullmatch(_CATEGORIES[str(value)], sign) is not None
    return found != negated


_CATEGORIES = {
    f"CATEGORY_{'NOT_' if sign.isupper() else ''}{name}": rf"\{sign}"
    for name, letter in (("DIGIT", "d"), ("SPACE", "s"), ("WORD", "w"))
    for sign in (letter, letter.upper())
}

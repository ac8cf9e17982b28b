"""YAML of others, read without surprises: no aliases, no objects, and only what can be stored again.

There are no numbers to the base of 60, as in YAML 1.2: a time of day is a text, and to read such a number
takes the square of its length.

What a text may hold, and how long it may be, is decided by who asks.
"""

from __future__ import annotations

from math import isfinite
from typing import Any

import yaml

from reading.wholetext import storable

NUMBER_BITS = 64
_TEXT = "tag:yaml.org,2002:str"
_NUMBERS = frozenset({"tag:yaml.org,2002:int", "tag:yaml.org,2002:float"})


class Loader(yaml.SafeLoader):
    """For `yaml.load`. Raises `yaml.YAMLError`, and RecursionError for what is nested too deep; nothing else,
    whatever the text is."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        # Aliases could multiply a small text without end.
        if self.check_event(yaml.events.AliasEvent):
            raise yaml.MarkedYAMLError(
                problem="aliases (“*name”) are not allowed",
                problem_mark=self.peek_event().start_mark,  # type: ignore[no-untyped-call]
            )
        return super().compose_node(parent, index)

    def resolve(self, kind: Any, value: Any, implicit: Any) -> Any:
        tag = super().resolve(kind, value, implicit)  # type: ignore[no-untyped-call]
        return _TEXT if tag in _NUMBERS and ":" in value else tag

    def construct_object(self, node: Any, deep: bool = False) -> Any:
        if node.tag in _NUMBERS and ":" in node.value:
            raise _refused("a value is not of its kind", node)
        # The library lets through whatever goes wrong in it with a value that is none of its kind.
        try:
            value = super().construct_object(node, deep)
        except (ValueError, ArithmeticError, LookupError, AttributeError, TypeError) as problem:
            raise _refused("a value is not of its kind", node) from problem
        if isinstance(value, str):
            return storable(value)
        if isinstance(value, int) and value.bit_length() > NUMBER_BITS:
            raise _refused("a number is too large", node)
        if isinstance(value, float) and not isfinite(value):
            raise _refused("a number is none, or too large", node)
        return value


def read_yaml(text: str, loader: type[Loader] = Loader) -> Any:
    """What it says. Raises `yaml.YAMLError`, also for what is nested too deep and what is no text."""
    try:
        return yaml.load(text, Loader=loader)  # noqa: S506 - a safe loader, made stricter
    except RecursionError as problem:
        raise yaml.YAMLError("it is nested too deep") from problem


def _refused(why: str, node: Any) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=why, problem_mark=node.start_mark)

"""YAML of others, read without surprises: no aliases, no objects, and only what can be stored again.

What a text may hold, and how long it may be, is decided by who asks.
"""

from __future__ import annotations

from typing import Any

import yaml

NUMBER_BITS = 64


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

    def construct_object(self, node: Any, deep: bool = False) -> Any:
        # The library lets through whatever goes wrong in it with a value that is none of its kind.
        try:
            value = super().construct_object(node, deep)
        except (ValueError, ArithmeticError, LookupError, AttributeError, TypeError) as problem:
            raise yaml.MarkedYAMLError(
                problem="a value is not of its kind", problem_mark=node.start_mark
            ) from problem
        if isinstance(value, str):
            return _whole(value)
        if isinstance(value, int) and value.bit_length() > NUMBER_BITS:
            raise yaml.MarkedYAMLError(
                problem="a number is too large", problem_mark=node.start_mark
            )
        return value


def read_yaml(text: str, loader: type[Loader] = Loader) -> Any:
    """What it says. Raises `yaml.YAMLError`, also for what is nested too deep and what is no text."""
    try:
        return yaml.load(text, Loader=loader)  # noqa: S506 - a safe loader, made stricter
    except RecursionError as problem:
        raise yaml.YAMLError("it is nested too deep") from problem


def _whole(text: str) -> str:
    """As it can be stored: escapes spell halves of signs, and the sign that ends texts elsewhere."""
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return whole.replace("\0", "\N{REPLACEMENT CHARACTER}")

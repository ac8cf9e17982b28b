"""The product's own modules, read once, for tests that walk the code."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES: tuple[str, ...] = tuple(
    tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "root_packages"
    ]
)
"""The floors, so that one that is added is walked by every rule."""
MODULES = sorted(
    path.relative_to(ROOT)
    for package in PACKAGES
    for path in (ROOT / package).rglob("*.py")
    if "migrations" not in path.parts
)
PRODUCT = [path for path in MODULES if "testing" not in path.parts]


@cache
def parsed(path: Path) -> ast.Module:
    """`path` from the root, as MODULES has it. Parsed once: that is what such walks cost."""
    text = (ROOT / path).read_text(encoding="utf-8")
    try:
        return ast.parse(text)
    except SystemError:
        # Python 3.11 counts its depth together with a traceback that another thread puts into words meanwhile
        # (python/cpython#106905), such as of a job that an earlier test had left.
        return ast.parse(text)


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """All that is written in `path`, from the top down. Walked once, as long as parsing takes."""
    return tuple(ast.walk(parsed(path)))


@cache
def called_in(path: Path) -> frozenset[str]:
    """The last names of whatever is called in `path`."""
    calls = (node.func for node in nodes_of(path) if isinstance(node, ast.Call))
    return frozenset(
        func.attr if isinstance(func, ast.Attribute) else func.id
        for func in calls
        if isinstance(func, ast.Attribute | ast.Name)
    )


def mentions(path: Path, names: Iterable[str]) -> bool:
    """Whether one of the names is written in `path` at all, which is told without parsing it."""
    text = (ROOT / path).read_text(encoding="utf-8")
    return any(name in text for name in names)

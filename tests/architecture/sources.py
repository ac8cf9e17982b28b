"""The product's own modules, read once, for tests that walk the code."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = (
    "accounts",
    "agentsite",
    "conversations",
    "harness",
    "jobs",
    "skills_app",
    "teams_app",
    "tools_app",
)
PRODUCT = sorted(
    path.relative_to(ROOT)
    for package in PACKAGES
    for path in (ROOT / package).rglob("*.py")
    if "migrations" not in path.parts and "testing" not in path.parts
)


@cache
def parsed(path: Path) -> ast.Module:
    """`path` as PRODUCT has it."""
    return ast.parse((ROOT / path).read_text())


@cache
def called_in(path: Path) -> frozenset[str]:
    """The last names of whatever is called in `path`."""
    calls = (node.func for node in ast.walk(parsed(path)) if isinstance(node, ast.Call))
    return frozenset(ast.unparse(func).rpartition(".")[2] for func in calls)

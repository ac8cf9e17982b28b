"""What only tests refer to is no feature: it gets a door, or it goes.

A walk over names, not over calls: a name that the product, its templates or its scripts never say again
after defining it is used by nobody there.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache

from .sources import PRODUCT, ROOT, parsed

FOUND_BY_OTHERS = {
    "apps.py": "Django finds an app's configuration by its base class",
    "admin.py": "Django finds an admin's methods by their names",
    "adminwrites.py": "Django finds an admin's methods by their names",
    "tokenadmin.py": "Django finds an admin's methods by their names",
}
"""Files whose names are asked for by frameworks alone."""
ALLOWED = {
    "garbled_call": "the scripted model is there for tests to write scripts with",
}
"""Each with why it may stay."""
HOOKS = re.compile(r"(has_\w+_permission|clean_\w+|do_[A-Z]+|get_\w+|to_python|to_url)$")
"""Methods that a framework's class finds by how they are called."""


ALSO = (ROOT / "manage.py", ROOT / "pyproject.toml")


@cache
def words() -> Counter[str]:
    """How often the product says each word."""
    beside = [
        path
        for folder in ("templates", "static/js", "bench")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in {".html", ".txt", ".js", ".py"}
    ]
    counted: Counter[str] = Counter()
    for path in [*(ROOT / one for one in PRODUCT), *beside, *ALSO]:
        counted.update(re.findall(r"\w+", path.read_text(encoding="utf-8")))
    return counted


def definitions() -> Iterator[tuple[str, str]]:
    """Names of functions, classes and methods that nothing registers: by a decorator, or by the class of
    a framework that they derive from."""
    for path in PRODUCT:
        if path.name in FOUND_BY_OTHERS or "administration" in path.parts:
            continue
        for node in parsed(path).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                if not node.decorator_list:
                    yield str(path), node.name
            elif isinstance(node, ast.ClassDef):
                if not _is_found_by_its_base(node):
                    yield str(path), node.name
                yield from ((str(path), name) for name in _methods(node))


def _is_found_by_its_base(node: ast.ClassDef) -> bool:
    bases = {ast.unparse(base) for base in node.bases}
    return bool(node.decorator_list) or "OpenApiAuthenticationExtension" in bases


OURS = {"object", "Protocol", "Enum"}


def _methods(node: ast.ClassDef) -> Iterator[str]:
    """Of our own classes and of query sets; what a framework's subclass overrides is called by it."""
    bases = {ast.unparse(base) for base in node.bases}
    own = not bases - OURS or any("QuerySet" in base for base in bases)
    for part in node.body:
        if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef):
            known = part.name.startswith(("__", "process_")) or HOOKS.match(part.name)
            if own and not known:
                yield part.name


def test_every_name_of_the_product_is_said_again_in_it() -> None:
    unused = {name: where for where, name in definitions() if words()[name] == 1}

    assert {name: where for name, where in unused.items() if name not in ALLOWED} == {}
    assert set(ALLOWED) <= set(unused), "take out of the list what it needs no more"


def test_the_walk_sees_a_function_that_nobody_calls() -> None:
    assert words()["cancel_all_background"] > 1
    assert words()["garbled_call"] == 1

"""What only tests refer to is no feature: it gets a door, or it goes.

A walk over names, not over calls. A function or class is used if its own module says its name, one imports
it, or one that has its module says it behind a dot; a method if a package that has to do with its own says
its name behind a dot, or as a text.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import PurePath

from .sources import PRODUCT, ROOT, nodes_of, parsed

FOUND_BY_OTHERS = {
    "apps.py": "Django finds an app's configuration by its base class",
    "admin.py": "Django finds an admin's methods by their names",
    "adminwrites.py": "Django finds an admin's methods by their names",
    "tokenadmin.py": "Django finds an admin's methods by their names",
}
"""Files whose names are asked for by frameworks alone."""
ALLOWED = {
    "garbled_call": "the scripted model is there for tests to write scripts with",
    "statements": "migrations ask a table for its index",
    "end": "tests end the process that would outlive them; the site's ends with the site",
}
"""Each with why it may stay."""
BY_NAME = {
    "accounts/sessionstore.py:SessionStore": "Django asks the module of SESSION_ENGINE for it",
    "pipelines/withlanggraph/driving.py:following": "`pipelines.driving` imports the engine that is named",
    "pipelines/withstrands/driving.py:following": "so here",
    **dict.fromkeys(
        [
            f"providers/{name}.py:build"
            for name in ("anthropic", "demo", "openai_compatible", "scripted")
        ],
        "`providers.table` imports the service that is named",
    ),
    **dict.fromkeys(
        [
            f"skills_app/shipped/{name}.py:as_tool"
            for name in (
                *("capacity-planner/scripts/capacity", "error-budget/scripts/budget"),
                *("service-briefing/scripts/briefing", "service-health/scripts/health"),
            )
        ],
        "a skill's manifest names it as a tool",
    ),
}
"""What is asked for by a text that names its module, and by whom."""
HOOKS = re.compile(r"(has_\w+_permission|clean_\w+|do_[A-Z]+|get_\w+|to_python|to_url)$")
"""Methods that a framework's class finds by how they are called."""


ALSO = (ROOT / "manage.py", ROOT / "pyproject.toml")


@cache
def beside() -> str:
    """What is no Python of the product, and may say a name of it."""
    paths = [
        path
        for folder in ("templates", "static/js", "bench")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in {".html", ".txt", ".js", ".py"}
    ]
    return "\n".join(path.read_text(encoding="utf-8") for path in (*paths, *ALSO))


class Names:
    """Which names the product says, and how."""

    def __init__(self) -> None:
        self.plain: dict[PurePath, set[str]] = defaultdict(set)
        """By module, as they are or as a text."""
        self.dotted: dict[PurePath, set[str]] = defaultdict(set)
        """By module, behind a dot or as a text."""
        self.imported: set[tuple[str, str]] = set()
        """Last name of a module, name in it."""
        self.having: dict[str, set[PurePath]] = defaultdict(set)
        """By what they import, whatever it is: modules."""
        self.known: dict[str, set[str]] = defaultdict(set)
        """By package: packages that it imports."""
        self._said_near: dict[str, set[str]] = {}
        self.paths: set[tuple[str, str]] = set()
        """Two names with a dot or a colon between them, anywhere."""
        for path in PRODUCT:
            self._read(path)
        text = beside()
        self.paths |= set(re.findall(r"\b(\w+)[.:](?=(\w+))", text))
        self.elsewhere = set(re.findall(r"\.(\w+)", text))

    def _read(self, path: PurePath) -> None:
        self.known[path.parts[0]].add(path.parts[0])
        for node in nodes_of(path):
            if isinstance(node, ast.ImportFrom):
                module = (node.module or "").rpartition(".")[2] or path.parent.name
                self.imported |= {(module, each.name) for each in node.names}
                for each in node.names:
                    self.having[each.name].add(path)
                if not node.level:
                    self.known[path.parts[0]].add((node.module or "").partition(".")[0])
            elif isinstance(node, ast.Import):
                for each in node.names:
                    self.having[each.name.rpartition(".")[2]].add(path)
                    self.known[path.parts[0]].add(each.name.partition(".")[0])
            elif isinstance(node, ast.Name):
                self.plain[path].add(node.id)
            elif isinstance(node, ast.Attribute):
                self.dotted[path].add(node.attr)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                if node.value.isidentifier():
                    self.plain[path].add(node.value)
                    self.dotted[path].add(node.value)
                elif len(node.value) < 200:
                    self.paths |= set(re.findall(r"\b(\w+)[.:](?=(\w+))", node.value))

    def says(self, path: PurePath, name: str) -> bool:
        """Whether the product says the name of a function or class of this module."""
        module = path.stem if path.stem != "__init__" else path.parent.name
        return (
            name in self.plain[path]
            or (module, name) in self.imported
            or (path.parent.name, name) in self.imported
            or (module, name) in self.paths
            or any(name in self.dotted[other] for other in self.having[module])
        )

    def says_method(self, path: PurePath, name: str) -> bool:
        return name in self.elsewhere or name in self._near(path.parts[0])

    def _near(self, package: str) -> set[str]:
        """What packages say behind a dot that this one imports, or that import it."""
        if package not in self._said_near:
            self._said_near[package] = {
                name
                for other, names in self.dotted.items()
                if other.parts[0] in self.known[package] or package in self.known[other.parts[0]]
                for name in names
            }
        return self._said_near[package]


@cache
def names() -> Names:
    return Names()


def definitions() -> Iterator[tuple[PurePath, str, bool]]:
    """Functions, classes and methods that nothing registers: by a decorator, or by the class of a framework
    that they derive from. Whether it is a method is told as well."""
    for path in PRODUCT:
        if path.name in FOUND_BY_OTHERS or "administration" in path.parts:
            continue
        for node in parsed(path).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                if not node.decorator_list:
                    yield path, node.name, False
            elif isinstance(node, ast.ClassDef):
                if not _is_found_by_its_base(node):
                    yield path, node.name, False
                yield from ((path, name, True) for name in _methods(node))


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
    said = {False: names().says, True: names().says_method}
    unused = {
        f"{path}:{name}" for path, name, method in definitions() if not said[method](path, name)
    }
    allowed = {each for each in unused if each.rpartition(":")[2] in ALLOWED}

    assert unused - allowed - set(BY_NAME) == set()
    assert {each.rpartition(":")[2] for each in allowed} == set(ALLOWED), (
        "it needs no word any more"
    )
    assert set(BY_NAME) <= unused, "take out of the list what it needs no more"


def test_the_walk_sees_what_nobody_calls() -> None:
    assert names().says(PurePath("conversations/background.py"), "cancel_all_background")
    assert not names().says(PurePath("providers/scripted.py"), "garbled_call")
    assert not names().says(PurePath("harness/refusals.py"), "malformed"), (
        "another module's is another"
    )
    assert not names().says_method(PurePath("sandbox/contract.py"), "as_text")

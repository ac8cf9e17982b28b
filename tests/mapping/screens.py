"""Each address with its view, and what the view draws, calls and asks for: found by walking the routes."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import Any

from tests.architecture.routes import page_routes
from tests.architecture.sources import PACKAGES, ROOT
from tests.mapping.code import TESTS, imports, text_of

_PLAIN = {"harness", "wire", "reading", "net", "live", "jobs", "rendering"}
_DOORS = {"api", "v1", "agui"}
_HOLE = re.compile(r"<[^>]*>|\(\?P<\w+>(?:[^()]|\([^()]*\))*\)|\{[^{}]*\}")
_ADDRESS = re.compile(r"""["'](/[^"'\s?#]*)""")
_PART = re.compile(
    r"^(?:@[^\n]*\n(?:[ )][^\n]*\n)*)*(?:class|def|async def) (\w+)|^(\w+)(?:: [^=\n]+)? = ", re.M
)
"""Where something of a module begins, with what stands above it."""
_DRAWN = re.compile(r"""["']([\w/.\-]+\.html)["']""")
_QUOTED = re.compile(r'\bf"([^"\n]*)"|"[^"\n]*"|#.*')
_USED = re.compile(r"(?<![\w.])[A-Za-z_]\w*\b(?!=[^=])")
_MOST_TESTS = 4


@dataclass(frozen=True, slots=True)
class Screen:
    address: str
    module: Path
    view: str
    templates: tuple[str, ...]
    uses: tuple[Path, ...]
    shapes: tuple[str, ...]
    """Serializers of `/api`."""
    scopes: dict[str, str]
    tests: tuple[Path, ...]


@cache
def screens() -> list[Screen]:
    found = []
    for route in page_routes():
        view = inspect.unwrap(route.view)
        view = getattr(view, "view_class", None) or getattr(view, "cls", None) or view
        if (view.__module__ or "").partition(".")[0] in PACKAGES and hasattr(view, "__qualname__"):
            found.append(_screen(route.pattern, view))
    return found


def _screen(pattern: str, view: Any) -> Screen:
    module = Path(inspect.getfile(inspect.getmodule(view) or view)).relative_to(ROOT)
    said = _reached(module, view.__qualname__.partition(".")[0])
    brought = [one for one in imports(module) if one[0] in said.names]
    own = module.parts[0]
    used = {origin for _name, _there, origin in brought if _matters(origin, own)}
    shapes = {there for _name, there, origin in brought if origin.name.startswith("serializers")}
    scopes = {method: str(scope) for method, scope in getattr(view, "scopes", {}).items() if scope}
    address = "/" + re.sub(r"\^|\$|\\Z", "", pattern)
    found = _tried().get(_HOLE.sub("*", address), [])
    near = sorted(found, key=lambda path: (own not in path.parts, str(path)))
    return Screen(
        re.sub(r"<(?:\w+:)?(\w+)>", r":\1", address),
        module,
        view.__qualname__,
        tuple(sorted(one for one in said.templates if (ROOT / one).exists())),
        tuple(sorted(used)),
        tuple(sorted(shapes)),
        scopes,
        tuple(near[:_MOST_TESTS]),
    )


def _matters(origin: Path, own: str) -> bool:
    if origin.name == "__init__.py" or origin.parts[0] in _PLAIN or "models" in origin.parts:
        return False
    if "actions" in origin.parts:
        return True
    return origin.parts[0] == own if own not in _DOORS else origin.parts[0] not in {own, "accounts"}


@dataclass(frozen=True, slots=True)
class _Said:
    names: frozenset[str]
    templates: frozenset[str]


@cache
def _reached(module: Path, begin: str) -> _Said:
    """What a view names, with the functions and constants of its module that it leads to."""
    there = _parts(module)
    names, templates, todo = set[str](), set[str](), {begin}
    while todo:
        name = todo.pop()
        names.add(name)
        if name in there:
            todo |= there[name].names - names
            templates |= there[name].templates
    return _Said(frozenset(names), frozenset(templates))


@cache
def _parts(module: Path) -> dict[str, _Said]:
    """Each function, class and constant of a module with what it names itself."""
    text = re.sub(r'"{3}.*?"{3}', "", text_of(module), flags=re.S)
    begun = list(_PART.finditer(text))
    found = {}
    for one, after in zip_longest(begun, begun[1:]):
        part = text[one.start() : after.start() if after else None]
        drawn = {f"templates/{name}" for name in _DRAWN.findall(part)}
        used = _USED.findall(_QUOTED.sub(r"\1", part))
        found[one[1] or one[2]] = _Said(frozenset(used), frozenset(drawn))
    return found


@cache
def _tried() -> dict[str, list[Path]]:
    """The tests by the addresses that they name."""
    found: dict[str, list[Path]] = {}
    for path in TESTS:
        for address in {_HOLE.sub("*", each) for each in _ADDRESS.findall(text_of(path))}:
            found.setdefault(address, []).append(path)
    return found

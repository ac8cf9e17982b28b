"""What the code says of itself, as the map tells it: first sentences, names, who uses whom."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from django.apps import apps

from tests.architecture.sources import MODULES, PACKAGES, ROOT

SHOWN = tuple(path for path in MODULES if path.name not in {"__init__.py", "apps.py"})
TEMPLATES = sorted(path.relative_to(ROOT) for path in (ROOT / "templates").rglob("*.*"))
_TRIED = sorted(path.relative_to(ROOT) for path in (ROOT / "tests").rglob("*.py"))
TESTS = tuple(path for path in _TRIED if not {"__init__.py", "migrations"} & {*path.parts})
_TOLD = sorted(
    path.relative_to(ROOT) for path in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
)
_OF_ALL = {"adding", "architecture", "glossary", "performance"}
DOCUMENTS = tuple(path for path in _TOLD if path.stem not in _OF_ALL)
LONGEST = 130
_DOCSTRING = re.compile(r'\A(?:#.*\n)*\s*r?"""(.*?)"""', re.S)
_NAMES = re.compile(r"\n(?:class|def|async def) ([A-Za-z]\w*)")
_IMPORT = re.compile(r"\nfrom (\.*)([\w.]*) import (\([^)]*\)|.*)")
_IMPORTED = re.compile(r"(\w+)(?: as (\w+))?")
_WORD = re.compile(r"""[A-Z"'][\w./\-]+["']?""")
_DOORS = re.compile(
    r"^(api|v1|agui|mcpdoor|terminal|operations|timers)/"
    r"|/(admin|administration|owndata|forms|views|leavers|forgetting|webhookevents|projection|actions)\b"
)
_ENOUGH = 12
_FEW = 6


@cache
def text_of(path: Path) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def sentence(said: str) -> str:
    """The first sentence of a docstring or comment, cut where it is long."""
    first = " ".join(said.strip().partition("\n\n")[0].split())
    first = re.split(r"(?<=[.?!]) (?=[A-Z`])", first)[0]
    return first if len(first) <= LONGEST else first[:LONGEST].rpartition(" ")[0] + " …"


def module_of(one: type) -> Path:
    return Path(*one.__module__.split(".")).with_suffix(".py")


def about(path: Path) -> str:
    found = _DOCSTRING.match(text_of(path))
    return sentence(found[1]) if found else ""


def comment(path: Path) -> str:
    """What stands first in a template, script or style sheet."""
    found = re.match(r"\s*(?:/\*|\{%\s*comment\s*%\}|\{#)(.*?)(?:\*/|\{%|#\})", text_of(path), re.S)
    return sentence(found[1]) if found else ""


def titled(path: Path) -> str:
    found = re.search(r"block (?:head_)?title %\}(.*?)\{% endblock", text_of(path), re.S)
    words = r"\{%-?\s*(?:translate|trans) \"([^\"]*)\"[^%]*%\}"
    said = re.sub(words, r"\1", found[1] if found else "")
    return " ".join(re.sub(r"\{%.*?%\}", "", said).split())


def names(path: Path) -> str:
    """The classes and functions that a module has for others."""
    found = ", ".join(_NAMES.findall(text_of(path)))
    return f" *{found}*" if found else ""


@cache
def imports(path: Path) -> list[tuple[str, str, Path]]:
    """Of what is imported of ours: its name here, its name there, and the module or package."""
    found = []
    for dots, module, given in _IMPORT.findall(text_of(path)):
        above = ".".join(path.parts[: -len(dots)]) if dots else ""
        base = ".".join(part for part in (above, module) if part)
        if base.partition(".")[0] in PACKAGES:
            for name, other in _IMPORTED.findall(re.sub("#.*", "", given)):
                inner, outer = _known().get(f"{base}.{name}"), _known().get(base)
                if inner or outer:
                    found.append((other or name, "" if inner else name, inner or outer or path))
    return found


@cache
def _known() -> dict[str, Path]:
    named = {".".join(path.with_suffix("").parts): path for path in MODULES}
    return {name.removesuffix(".__init__"): path for name, path in named.items()}


@cache
def users_of() -> dict[Path, list[Path]]:
    """Which modules import something of each, also by way of a package's `__init__`."""
    found: dict[Path, set[Path]] = {}
    for path in MODULES:
        for _known_as, name, origin in imports(path):
            if origin.name == "__init__.py" and path.parent != origin.parent:
                origin = next((one[2] for one in imports(origin) if one[0] == name), origin)
            found.setdefault(origin, set()).add(path)
    return {path: sorted(those - {path}) for path, those in found.items()}


def used_by(path: Path) -> str:
    """A sentence: the modules that import it, where they are few, else their packages."""
    those = [one for one in users_of().get(path, []) if one.name != "__init__.py"]
    packages = sorted({one.parts[0] for one in those})
    named = ticked(those if len(those) <= _FEW else packages)
    return f" Used by {named}." if those else ""


def tables(package: str) -> Iterator[str]:
    """Each model of a package: its fields, its constraints and indexes, and who uses it; where these are
    many, the doors alone."""
    for model in sorted(apps.get_models(), key=lambda each: (each.__module__, each.__name__)):
        if model.__module__.partition(".")[0] != package or model._meta.proxy:
            continue
        path = module_of(model)
        fields = [*model._meta.local_fields, *model._meta.local_many_to_many]
        said = ", ".join(_field(field) for field in fields if field.name != "id")
        kept = [one.name for one in (*model._meta.constraints, *model._meta.indexes)]
        users = [one for one in users_of().get(path, []) if model.__name__ in words_of(one)]
        those = fewer(one for one in users if one.name not in {"__init__.py", "apps.py"})
        parts = [said, ticked(kept), f"used by {ticked(those)}" if those else ""]
        yield f"- `{path}` (`{model.__name__}`): {'; '.join(filter(None, parts))}"


def _field(field: Any) -> str:
    kind = type(field).__name__.removesuffix("Field")
    if field.is_relation:
        fate = getattr(field.remote_field, "on_delete", None)
        kind = f"→ {field.related_model.__name__}{f' {fate.__name__}' if fate else ''}"
    elif field.max_length:
        kind = f"{kind}({field.max_length})"
    return f"{field.name}{'?' if field.null else ''} {kind}{' unique' if field.unique else ''}"


def fewer(paths: Iterable[Path]) -> list[Path]:
    listed = sorted(set(paths))
    return listed if len(listed) <= _ENOUGH else [one for one in listed if _DOORS.search(str(one))]


@cache
def words_of(path: Path) -> frozenset[str]:
    """What stands in a file of names with a capital, and, within quotation marks, of short texts."""
    found = set()
    for word in set(_WORD.findall(text_of(path))):
        if word[0] in "\"'" and word[-1] in "\"'":
            found.add(f'"{word[1:-1]}"')
        found.update(part for part in re.split(r"[\"'./\-]", word) if part[:1].isupper())
    return frozenset(found)


@cache
def holding(paths: tuple[Path, ...]) -> dict[str, list[Path]]:
    """In which of the files each of `words_of` stands."""
    found: dict[str, list[Path]] = {}
    for path in paths:
        for word in words_of(path):
            found.setdefault(word, []).append(path)
    return found


def naming(words: re.Pattern[str], paths: Iterable[Path]) -> dict[str, list[Path]]:
    """In which of the files each word stands."""
    found: dict[str, list[Path]] = {}
    for path in paths:
        for word in sorted(set(words.findall(text_of(path)))):
            found.setdefault(word, []).append(path)
    return found


def ticked(paths: Iterable[Path | str]) -> str:
    return ", ".join(f"`{path}`" for path in paths)

"""What the code says of itself, as the map tells it: first sentences, names, who uses whom."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from tests.architecture.sources import MODULES, ROOT, parsed

SHOWN = [path for path in MODULES if path.name not in {"__init__.py", "apps.py"}]
TEMPLATES = sorted(path.relative_to(ROOT) for path in (ROOT / "templates").rglob("*.*"))
TESTS = sorted(
    path.relative_to(ROOT)
    for path in (ROOT / "tests").rglob("*.py")
    if path.name != "__init__.py" and "migrations" not in path.parts
)
DOCUMENTS = sorted(
    path.relative_to(ROOT)
    for path in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    if path.stem not in {"adding", "architecture", "glossary", "performance"}
)
LONGEST = 130
_MODELS = re.compile(r"/models(/\w+)?\.py$")
_DOORS = re.compile(
    r"^(api|v1|agui|mcpdoor|terminal|operations|timers)/"
    r"|/(admin|administration|owndata|forms|views|leavers|forgetting|webhookevents|projection|actions)\b"
)
_ENOUGH = 12


@cache
def text_of(path: Path) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def sentence(said: str) -> str:
    """The first sentence of a docstring or comment, cut where it is long."""
    first = " ".join(said.strip().partition("\n\n")[0].split())
    first = re.split(r"(?<=[.?!]) (?=[A-Z`])", first)[0]
    return first if len(first) <= LONGEST else first[:LONGEST].rpartition(" ")[0] + " …"


def about(path: Path) -> str:
    return sentence(ast.get_docstring(parsed(path)) or "")


def comment(path: Path) -> str:
    """What stands first in a template, script or style sheet."""
    found = re.match(r"\s*(?:/\*|\{%\s*comment\s*%\}|\{#)(.*?)(?:\*/|\{%|#\})", text_of(path), re.S)
    return sentence(found[1]) if found else ""


def titled(path: Path) -> str:
    found = re.search(r"block (?:head_)?title %\}(.*?)\{% endblock", text_of(path), re.S)
    said = re.sub(
        r"\{%-?\s*(?:translate|trans) \"([^\"]*)\"[^%]*%\}", r"\1", found[1] if found else ""
    )
    return " ".join(re.sub(r"\{%.*?%\}", "", said).split())


def names(path: Path) -> list[str]:
    """The classes and functions that a module has for others."""
    kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    return [
        node.name for node in parsed(path).body if isinstance(node, kinds) and node.name[0] != "_"
    ]


@cache
def imports(path: Path) -> tuple[tuple[str, str, Path], ...]:
    return tuple(_imports(path))


def _imports(path: Path) -> Iterator[tuple[str, str, Path]]:
    """Of what is imported of ours: its name here, its name there, and the module or package."""
    for node in parsed(path).body:
        if not isinstance(node, ast.ImportFrom):
            continue
        above = path.parts[: -node.level] if node.level else ()
        base = Path(*above, *(node.module or "").split("."))
        for one in node.names:
            known = one.asname or one.name
            inner = next((each for each in _files(base / one.name)), None)
            outer = next((each for each in _files(base)), None)
            if inner or outer:
                yield known, "" if inner else one.name, inner or outer or base


def _files(base: Path) -> Iterator[Path]:
    for path in (base.with_suffix(".py"), base / "__init__.py"):
        if path in _known():
            yield path


@cache
def _known() -> frozenset[Path]:
    return frozenset(MODULES)


@cache
def importers() -> dict[tuple[str, str], list[Path]]:
    """Which modules import a name from a package: `("spending", "Usage")`."""
    found: dict[tuple[str, str], list[Path]] = {}
    for path in SHOWN:
        for _known_as, name, origin in imports(path):
            found.setdefault((origin.parts[0], name), []).append(path)
    return found


def users_of_models(package: str) -> Iterator[tuple[str, Path, list[Path]]]:
    """Each model of a package with the modules that use it; where these are many, the doors alone."""
    for path in SHOWN:
        if path.parts[0] == package and _MODELS.search(str(path)):
            for node in parsed(path).body:
                if isinstance(node, ast.ClassDef) and _is_table(node):
                    yield node.name, path, fewer(importers().get((package, node.name), []))


def _is_table(node: ast.ClassDef) -> bool:
    bases = {ast.unparse(base).rpartition(".")[2] for base in node.bases}
    return any(base.endswith(("Model", "AbstractUser")) for base in bases) or any(
        isinstance(each, ast.Assign | ast.AnnAssign) and "models." in ast.unparse(each)
        for each in node.body
    )


def fewer(paths: Iterable[Path]) -> list[Path]:
    listed = sorted(set(paths))
    return listed if len(listed) <= _ENOUGH else [one for one in listed if _DOORS.search(str(one))]


def naming(words: re.Pattern[str], paths: Iterable[Path]) -> dict[str, list[Path]]:
    """In which of the files each word stands."""
    found: dict[str, list[Path]] = {}
    for path in paths:
        for word in sorted(set(words.findall(text_of(path)))):
            found.setdefault(word, []).append(path)
    return found


def ticked(paths: Iterable[Path | str]) -> str:
    return ", ".join(f"`{path}`" for path in paths)

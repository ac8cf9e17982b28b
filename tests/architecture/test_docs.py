"""The documents name what there is: files, links between them, and the things that the glossary explains."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

from .sources import MODULES, PACKAGES, ROOT, called_in, nodes_of, parsed

DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
ADDING = (ROOT / "docs/adding.md").read_text(encoding="utf-8")
ARCHITECTURE = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
GLOSSARY = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| ([^|]+) \| ([^|]+) \| `([^`|]+)` \|$", GLOSSARY, re.M)
LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)(?:#[^)]*)?\)")
_FOLDERS = "|".join((*PACKAGES, "tests", "bench", "docs", "templates", "static"))
FILE = re.compile(rf"`((?:{_FOLDERS})/[\w/.\-]+)`")
"""A path from the root."""
NAMED_IN = re.compile(rf"`((?:{_FOLDERS})/[\w/.\-]+\.py)` \(((?:`\w+`(?:, | and )?)+)\)")
"""A module, and behind it in brackets what of it is meant."""
TARGET = re.compile(r"^([a-z][a-z-]*):.* ## ", re.M)
COMMAND = re.compile(r"`(?:[A-Z_]+=\S+ )*make ([a-z-]+)|^ {4}make ([a-z-]+)|^make ([a-z-]+)", re.M)


def top_names(path: Path) -> set[str]:
    """What a module defines for others."""
    names = set()
    for node in parsed(path).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names.update(one.id for one in node.targets if isinstance(one, ast.Name))
    return names


def is_there(place: str) -> bool:
    """`package/module.py: Name`, or a file or folder alone."""
    path, _colon, name = place.partition(": ")
    return (ROOT / path).exists() and (not name or name in top_names(Path(path)))


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_document_links_and_names_only_files_that_exist(path):
    text = path.read_text(encoding="utf-8")
    missing = [link for link in LINK.findall(text) if not (path.parent / link).exists()]
    missing += [name for name in FILE.findall(text) if not (ROOT / name).exists()]
    assert missing == []


def test_what_a_document_names_behind_a_module_stands_in_it():
    meant = [
        (path, name)
        for document in DOCUMENTS
        for path, names in NAMED_IN.findall(document.read_text(encoding="utf-8"))
        for name in re.findall(r"\w+", names.replace(" and ", ", "))
    ]
    assert len(meant) > 10
    assert [
        (path, name)
        for path, name in meant
        if not re.search(rf"\b{name}\b", (ROOT / path).read_text(encoding="utf-8"))
    ] == []


def test_the_readme_has_each_number_that_refuses_a_start():
    numbers = re.compile(r"\bE\d{3}\b")
    given = set(numbers.findall((ROOT / "agentsite/checks.py").read_text(encoding="utf-8")))
    told = set(numbers.findall((ROOT / "README.md").read_text(encoding="utf-8")))
    assert given == told


def made_in(text: str) -> set[str]:
    return {"".join(target) for target in COMMAND.findall(text)}


def test_every_target_that_a_document_names_is_one_and_developers_find_them_all_in_one_place():
    targets = set(TARGET.findall((ROOT / "Makefile").read_text(encoding="utf-8")))
    named = {path.name: made_in(path.read_text(encoding="utf-8")) for path in DOCUMENTS}
    assert {name: made - targets for name, made in named.items() if made - targets} == {}
    assert named["CONTRIBUTING.md"] | {"help", "install", "deploy-check"} >= targets


def test_the_glossary_explains_in_order_what_stands_where_it_says():
    lines = [line for line in GLOSSARY.splitlines() if line.startswith("|")]
    assert len(ROWS) == len(lines) - 2 > 40
    words = [word for word, _meaning, _place in ROWS]
    assert words == sorted(set(words), key=str.lower)
    assert [place for _word, _meaning, place in ROWS if not is_there(place)] == []


def registrations(path: Path) -> set[str]:
    """The functions of other packages that an app calls at its start."""
    ours = [
        node
        for node in nodes_of(path)
        if isinstance(node, ast.ImportFrom)
        and not node.level
        and (node.module or "").partition(".")[0] in {*PACKAGES} - {path.parts[0]}
    ]
    return {one.name for node in ours for one in node.names} & called_in(path)


def test_each_way_in_which_an_app_joins_is_told_of():
    found = set().union(*(registrations(path) for path in MODULES if path.name == "apps.py"))
    assert len(found) > 10
    assert {
        name for name in found if not re.search(rf"`[^`\n]*\b{name}\b[^`\n]*`", ADDING)
    } == set()


def test_the_map_names_each_module_and_no_other():
    there = {str(path) for path in MODULES if path.name not in {"__init__.py", "apps.py"}}
    text = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs/map").glob("*.md"))
    named = set(re.findall(r"^- `([\w/.\-]+\.py)`: ", text, re.M))
    told = {path for path in named if not path.startswith("tests/")}
    assert there ^ told == set(), "`make map` draws it anew"


def test_each_page_is_told_of_where_it_is_drawn():
    views = {
        "/".join(path.parts[:2])
        for path in MODULES
        if path.name != "__init__.py" and path.parts[1] in {"views", "views.py"}
    }
    assert len(views) > 5
    assert {place for place in views if f"`{place}" not in ARCHITECTURE} == set()


@pytest.mark.parametrize("place", ["harness/nothing.py", "harness/events.py: Nothing"])
def test_what_is_gone_would_be_found(place):
    assert not is_there(place)
    assert is_there("harness/events.py: UserMessage")


@pytest.mark.parametrize("document", ["README.md", "docs/architecture.md"])
def test_readers_are_led_to_the_glossary(document):
    assert "glossary.md)" in (ROOT / document).read_text(encoding="utf-8")


def floors_held() -> list[set[str]]:
    """From the top, as import-linter holds them."""
    configured = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = configured["tool"]["importlinter"]["contracts"]
    layers = next(each["layers"] for each in contracts if each["type"] == "layers")
    return [set(layer.split(" | ")) for layer in layers]


def rows_of_floors() -> list[list[str]]:
    """The packages of each row of the map."""
    rows = re.search(r"^\|---\|---\|\n((?:\|.*\n)+)", ARCHITECTURE, re.M)
    assert rows is not None
    return [re.findall(r"`(\w+)`", row.split("|")[1]) for row in rows[1].splitlines()]


def test_the_table_of_floors_names_each_package_once_in_the_order_that_is_held():
    floors = floors_held()
    named = [name for row in rows_of_floors() for name in row]
    heights = [at for name in named for at, floor in enumerate(floors) if name in floor]

    assert sorted(named) == sorted(name for floor in floors for name in floor)
    assert heights == sorted(heights)


def test_below_the_table_stands_which_of_its_rows_are_one_floor():
    said = re.search(r"^Some rows are of one floor[^.]*\.$", ARCHITECTURE, re.M)
    assert said is not None
    listed = [re.findall(r"`(\w+)`", part) for part in said[0].split(";")]
    rows = [[row for row in rows_of_floors() if floor >= set(row)] for floor in floors_held()]
    alone = [[row[0] for row in of if len(row) == 1] for of in rows if len(of) > 1]
    assert sorted(map(sorted, listed)) == sorted(map(sorted, alone))

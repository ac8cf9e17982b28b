"""Each contract about imports is broken by a planted import, and kept by the code as it is.

What is planted is read off the contracts in pyproject.toml, so that a new floor is tried as well. A run
of the linter reads a copy of the code; whichever import it does not name is one that `make check` lets be.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from itertools import pairwise, permutations
from pathlib import Path

import pytest

from .sources import PACKAGES, ROOT

LINTER = Path(sys.executable).with_name("lint-imports")
CONTRACTS = {
    contract["name"]: contract
    for contract in tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
        "importlinter"
    ]["contracts"]
}
FLOORS = [[name.strip() for name in floor.split("|")] for floor in CONTRACTS["Floors"]["layers"]]
Plants = list[tuple[str, str]]
"""Who imports, and what: names of packages or modules."""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All that the linter reads."""
    copy = tmp_path_factory.mktemp("tree")
    shutil.copy(ROOT / "pyproject.toml", copy)
    for path in (path for package in PACKAGES for path in (ROOT / package).rglob("*.py")):
        there = copy / path.relative_to(ROOT)
        there.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, there)
    return copy


@pytest.fixture
def plant(tree: Path) -> Iterator[Plants]:
    """Pairs put in here have their first import their second when `linted` runs."""
    plants: Plants = []
    yield plants
    for path in tree.rglob("planted.py"):
        path.unlink()


def linted(tree: Path, plants: Plants) -> subprocess.CompletedProcess[str]:
    for package, imported in plants:
        with (tree / package.replace(".", "/") / "planted.py").open("a") as file:
            file.write(f"import {imported}\n")
    return subprocess.run(
        [LINTER, "--no-cache"], cwd=tree, capture_output=True, text=True, timeout=120, check=False
    )


def unnoticed(tree: Path, plants: Plants, contract: str) -> Plants:
    """Which of them broke no contract of this name."""
    ran = linted(tree, plants)
    assert ran.returncode == 1, ran.stdout
    assert f"{contract} BROKEN" in ran.stdout, ran.stdout
    _all, _title, broken = ran.stdout.partition(f"\n{contract}\n{'-' * len(contract)}\n")
    return [
        (package, imported)
        for package, imported in plants
        if f"{package}.planted -> {imported} (" not in broken
    ]


def test_the_code_as_it_is_keeps_every_contract(tree):
    ran = linted(tree, [])
    assert ran.returncode == 0, ran.stdout
    assert ran.stdout.count(" KEPT") == len(CONTRACTS) == 3


def test_every_package_stands_on_a_floor():
    assert sorted(name for floor in FLOORS for name in floor) == sorted(PACKAGES)


def test_no_package_may_import_the_floor_above(tree, plant):
    plant += [
        (below, above) for upper, lower in pairwise(FLOORS) for below in lower for above in upper
    ]
    assert ("keeping", "chat") in plant
    assert unnoticed(tree, plant, "Floors") == []


def test_no_package_may_import_the_start_up_from_however_far_below(tree, plant):
    plant += [("harness", "agentsite"), ("accounts", "agentsite"), ("v1", "agentsite")]
    assert unnoticed(tree, plant, "Floors") == []


def test_packages_of_one_floor_may_not_import_each_other(tree, plant):
    plant += [pair for floor in FLOORS for pair in permutations(floor, 2)]
    assert {("api", "agui"), ("spending", "workers"), ("net", "harness")} <= set(plant)
    assert unnoticed(tree, plant, "Floors") == []


def test_actions_may_not_import_what_translates_for_people(tree, plant):
    kinds = CONTRACTS["Actions know no pages"]["forbidden_modules"]
    for kind in (kind.removeprefix("*.") for kind in kinds):
        found = [
            package
            for package in PACKAGES
            if (ROOT / package / "actions").is_dir()
            and ((ROOT / package / kind).is_dir() or (ROOT / package / f"{kind}.py").is_file())
        ]
        assert found, f"no package has any {kind}, so nothing is forbidden"
        plant += [(f"{package}.actions", f"{package}.{kind}") for package in found]
    assert ("approvals.actions", "approvals.views") in plant
    assert unnoticed(tree, plant, "Actions know no pages") == []


def test_plain_python_may_not_import_a_framework(tree, plant):
    contract = CONTRACTS["Plain Python stays plain"]
    plant += [
        (package, framework)
        for package in contract["source_modules"]
        for framework in contract["forbidden_modules"]
    ]
    assert ("harness", "django") in plant
    assert unnoticed(tree, plant, "Plain Python stays plain") == []

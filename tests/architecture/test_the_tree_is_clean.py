"""What no file of the project may hold, and what package files hold: nothing."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.architecture.sources import PACKAGES, ROOT

# Put together here, because this file is searched as well.
_HOSTS = [
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("python" + "hosted", "org"),
        ("registry", "npmjs", "org"),
        ("registry", "yarnpkg", "com"),
        ("unpkg", "com"),
        ("jsdelivr", "net"),
        ("cdnjs", "cloudflare", "com"),
    )
]
_HOST = re.compile("|".join(re.escape(host) for host in _HOSTS), re.IGNORECASE)
_SLASH = "/"
_MACHINE_PATH = re.compile(
    # The home that a sandbox shows is nobody's.
    rf"(?<![\w.\-{_SLASH}]){_SLASH}(?:work|home(?!{_SLASH}agent\")|Users|tmp{_SLASH}brief){_SLASH}[\w.\-]"
    rf"|(?<![\w.\-{_SLASH}]){_SLASH}root{_SLASH}\.?\w"
)
# A row of a list that readers do not have, in prose or behind a test's name.
_ROW = re.compile(r"(?<![\w\-])S-\d|\bdef test\w*_s\d+\(")

BINARY = {".png", ".jpg", ".ico", ".woff2", ".gz", ".mo"}


def tracked_files() -> list[Path]:
    """The files under version control; outside a checkout, all that would be."""
    if (ROOT / ".git").exists():
        listed = subprocess.run(
            ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
        ).stdout
        paths = [ROOT / name for name in listed.split("\0") if name]
        return [path for path in paths if path.is_file()]
    kept_out = {".venv", ".venv-strands", "data", "staticfiles", "__pycache__", "test-results"}
    return [
        path
        for path in ROOT.rglob("*")
        if path.is_file() and not kept_out.intersection(path.relative_to(ROOT).parts)
    ]


def lines_with(pattern: re.Pattern[str]) -> list[str]:
    found = []
    for path in tracked_files():
        if path.suffix in BINARY:
            continue
        text = path.read_text(encoding="utf-8")
        for number, line in enumerate(text.splitlines(), start=1):
            if pattern.search(line):
                found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()[:120]}")
    return found


@pytest.mark.parametrize("host", _HOSTS)
def test_a_registry_host_would_be_found(host):
    assert _HOST.search(f"--index-url https://{host}/simple")


@pytest.mark.parametrize("name", ["work", "home", "root", "Users"])
def test_a_path_of_somebodys_machine_would_be_found(name):
    assert _MACHINE_PATH.search(f'open("/{name}/somebody/file")')


@pytest.mark.parametrize(
    "text", ["https://example.org/work/", "a/work/b", "/v1/messages", "./root/x", "/c/<uid>/"]
)
def test_other_paths_are_let_be(text):
    assert not _MACHINE_PATH.search(text)


def test_no_file_names_a_package_registry():
    assert not lines_with(_HOST)


def test_no_file_names_a_path_of_somebodys_machine():
    assert not lines_with(_MACHINE_PATH)


@pytest.mark.parametrize("row", ["(S-{})", "S-{}, of old", "async def test_it_runs_s{}("])
def test_a_row_of_a_list_nobody_has_would_be_found(row):
    assert _ROW.search(row.format(22))


@pytest.mark.parametrize(
    "text", ["AES-256", "claude-opus-S-5", "def test_ends_in_s()", "# noqa: S101"]
)
def test_other_numbers_are_let_be(text):
    assert not _ROW.search(text)


def test_no_file_refers_to_a_row_of_a_list_nobody_has():
    """What matters about it is said in words."""
    assert not lines_with(_ROW)


def test_package_files_are_empty():
    """Only packages of models gather their names there, because Django looks for them there."""
    full = [
        str(path.relative_to(ROOT))
        for path in tracked_files()
        if path.name == "__init__.py" and path.stat().st_size and path.parent.name != "models"
    ]
    assert not full


def test_every_package_is_a_floor_and_walked_by_the_rules():
    found = {file.parent.name for file in ROOT.glob("*/__init__.py")}
    assert found - {"bench", "tests"} == set(PACKAGES)

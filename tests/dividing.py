"""How tests are divided among processes: by file, and by folder where a folder's tests share servers.

What takes longest begins first, so that no process works alone at the end. Which tests there are is pytest's.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from xdist.scheduler import LoadFileScheduling

ROOT = Path(__file__).parents[1]

LONG = (
    "scale",
    "journeys",
    "attack_web",
    "killing",
    "contract",
    "seed_protocol",
    "commandline",
    "architecture",
)
"""Folders whose tests start processes or ask every address, the longest first. pytest-django has what needs
no database last."""
TOGETHER = ("scale", "contract", "seed_protocol", "commandline", "architecture")
"""Folders with servers of their own or a parsed product, which each process that has one of their files would
make again."""


class Division(LoadFileScheduling):
    """xdist's, by file, but for whole folders."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        folder = folder_of(file)
        return f"tests/{folder}" if folder in TOGETHER else file


def folder_of(file: str) -> str:
    """The folder below `tests` in which it lies, or nothing."""
    parts = file.split("/")
    return parts[1] if len(parts) > 2 and parts[0] == "tests" else ""


def longest_first(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: _rank(item.path))


def _rank(path: Path) -> int:
    folder = folder_of(path.relative_to(ROOT).as_posix()) if path.is_relative_to(ROOT) else ""
    return LONG.index(folder) if folder in LONG else len(LONG)

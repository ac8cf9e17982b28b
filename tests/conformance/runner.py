"""The official runner itself: how it is had from npm and called, and what it says that a revision requires.

It goes into a folder of the cache with the Node that it needs; nothing of it comes into the project.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import yaml

RUNNER, VERSION = "@modelcontextprotocol/conformance", "0.2.0-alpha.12"
NODE = "node@22"
FOLDER = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "agentsite-conformance"
REVISIONS = ("2026-07-28", "2025-11-25")


@dataclass(frozen=True, slots=True)
class Result:
    scenario: str
    passed: int
    failed: int


@dataclass(frozen=True, slots=True)
class Runner:
    folder: Path
    """Where npm put it."""

    @property
    def call(self) -> list[str]:
        modules = self.folder / "node_modules"
        return [str(modules / ".bin" / "node"), str(modules / RUNNER / "dist" / "index.js")]

    def asked_of_clients(self, revision: str) -> list[str]:
        """What the revision requires of them, then what the runner runs beside that and does not score."""
        file = self.folder / "node_modules" / RUNNER / "requirements" / f"{revision}.yaml"
        held = yaml.safe_load(file.read_text(encoding="utf-8"))
        beside = [each["scenario"] for each in held["not_scored"] if each["leg"] == "client"]
        return [*held["client"], *beside]


def found() -> Runner:
    """Raises SystemExit where there is no npm to have it from."""
    npm = shutil.which("npm")
    if npm is None:
        print("There is no npm here, from which the official runner comes.")
        raise SystemExit(2)
    runner = Runner(FOLDER / VERSION)
    runner.folder.mkdir(parents=True, exist_ok=True)
    if not Path(runner.call[-1]).exists():
        packages = (f"{RUNNER}@{VERSION}", NODE)
        command = [npm, "install", "--silent", "--prefix", str(runner.folder), *packages]
        subprocess.run(command, check=True)
    return runner

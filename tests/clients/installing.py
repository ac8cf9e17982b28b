"""Folders with clients of other versions and languages in them, each pinned.

They come through pip and npm as these are set up on this machine; nothing is kept afterwards but
what those two cache themselves.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

NODE_PACKAGES = ("@anthropic-ai/sdk@1.12.0", "@ag-ui/client@1.0.0")
MCP_PACKAGES = (
    "@modelcontextprotocol/sdk@1.32.2",
    "@modelcontextprotocol/client@2.4.0",
    "@modelcontextprotocol/inspector@2.12.0",
    # Newer than what machines have.
    "node@22",
)
PATIENCE = 600.0
"""Seconds for an installation, where the line is slow."""


class Missing(Exception):
    """What a client needs is not on this machine, or could not be had."""


def python_with(folder: Path, *requirements: str) -> Path:
    """The interpreter of an environment that has these packages and nothing else."""
    _run([sys.executable, "-m", "venv", str(folder)], folder.parent)
    interpreter = folder / "bin" / "python"
    quietly = ["--quiet", "--disable-pip-version-check"]
    _run([str(interpreter), "-m", "pip", "install", *quietly, *requirements], folder.parent)
    return interpreter


def node_with(folder: Path, *packages: str) -> Path:
    """Node, for scripts of `folder`, which has these packages."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        raise Missing("node and npm are needed and are not on this machine")
    folder.mkdir(exist_ok=True)
    (folder / "package.json").write_text('{"private": true, "type": "module"}', encoding="utf-8")
    quietly = ["--silent", "--no-audit", "--no-fund"]
    _run([npm, "install", *quietly, *packages], folder)
    return Path(node)


def _run(command: list[str], folder: Path) -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    what = Path(command[0]).name
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=kept,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Missing(f"{what} did not end within {PATIENCE:.0f} seconds") from None
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["no reason was given"]
        raise Missing(f"{what} could not install: {lines[-1]}")

"""Packages of others that were fetched once into a folder of their own: which they are, each with the digest
that its registry vouches for, and whether the folder still holds what was put there.

Fetching them, and what they are for, is the part of who has them: `mcpservers.packages`,
`skills_app.installing`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

RECORD = "installed.json"
"""Beside the files: what is there, and how it was."""


class Part(BaseModel):
    """One of the packages that came, at its exact version."""

    model_config = ConfigDict(frozen=True)

    name: str
    version: str
    digest: str
    """As the registry gives it."""


def plain_name(name: str) -> str:
    """Of a Python package, as indexes compare it."""
    return re.sub(r"[._-]+", "-", name).lower()


def part_of(reported: Mapping[str, Any]) -> Part:
    """What pip's `--report` says of one package. Raises ValueError, with its name where it has no digest."""
    name, version = reported["metadata"]["name"], reported["metadata"]["version"]
    digest = reported["download_info"].get("archive_info", {}).get("hashes", {}).get("sha256")
    if not digest:
        raise ValueError(name)
    return Part(name=plain_name(name), version=version, digest=f"sha256:{digest}")


def tree_of(folder: Path) -> str:
    """A digest of every file there by its path and content, and of every link; of the record itself not."""
    lines = []
    for place, folders, files in os.walk(folder):
        for name in [*files, *(one for one in folders if Path(place, one).is_symlink())]:
            path = Path(place, name)
            inside = path.relative_to(folder).as_posix()
            if inside == RECORD:
                continue
            if path.is_symlink():
                lines.append(f"{inside} -> {path.readlink()}")
                continue
            digest = sha256()
            with path.open("rb") as held:
                while piece := held.read(1 << 20):
                    digest.update(piece)
            lines.append(f"{inside} {digest.hexdigest()}")
    return sha256("\n".join(sorted(lines)).encode()).hexdigest()


def facts_of(folder: Path) -> str:
    """A digest of what the file system says of every file there, the record among them: it differs once
    anybody wrote one, whatever times they gave it. It reads no file."""
    lines = []
    for place, folders, files in os.walk(folder):
        for name in (*files, *folders):
            path = os.path.join(place, name)  # noqa: PTH118 - thousands of them, before each run
            said = os.lstat(path)
            lines.append(f"{path} {said.st_ino} {said.st_mode} {said.st_size} {said.st_ctime_ns}")
    return sha256("\n".join(sorted(lines)).encode(errors="surrogateescape")).hexdigest()

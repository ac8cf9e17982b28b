"""What of this host sandboxes may open and what they never may, from the settings.

The rule itself is `sandbox.roots`'.
"""

from __future__ import annotations

import os
import pwd
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from urllib.parse import parse_qs, urlsplit

from django.conf import settings

from sandbox.roots import Roots, is_of_system

BESIDE = ("-wal", "-shm", "-journal")
"""How the files end that SQLite keeps beside its own, with what was written last."""


def mount_roots() -> Roots:
    return Roots(
        allowed=tuple(Path(root) for root in settings.AGENTSITE_MOUNT_ROOTS),
        own=tuple(dict.fromkeys(_own())),
        code=tuple(dict.fromkeys(_code())),
        taken_in=tuple(dict.fromkeys(_taken_in())),
    )


def _own() -> Iterator[Path]:
    yield Path(settings.AGENTSITE_DATA_DIR)
    if settings.AGENTSITE_ENV_FILE_PATH is not None:
        yield Path(settings.AGENTSITE_ENV_FILE_PATH)
    for database in settings.DATABASES.values():
        for value in (str(database.get("NAME", "")), str(database.get("HOST", ""))):
            if value.startswith("/"):  # a file, or the folder of a socket
                yield Path(value)
                yield from (Path(f"{value}{ending}") for ending in BESIDE)
    for url in (settings.AGENTSITE_REDIS_URL, settings.AGENTSITE_BROKER_URL):
        parts = urlsplit(url)
        if parts.scheme in {"unix", "redis+socket"}:
            yield Path(parts.path or parse_qs(parts.query).get("path", ["/run"])[0])
    yield from map(Path, ("/run", "/var/run", "/proc", "/var/lib/docker", "/root"))
    for home in (os.environ.get("HOME", ""), _home()):
        if home.startswith("/") and home != "/" and not _is_of_system(home):
            yield Path(home)


def _is_of_system(home: str) -> bool:
    """Users of services have such homes; nothing of theirs lies there."""
    return is_of_system(home, PurePosixPath(os.path.realpath(home)))


def _home() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_dir
    except KeyError:
        return ""


def _code() -> Iterator[Path]:
    yield Path(settings.BASE_DIR)
    yield from map(
        Path, (sys.prefix, sysconfig.get_path("stdlib"), os.path.realpath(sys.executable))
    )
    if not _is_of_system(f"{sys.base_prefix}/"):
        yield Path(sys.base_prefix)
    yield from _folders(settings.AGENTSITE_STRANDS_DIR, settings.AGENTSITE_SKILLS_INDEX)


def _taken_in() -> Iterator[Path]:
    yield from _folders(
        settings.AGENTSITE_SKILLS_DIR,
        *settings.AGENTSITE_SKILLS_FOLDERS,
        *settings.AGENTSITE_WATCHED_DOCUMENTS.values(),
    )


def _folders(*named: str) -> Iterator[Path]:
    for folder in named:
        if folder and "://" not in folder:
            yield Path(folder).expanduser()

"""The files of a version as they are stored, and laid out as the folder that commands see read-only.

The tables are the truth. A folder is named by the version's digest, so that it never changes once it is
there; of a version that was withdrawn or stopped it is emptied in place, for commands that see it already.
"""

from __future__ import annotations

import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from django.conf import settings
from django.utils.translation import gettext as _

from harness.errors import Conflict, NotFound
from tools_app.confinement import shown

from .folder import SkillFolder, digest_of, read_folder, sha256_of
from .models import SkillFile, SkillVersion
from .names import SKILL


def files_of(version: SkillVersion) -> dict[str, bytes]:
    """By path. Raises Conflict where what is stored is not what was: one changed byte refuses all."""
    rows = list(version.files.select_related("content"))
    _require_same(version, {row.path: row.content_id for row in rows})
    return {row.path: _checked(row) for row in rows}


def file_of(version: SkillVersion, path: str) -> bytes:
    """Raises NotFound, and Conflict as `files_of`."""
    _require_same(version, dict(version.files.values_list("path", "content_id")))
    row = version.files.select_related("content").filter(path=path).first()
    if row is None:
        raise NotFound(
            _("The skill has no file “%(path)s”.") % {"path": shown(path)},
            hint=_("read_skill without a path lists its files."),
        )
    return _checked(row)


def folder_of(version: SkillVersion) -> SkillFolder:
    """Raises Conflict as `files_of`."""
    return read_folder(files_of(version), called=version.skill.name)


def place_of(version: SkillVersion) -> Path:
    return Path(settings.AGENTSITE_DATA_DIR) / "skills" / f"{version.digest}-{version.pk}"


def lay_out(version: SkillVersion) -> Path:
    """The folder with its files, put there at once if it is not. Raises Conflict as `files_of`."""
    target = place_of(version)
    if (target / SKILL).exists():
        return target
    target.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=".fresh-", dir=target.parent))
    try:
        for path, data in files_of(version).items():
            file = fresh / path
            file.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
            file.write_bytes(data)
            file.chmod(0o755 if data.startswith(b"#!") else 0o644)
        fresh.chmod(0o755)
        _put(fresh, target)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return target


def _put(fresh: Path, target: Path) -> None:
    """In one step; entry by entry, SKILL.md last, where the folder is there and was emptied: commands that
    run may have it before their eyes."""
    if not target.is_dir():
        with suppress(OSError):  # another process may be quicker
            fresh.rename(target)
            return
    for entry in sorted(fresh.iterdir(), key=lambda entry: entry.name == SKILL):
        if not (target / entry.name).exists():
            with suppress(OSError):
                entry.rename(target / entry.name)


def empty(version: SkillVersion) -> None:
    """Take its files away on this host, and keep the folder: commands that run see it empty."""
    target = place_of(version)
    if not target.is_dir():
        return
    for entry in target.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            entry.unlink(missing_ok=True)


def _require_same(version: SkillVersion, files: dict[str, str]) -> None:
    if digest_of(files) != version.digest:
        raise Conflict(
            _("The files of the skill are not those that were stored."),
            hint=_("Tell whoever runs this server; the skill is not used."),
        )


def _checked(row: SkillFile) -> bytes:
    data = bytes(row.content.content)
    if sha256_of(data) != row.content_id:
        raise Conflict(
            _("The file “%(path)s” of the skill is not what was stored.")
            % {"path": shown(row.path)},
            hint=_("Tell whoever runs this server; the skill is not used."),
        )
    return data

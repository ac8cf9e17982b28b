"""Reads a skill from where its author has it: a folder or a ZIP file of this machine.

Nothing is followed and nothing waited for: links, devices and pipes are refused. Who may store what was
read is asked by the actions.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from django.conf import settings
from django.utils.translation import gettext as _

from harness.errors import Invalid, NotFound, TooLarge

from .folder import SkillFolder, read_folder, require_limits
from .packing import unpack

LEFT_OUT = frozenset({".git", "__pycache__", ".DS_Store"})
"""What tools leave in an author's folder, and no skill is made of."""
MOST_ENTRIES = 10_000
"""Names that are looked at in a folder before it is refused."""


def read_place(place: Path) -> SkillFolder:
    """The skill that lies there. Raises NotFound, and Invalid and TooLarge as `read_folder` and `unpack`."""
    try:
        kind = place.stat().st_mode
        if stat.S_ISDIR(kind):
            return read_folder(_files_below(place), called=place.resolve().name)
        if not stat.S_ISREG(kind):
            raise _refused(place, _("It is neither a folder nor a file."))
        most = settings.AGENTSITE_SKILL_BYTES
        with place.open("rb") as file:
            data = file.read(most + 1)
    except OSError as problem:
        raise NotFound(
            f"{place}: {problem.strerror}", hint=_("Name a skill’s folder, or a ZIP file of it.")
        ) from problem
    if len(data) > most:
        raise TooLarge(_("The file is larger than %(most)d bytes.") % {"most": most}, field="files")
    called, files = unpack(data)
    return read_folder(files, called=called)


def _files_below(folder: Path) -> dict[str, bytes]:
    found: dict[str, Path] = {}
    sizes: dict[str, int] = {}
    waiting, looked_at = [(folder, "")], 0
    while waiting:
        place, above = waiting.pop()
        with os.scandir(place) as entries:
            for entry in entries:
                looked_at += 1
                if looked_at > MOST_ENTRIES:
                    raise TooLarge(_("The folder holds too many files."), field="files")
                if entry.name in LEFT_OUT:
                    continue
                path = f"{above}{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    waiting.append((Path(entry.path), f"{path}/"))
                elif entry.is_file(follow_symlinks=False):
                    found[path] = Path(entry.path)
                    sizes[path] = entry.stat(follow_symlinks=False).st_size
                else:
                    raise _refused(Path(path), _("It is a link or a device."))
    require_limits(sizes)
    return {path: _read(found[path], sizes[path]) for path in sorted(found)}


def _read(file: Path, size: int) -> bytes:
    """What stood there when its size was asked. Raises Invalid for a link that took its place, and for a
    file that grows."""
    descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as opened:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise _refused(file, _("It is a link or a device."))
        data = opened.read(size + 1)
    if len(data) > size:
        raise _refused(file, _("It is being written."))
    return data


def _refused(place: Path, why: str) -> Invalid:
    return Invalid(
        _("“%(path)s” cannot be read as a skill. %(why)s") % {"path": place, "why": why},
        field="files",
        hint=_("Leave it out."),
    )

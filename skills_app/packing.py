"""A skill's folder as one ZIP file, and back, also of a tar archive: the same folder gives the same bytes,
and nothing of a file that is not wholly sound is handed on.
"""

from __future__ import annotations

import io
import stat
import zipfile
import zlib
from collections.abc import Mapping

from django.conf import settings
from django.utils.translation import gettext as _

from harness.errors import Invalid, TooLarge

from .folder import require_limits
from .names import SKILL
from .tarballs import is_tar, read_tar

EPOCH = (1980, 1, 1, 0, 0, 0)
"""The first moment that the format knows: when a folder was packed is no part of it."""
RATIO = 200
"""How much larger a file may be than what it is packed to; more is a bomb."""
SMALL = 100_000
"""Bytes below which no ratio is asked."""
_PACKED = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
"""What `zipfile` unpacks piece by piece; of anything else it unpacks whatever there is at once."""


def pack(name: str, files: Mapping[str, bytes]) -> bytes:
    """One folder of this name."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(files):
            entry = zipfile.ZipInfo(f"{name}/{path}", EPOCH)
            entry.external_attr = (stat.S_IFREG | 0o644) << 16
            entry.create_system = 3
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, files[path])
    return packed.getvalue()


def unpack(data: bytes) -> tuple[str, dict[str, bytes]]:
    """The folder's name, empty where the files stand at the top, and the files. Raises as `files_in`."""
    return below_its_folder(files_in(data))


def files_in(data: bytes) -> dict[str, bytes]:
    """The files of an archive, by the paths that it gives them.

    Raises Invalid for what is no sound ZIP file or tar archive, holds links, encrypted files or a name
    twice, and TooLarge past the limits of a skill; sizes are judged by what comes out, not by what the file
    says.
    """
    if is_tar(data):
        listed = read_tar(data)
        files = dict(listed)
        if len(files) < len(listed):
            raise _refused(_("It holds a file twice."))
        require_limits({path: len(content) for path, content in files.items()})
        return files
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = [entry for entry in archive.infolist() if not entry.is_dir()]
            _require_sound(entries)
            return _read(archive, entries)
    except (
        zipfile.BadZipFile,
        NotImplementedError,
        EOFError,
        RuntimeError,
        OSError,
        ValueError,
    ) as problem:
        raise _refused(_("It is broken, or no ZIP file.")) from problem
    except zlib.error as problem:
        raise _refused(_("It is broken.")) from problem


def _require_sound(entries: list[zipfile.ZipInfo]) -> None:
    require_limits({str(number): 0 for number, _entry in enumerate(entries)})
    names: set[str] = set()
    for entry in entries:
        kind = stat.S_IFMT(entry.external_attr >> 16)
        if kind not in {0, stat.S_IFREG}:
            raise _refused(_("It holds a link or a device."))
        if entry.flag_bits & 0x1:
            raise _refused(_("It holds an encrypted file."))
        if entry.compress_type not in _PACKED:
            raise _refused(_("It is packed in another way than “deflate”."))
        if entry.filename in names:
            raise _refused(_("It holds a file twice."))
        names.add(entry.filename)


def _read(archive: zipfile.ZipFile, entries: list[zipfile.ZipInfo]) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    left = settings.AGENTSITE_SKILL_BYTES
    for entry in entries:
        most = left
        if entry.file_size > SMALL:
            most = min(left, entry.compress_size * RATIO)
        with archive.open(entry) as stream:
            content = stream.read(most + 1)
        if len(content) > most:
            raise TooLarge(
                _("What the file unpacks to is too large."),
                field="files",
                hint=_("A skill holds at most %(most)d bytes.")
                % {"most": settings.AGENTSITE_SKILL_BYTES},
            )
        left -= len(content)
        found[entry.filename] = content
    return found


def below_its_folder(files: dict[str, bytes]) -> tuple[str, dict[str, bytes]]:
    """The folder's name, empty where SKILL.md stands at the top, and the files by their paths in it. Raises
    Invalid. Packed files of other systems hold their own notes beside the folder; those are left out."""
    files = {path: data for path, data in files.items() if not path.startswith("__MACOSX/")}
    if SKILL in files:
        return "", files
    tops = {path.partition("/")[0] for path in files}
    if len(tops) == 1 and f"{next(iter(tops))}/{SKILL}" in files:
        top = next(iter(tops))
        return top, {path.removeprefix(f"{top}/"): data for path, data in files.items()}
    raise _refused(_("It holds no SKILL.md at its top or in its one folder."))


def _refused(why: str) -> Invalid:
    return Invalid(
        _("The file cannot be taken as a skill. %(why)s") % {"why": why},
        field="files",
        hint=_("Pack the skill’s folder again as a ZIP file."),
    )

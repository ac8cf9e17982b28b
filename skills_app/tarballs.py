"""A skill's folder as a tar archive, plain or packed by gzip: read strictly, one pass, bounded by what a
skill may hold.

Plain files and folders alone; what else the format knows is refused. Its own reading, since the standard
library's searches headers with expressions that run away.
"""

from __future__ import annotations

import zlib

from django.conf import settings
from django.utils.translation import gettext as _

from harness.errors import Invalid, TooLarge
from reading.digits import digits_of, is_digits

GZIP = b"\x1f\x8b"
BLOCK = 512
MOST_NOTES = 64 * 1024
"""Bytes of what stands about one file."""
_FILE, _FOLDER = frozenset({b"0", b"\0"}), b"5"
_NOTES, _NOTES_OF_ALL, _LONG_NAME = b"x", b"g", b"L"


def is_tar(data: bytes) -> bool:
    return data.startswith(GZIP) or data[257:262] == b"ustar"


def read_tar(data: bytes) -> list[tuple[str, bytes]]:
    """Paths and contents, in the order of the archive. Raises Invalid and TooLarge."""
    most = settings.AGENTSITE_SKILL_BYTES
    entries = settings.AGENTSITE_SKILL_FILES * 4
    if data.startswith(GZIP):
        data = _unpacked(data, most + (entries + 20) * 2 * BLOCK)
    found: list[tuple[str, bytes]] = []
    place, name, count = 0, "", 0
    while (head := data[place : place + BLOCK]).strip(b"\0"):
        count += 1
        if count > entries:
            raise TooLarge(
                _("The archive holds too many entries."),
                field="files",
                hint=_("Leave out what the skill does not need."),
            )
        size, kind = _read_head(head)
        place += BLOCK
        content = data[place : place + size]
        if len(content) < size:
            raise _broken()
        place += -(-size // BLOCK) * BLOCK
        if kind in {_NOTES, _LONG_NAME, _NOTES_OF_ALL} and size > MOST_NOTES:
            raise _broken()
        if kind == _NOTES:
            name = _path_in(content) or name
        elif kind == _LONG_NAME:
            name = _text(content)
        elif kind == _NOTES_OF_ALL:
            if _path_in(content):
                raise _broken()
        else:
            path, name = (name or _name_in(head)).removeprefix("./"), ""
            if kind in _FILE and not path.endswith("/"):
                found.append((path, content))
            elif kind != _FOLDER:
                raise _refused(_("It holds a link or a device."))
    if not found or data[place:].strip(b"\0"):
        raise _broken()
    return found


def _unpacked(data: bytes, most: int) -> bytes:
    """One member and nothing behind it, never more than `most`."""
    stream = zlib.decompressobj(wbits=31)
    try:
        content = stream.decompress(data, most + 1)
    except zlib.error as problem:
        raise _broken() from problem
    if len(content) > most:
        raise TooLarge(
            _("What the file unpacks to is too large."),
            field="files",
            hint=_("A skill holds at most %(most)d bytes.")
            % {"most": settings.AGENTSITE_SKILL_BYTES},
        )
    if not stream.eof or stream.unused_data:
        raise _broken()
    return content


def _read_head(head: bytes) -> tuple[int, bytes]:
    """Size and kind of an entry."""
    if len(head) < BLOCK or _octal(head[148:156]) != sum(head) - sum(head[148:156]) + 8 * 32:
        raise _broken()
    return _octal(head[124:136]), head[156:157]


def _octal(field: bytes) -> int:
    number = digits_of(field.strip(b"\0 "), 8, longest=len(field))
    if number is None:
        raise _broken()
    return number


def _name_in(head: bytes) -> str:
    name, above = _text(head[:100]), _text(head[345:500]) if head[257:263] == b"ustar\0" else ""
    return f"{above}/{name}" if above else name


def _path_in(notes: bytes) -> str:
    """What lines `<length> <key>=<value>` say of the path. Those that change what a file is are refused."""
    path, place = "", 0
    while place < len(notes):
        length_end = notes.find(b" ", place, place + 10)
        digits = notes[place:length_end] if length_end > 0 else b""
        end = place + int(digits) if is_digits(digits) else 0
        if end <= length_end or end > len(notes) or notes[end - 1 : end] != b"\n":
            raise _broken()
        key, _equals, value = notes[length_end + 1 : end - 1].partition(b"=")
        if key == b"path":
            path = _text(value)
        elif key in {b"size", b"linkpath"} or key.startswith(b"GNU."):
            raise _refused(_("It holds a file of a kind that no skill needs."))
        place = end
    return path


def _text(field: bytes) -> str:
    try:
        return field.partition(b"\0")[0].decode()
    except UnicodeDecodeError as problem:
        raise _broken() from problem


def _broken() -> Invalid:
    return _refused(_("It is broken, or no tar archive."))


def _refused(why: str) -> Invalid:
    return Invalid(
        _("The file cannot be taken as a skill. %(why)s") % {"why": why},
        field="files",
        hint=_("Pack the skill’s folder again as a ZIP file."),
    )

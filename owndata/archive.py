"""A ZIP of all parts, written while it is sent: neither it nor a file of it is ever held whole."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from django.utils.translation import gettext as _

from accounts.models import User

from .parts import File, parts

PIECE = 64 * 1024
"""Bytes of the archive that are gathered before they are given on."""
AT_ONCE = 256 * 1024
"""Characters or bytes of a file that are written at once."""


class _Held:
    """Takes what the ZIP writes, which neither goes back in it nor asks where it is."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self.size = 0

    def write(self, data: bytes) -> int:
        self._pieces.append(bytes(data))
        self.size += len(data)
        return len(data)

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass

    def take(self) -> bytes:
        taken = b"".join(self._pieces)
        self._pieces, self.size = [], 0
        return taken


def archive_of(user: User) -> Iterator[bytes]:
    """The bytes of the archive, in pieces. What fails in the midst ends it short: then it is no archive."""
    held = _Held()
    now = datetime.now(UTC)
    with ZipFile(held, "w", ZIP_DEFLATED) as archive:
        for file in _files(user):
            about = ZipInfo(file.path, now.timetuple()[:6])
            about.compress_type = ZIP_DEFLATED
            # How long it becomes is not known when it begins.
            with archive.open(about, "w", force_zip64=True) as entry:
                for piece in file.pieces:
                    for begin in range(0, len(piece), AT_ONCE):
                        part = piece[begin : begin + AT_ONCE]
                        entry.write(
                            part if isinstance(part, bytes) else part.encode(errors="replace")
                        )
                    if held.size >= PIECE:
                        yield held.take()
    yield held.take()


def _files(user: User) -> Iterator[File]:
    yield File("README.txt", iter([_words(user)]))
    for part in parts():
        yield from part.files(user)


def _words(user: User) -> str:
    held = "\n".join(f"- {part.words}" for part in parts())
    return _(
        "What this server keeps of %(name)s, as of %(day)s.\n\n%(held)s\n\n"
        "JSON files hold one object, JSONL files one object a line; times are ISO 8601.\n"
        "Not in it: passwords, keys, tokens and other secrets; files of workspaces, which their\n"
        "conversations' pages offer; and what belongs to others or to an organisation.\n"
    ) % {"name": user.username, "day": datetime.now(UTC).date().isoformat(), "held": held}

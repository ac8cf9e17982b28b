"""Gets the files of a Git repository at one commit: one request for that commit's pack, through the judged
client, and Git itself, without a network, to read it.

What a commit holds follows from its name, so every byte is checked by Git. Protocol: Git's “pack protocol,
version 2” over HTTP. Which folders are skills is `looking`'s part.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from django.utils.translation import gettext as _

from harness.errors import Declined, Invalid, TooLarge
from reading.digits import digits_of, number_of

from .fetching import LONGEST_ADDRESS, post

COMMIT = re.compile(r"[0-9a-f]{40}", re.ASCII)
PACK_BYTES = 64 * 1024 * 1024
UNPACKED_BYTES = 256 * 1024 * 1024
MOST_ENTRIES = 20_000
SECONDS = 30
_MEMORY_KB = 1024 * 1024
_LIMITS = f"ulimit -v {_MEMORY_KB}; ulimit -t {SECONDS}; ulimit -f {UNPACKED_BYTES // 512}; "
_PLAIN = ("100644", "100755")


def commit_of(text: str) -> str:
    """The whole name of a commit. Raises Invalid for anything that may come to mean another one."""
    found = text.strip().lower()
    if not COMMIT.fullmatch(found):
        raise Invalid(
            _("A commit is named by all 40 digits of its hash."),
            field="commit",
            hint=_("A branch or tag may lead elsewhere tomorrow; git rev-parse shows the hash."),
        )
    return found


class Snapshot:
    """The files of one commit."""

    def __init__(self, place: Path, entries: dict[str, tuple[str, str, int]]) -> None:
        self._place = place
        self._entries = entries

    @property
    def paths(self) -> list[str]:
        return list(self._entries)

    def size_of(self, path: str) -> int:
        return self._entries[path][2]

    def is_plain(self, path: str) -> bool:
        """No link and no other repository."""
        return self._entries[path][0] in _PLAIN

    def read(self, paths: list[str]) -> dict[str, bytes]:
        """Plain files, byte by byte."""
        asked = "".join(f"{self._entries[path][1]}\n" for path in paths).encode()
        data = _git(self._place, "cat-file", "--batch", given=asked)
        found, place = {}, 0
        for path in paths:
            end = data.index(b"\n", place)
            size = int(data[place:end].rpartition(b" ")[2])
            found[path] = data[end + 1 : end + 1 + size]
            place = end + 1 + size + 1
        return found


class Checkout:
    """With it, a `Snapshot` of this repository at this commit; it is gone afterwards.

    Raises Declined where it cannot be had, Invalid for what is no such commit, TooLarge.
    """

    def __init__(self, address: str, commit: str) -> None:
        self._address, self._commit = address, commit

    def __enter__(self) -> Snapshot:
        if shutil.which("git") is None:
            raise Declined(_("There is no Git on this server."), hint=_("Tell whoever runs it."))
        pack = _fetched_pack(self._address, self._commit)
        self._folder = tempfile.TemporaryDirectory(prefix="agentsite-git-")
        place = Path(self._folder.name)
        try:
            _git(place, "init", "-q", "--bare", ".")
            _git(place, "index-pack", "--stdin", f"--max-input-size={PACK_BYTES}", given=pack)
            listed = _git(place, "ls-tree", "-r", "-z", "-l", "--full-tree", self._commit)
            return Snapshot(place, _entries(listed))
        except BaseException:
            self._folder.cleanup()
            raise

    def __exit__(self, *_what: object) -> None:
        self._folder.cleanup()


def _fetched_pack(address: str, commit: str) -> bytes:
    if len(address) > LONGEST_ADDRESS:
        raise Invalid(_("The address is too long."), field="source")
    lines = ("command=fetch\n", "object-format=sha1\n")
    arguments = ("no-progress\n", f"want {commit}\n", "deepen 1\n", "done\n")
    body = b"".join(map(_line, lines)) + b"0001" + b"".join(map(_line, arguments)) + b"0000"
    answer = post(
        f"{address.removesuffix('/')}/git-upload-pack",
        PACK_BYTES,
        body,
        {
            "Content-Type": "application/x-git-upload-pack-request",
            "Accept": "application/x-git-upload-pack-result",
            "Git-Protocol": "version=2",
        },
    )
    pack = bytearray()
    inside = False
    for line in _lines(answer):
        if not inside and line.startswith(b"ERR "):
            raise _unusable(line[4:200].decode(errors="replace").strip())
        if not inside:
            inside = line == b"packfile\n"
        elif line[:1] == b"\1":
            pack += line[1:]
        elif line[:1] == b"\3":
            raise _unusable(line[1:200].decode(errors="replace").strip())
    if not pack:
        raise _unusable(_("It sent no files."))
    return bytes(pack)


def _line(text: str) -> bytes:
    return f"{len(text) + 4:04x}{text}".encode()


def _lines(answer: bytes) -> Iterator[bytes]:
    place = 0
    while place < len(answer):
        length = digits_of(answer[place : place + 4], 16, longest=4)
        if length is None:
            raise _unusable(_("It does not answer as Git does."))
        if length >= 4:
            if place + length > len(answer):
                raise _unusable(_("It broke off."))
            yield answer[place + 4 : place + length]
        place += max(length, 4)


def _entries(listed: bytes) -> dict[str, tuple[str, str, int]]:
    found: dict[str, tuple[str, str, int]] = {}
    records = listed.split(b"\0")
    if len(records) > MOST_ENTRIES:
        raise TooLarge(
            _("The repository holds more than %(most)d files.") % {"most": MOST_ENTRIES},
            field="source",
        )
    for record in filter(None, records):
        facts, _tab, path = record.partition(b"\t")
        mode, _kind, name, size = facts.split()
        if (written := path.decode(errors="surrogateescape")).isprintable():
            found[written] = (mode.decode(), name.decode(), number_of(size.decode()) or 0)
    return found


def _git(place: Path, *arguments: str, given: bytes = b"") -> bytes:
    """What it wrote, with no settings but ours, within time, memory and room."""
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(place),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_DIR": str(place),
        "LC_ALL": "C.UTF-8",
    }
    with tempfile.TemporaryFile() as written:
        try:
            done = subprocess.run(
                ["/bin/sh", "-c", f'{_LIMITS}exec git "$@"', "git", *arguments],
                cwd=place,
                env=environment,
                input=given,
                stdout=written,
                stderr=subprocess.PIPE,
                timeout=SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise _unusable(_("Reading it takes too long.")) from None
        if done.returncode:
            raise _unusable(done.stderr[-200:].decode(errors="replace").strip())
        written.seek(0)
        return written.read()


def _unusable(why: str) -> Declined:
    return Declined(
        _("The repository cannot be used. %(why)s") % {"why": why[:300]},
        hint=_("Check its address and the commit; of the files at most %(most)d MB may be sent.")
        % {"most": PACK_BYTES // (1024 * 1024)},
    )

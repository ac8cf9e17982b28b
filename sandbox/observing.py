"""What a sandbox does, watched from outside, where nothing in there can touch the record: which files of
folders of the host are opened and written (inotify), which programs run (/proc).

It holds nothing back. A program that ends between two looks at /proc is not seen; what is done with files
that lie in no watched folder neither.
"""

from __future__ import annotations

import ctypes
import os
import select
import shutil
import struct
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from .supervised import children_of

_ACCESS, _MODIFY, _CLOSE_WRITE, _OPEN = 0x1, 0x2, 0x8, 0x20
_MOVED_FROM, _MOVED_TO, _CREATE, _DELETE = 0x40, 0x80, 0x100, 0x200
_OVERFLOW, _IS_FOLDER, _ONLY_FOLDERS = 0x4000, 0x40000000, 0x01000000
_READS = _ACCESS | _OPEN
_WRITES = _MODIFY | _CREATE | _MOVED_TO
_GOES = _DELETE | _MOVED_FROM
_ALL = _READS | _WRITES | _GOES | _CLOSE_WRITE | _ONLY_FOLDERS
_HEAD = struct.Struct("iIII")
_PIECE = 64 * 1024
_WAY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
LOOK_SECONDS = 0.004
"""Between two looks at what runs."""
MOST_FOLDERS = 2_000
MOST_FILES = 2_000
MOST_PROGRAMS = 500
ARGUMENTS = 2_000
"""Bytes of a program's command line that are kept."""
_OWN_SHELL, _OWN_FOLDER = "/bin/bash --norc --noprofile -c ", "/run/agentsite/"
"""How the sandbox's own shells and its way out are started."""
_PATH = "/usr/local/bin:/usr/bin:/bin"


@dataclass(slots=True)
class FilesSeen:
    """Names in the order in which they were first seen."""

    read: dict[str, None] = field(default_factory=dict)
    written: dict[str, None] = field(default_factory=dict)
    removed: dict[str, None] = field(default_factory=dict)
    whole: bool = True
    """False: more happened than could be noted, or nothing could be watched."""


class FileWatch:
    """With it, files below these folders are watched; each is called by the name of its folder, a slash, and
    its path in it. Folders that are made meanwhile are watched from a moment later on. It never leaves these
    folders: whoever writes there may put a link into the place of a folder at any time."""

    def __init__(self, folders: Mapping[str, Path]) -> None:
        self._folders = dict(folders)
        self._seen = FilesSeen()
        self._watched: dict[int, tuple[str, Path, Path]] = {}
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._descriptor = -1
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._look, name="sandbox-files", daemon=True)

    def __enter__(self) -> FilesSeen:
        """Complete once it is left."""
        self._descriptor = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._descriptor < 0:
            self._seen.whole = False
            return self._seen
        for name, folder in self._folders.items():
            self._watch(name, folder, folder)
        self._thread.start()
        return self._seen

    def __exit__(self, *_what: object) -> None:
        if self._descriptor < 0:
            return
        self._end.set()
        self._thread.join()
        os.close(self._descriptor)
        self._descriptor = -1

    def _watch(self, name: str, folder: Path, root: Path) -> None:
        """`root`: the one that nobody in there can replace, from which each part of the way is opened."""
        waiting = [(name, folder)]
        while waiting:
            name, folder = waiting.pop()
            if len(self._watched) >= MOST_FOLDERS:
                self._seen.whole = False
                return
            place = _entered(root, folder)
            if place is None:
                continue  # it is gone already, or a link
            try:
                number = self._libc.inotify_add_watch(
                    self._descriptor, b"/proc/self/fd/%d" % place, ctypes.c_uint32(_ALL)
                )
                if number < 0:
                    self._seen.whole = False  # this host watches no more
                    return
                self._watched[number] = (name, folder, root)
                with suppress(OSError), os.scandir(place) as entries:
                    waiting += [
                        (f"{name}/{_shown(os.fsencode(each.name))}", folder / each.name)
                        for each in entries
                        if each.is_dir(follow_symlinks=False)
                    ]
            finally:
                os.close(place)

    def _look(self) -> None:
        poll = select.poll()
        poll.register(self._descriptor, select.POLLIN)
        last = False
        while not last:
            last = self._end.is_set()  # what happened before is read before it ends
            poll.poll(50 if not last else 0)
            with suppress(BlockingIOError):
                while data := os.read(self._descriptor, _PIECE):
                    self._note(data)

    def _note(self, data: bytes) -> None:
        place = 0
        while place < len(data):
            number, what, _cookie, length = _HEAD.unpack_from(data, place)
            place += _HEAD.size
            raw = data[place : place + length].rstrip(b"\0")
            place += length
            if what & _OVERFLOW:
                self._seen.whole = False
                continue
            known = self._watched.get(number)
            if known is None or not raw:
                continue
            name, folder = f"{known[0]}/{_shown(raw)}", known[1] / os.fsdecode(raw)
            if what & _IS_FOLDER:
                if what & (_CREATE | _MOVED_TO):
                    self._watch(name, folder, known[2])
                continue
            self._keep(name, what)

    def _keep(self, name: str, what: int) -> None:
        seen = self._seen
        if what & _READS:
            _add(seen, seen.read, name)
        if what & _WRITES:
            _add(seen, seen.written, name)
        if what & _GOES:
            _add(seen, seen.removed, name)


def _entered(root: Path, folder: Path) -> int | None:
    """A descriptor of the folder, reached through no link; None: there is no such way."""
    try:
        place = os.open(root, _WAY)
    except OSError:
        return None
    for part in folder.relative_to(root).parts:
        above = place
        try:
            place = os.open(part, _WAY, dir_fd=above)
        except OSError:
            return None
        finally:
            os.close(above)
    return place


def _add(seen: FilesSeen, names: dict[str, None], name: str) -> None:
    if name in names:
        return
    if len(names) < MOST_FILES:
        names[name] = None
    else:
        seen.whole = False


def _shown(name: bytes) -> str:
    return name.decode(errors="replace")


@dataclass(frozen=True, slots=True)
class Program:
    name: str
    """Of the file that runs, without its folder."""
    arguments: str


@dataclass(slots=True)
class ProgramsSeen:
    programs: list[Program] = field(default_factory=list)
    """Each once, in the order in which they were seen."""
    whole: bool = True


class ProcessWatch:
    """With it, what descends from a process of this host is looked at over and over. `below` says how many
    generations belong to the sandbox itself."""

    def __init__(self, pid: int, *, below: int) -> None:
        self._pid = pid
        self._below = below
        self._seen = ProgramsSeen()
        self._known: set[Program] = set()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._look, name="sandbox-programs", daemon=True)

    def __enter__(self) -> ProgramsSeen:
        self._seen.whole = Path(f"/proc/{self._pid}/task/{self._pid}/children").exists()
        self._thread.start()
        return self._seen

    def __exit__(self, *_what: object) -> None:
        self._end.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._end.wait(LOOK_SECONDS):
            began = time.monotonic()
            self._look_once()
            # Many processes are slow to look at; watching them never takes more than a part of a core.
            self._end.wait((time.monotonic() - began) * 2)

    def _look_once(self) -> None:
        generation, depth = [self._pid], 0
        looked_at = 0
        while generation and looked_at < MOST_PROGRAMS:
            below: list[int] = []
            for pid in generation:
                looked_at += 1
                if depth >= self._below and (program := _program(pid)) is not None:
                    self._keep(program)
                below += children_of(pid)
            generation, depth = below, depth + 1

    def _keep(self, program: Program) -> None:
        if program in self._known:
            return
        if len(self._known) >= MOST_PROGRAMS:
            self._seen.whole = False
            return
        self._known.add(program)
        self._seen.programs.append(program)


def _program(pid: int) -> Program | None:
    try:
        with Path(f"/proc/{pid}/cmdline").open("rb") as file:
            words = file.read(ARGUMENTS).rstrip(b"\0").split(b"\0")
    except OSError:
        return None
    if not words[0]:
        return None
    arguments = " ".join(map(_shown, words))
    if arguments.startswith(_OWN_SHELL) or f" -S {_OWN_FOLDER}" in arguments[:200]:
        return None
    called = _shown(words[0]).rpartition("/")[2]
    with suppress(OSError):  # of another user, or gone meanwhile
        runs = Path(f"/proc/{pid}/exe").readlink().name
        if _file_of(called) != runs:
            called = runs
    return Program(called, arguments)


@lru_cache(maxsize=1_000)
def _file_of(program: str) -> str:
    """What a name means on this host: `python3` is `python3.13`. A program says itself what it is called."""
    found = shutil.which(program, path=_PATH)
    return Path(found).resolve().name if found else program

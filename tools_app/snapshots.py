"""Snapshots of a workspace: what it held at a moment, kept by content, and how it is brought back.

A store belongs to one conversation and lies beside the workspaces, where no tool and no command reaches:
each content stands in it once, under its SHA-256, so nobody's store tells anything about another's. Names
are walked as `confinement` walks them; links are kept as links and never followed. When one is kept, and
for which place of a log, is `conversations.checkpoints`' part.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import stat
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Literal

from harness.errors import AgentError
from tools_app.confinement import TEMPORARY_PREFIX, entered, open_file, open_folder, shown
from tools_app.leases import Lease
from tools_app.removing import remove_tree

INODES = 2**63 - 1
"""Numbers of files as tables keep them (`workspace.entry_of`)."""

FOLDER = ".checkpoints"
"""Beside the workspaces."""
MB = 1024 * 1024
DEPTH = 64
"""Folders in one another; each level of a walk holds one open."""
CHUNK = 1024 * 1024
RACY_NANOSECONDS = 2_000_000_000
"""A file that was changed this shortly before a look at it may be changed again without another time."""
TRIES = 3
"""To read a file that is being written; then what was read is kept."""
ORPHAN_SECONDS = 600
"""What no snapshot names may belong to one that is just being made, until it is this old."""

Kind = Literal["file", "folder", "link"]
Reason = Literal["too_large", "too_many", "too_deep", "unreadable", "busy", "off"]


class NotKept(Exception):
    """The workspace is not kept; `reason` says why, for programs."""

    def __init__(self, reason: Reason, message: str, *, files: int = 0, size: int = 0) -> None:
        super().__init__(message)
        self.message = message
        self.reason = reason
        self.files = files
        self.size = size


class Damaged(Exception):
    """The store lacks a part of a snapshot, or holds something else in its place."""


@dataclass(frozen=True, slots=True)
class Limits:
    files: int
    """Names of any kind."""
    size: int
    """Bytes of all files together."""


@dataclass(frozen=True, slots=True)
class Item:
    """One name of a snapshot."""

    path: str
    kind: Kind
    content: str = ""
    """SHA-256 of a file; what a link points to."""
    size: int = 0
    executable: bool = False
    source: str = ""
    """Where its name, or a file's words, come from that strangers may have written; empty: from none."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    id: str
    """SHA-256 of the list of its names."""
    files: int
    size: int


@dataclass(frozen=True, slots=True)
class Found:
    """A name as it stands in a workspace."""

    path: str
    status: os.stat_result

    @property
    def kind(self) -> Kind | None:
        """None: a pipe, a socket or a device, which is no content."""
        mode = self.status.st_mode
        if stat.S_ISREG(mode):
            return "file"
        if stat.S_ISDIR(mode):
            return "folder"
        return "link" if stat.S_ISLNK(mode) else None


@dataclass(frozen=True, slots=True)
class Changes:
    """What bringing back changed."""

    written: int = 0
    removed: int = 0


SourceOf = Callable[[Found], str]
First = Callable[[str, str, int], None]
"""Told of a path, its source and its number: once before it stands there (0), once after. Of a folder
only where it was not there before."""


def _own(_found: Found) -> str:
    return ""


def _nothing(_path: str, _source: str, _inode: int) -> None:
    pass


class Store:
    """The snapshots of the workspace at `root`."""

    def __init__(self, root: Path, *, of: Path | None = None) -> None:
        """With `of`, what is brought back was kept of the workspace there."""
        self._root = root
        self._place = store_of(of or root)

    def keep(self, limits: Limits, source_of: SourceOf = _own) -> Snapshot:
        """Keep the workspace as it is. Only what changed since the last time is read. Raises `NotKept`,
        having kept nothing that counts."""
        began = time.time_ns()
        found = [each for each in walk(self._root, limits.files) if each.kind is not None]
        size = sum(each.status.st_size for each in found if each.kind == "file")
        files = sum(each.kind == "file" for each in found)
        if size > limits.size:
            raise _too_large(files, size, limits)
        known, noted = self._index(), {}
        items: list[Item] = []
        room = limits.size
        for each in found:
            item, mark = self._item(each, known, began, room, source_of)
            if item is None:
                continue  # gone meanwhile
            room -= item.size
            if room < 0:
                raise _too_large(files, limits.size - room, limits)
            items.append(item)
            if mark is not None:
                noted[each.path] = mark
        snapshot = self._write_list(items)
        self._write(self._place / "index", json.dumps(noted).encode())
        return snapshot

    def items(self, snapshot: str) -> list[Item]:
        """The names of a snapshot, each folder before what it holds. Raises `Damaged`."""
        try:
            data = self._path_of(snapshot).read_bytes()
        except OSError as problem:
            raise _damaged() from problem
        if hashlib.sha256(data).hexdigest() != snapshot:
            raise _damaged()
        return [Item(**each) for each in json.loads(data)]

    def content(self, item: Item) -> bytes:
        """What a file held. Raises `OSError`."""
        return self._path_of(item.content).read_bytes()

    def bring_back(
        self,
        snapshot: str,
        *,
        now: str,
        lease: Lease,
        only: Collection[str] | None = None,
        stays: Collection[str] = (),
        first: First = _nothing,
    ) -> Changes:
        """Make the workspace hold what `snapshot` holds; `now` is one of how it is at this moment, empty
        where it holds nothing. With `only`, of these files alone; what is named in `stays` is not taken
        away. It may be done again after it was cut short. Raises `Damaged`, before anything changes where
        a part is missing, `OSError`, and the errors of `confinement` and `leases`."""
        wanted = {each.path: each for each in self.items(snapshot)}
        there = {each.path: each for each in (self.items(now) if now else ())}
        if only is not None:
            chosen = set(only)
            brought = chosen | _above(chosen & wanted.keys())
            wanted = {path: item for path, item in wanted.items() if path in brought}
            there = {path: item for path, item in there.items() if path in chosen}
        gone = [
            item
            for path, item in there.items()
            if path not in stays and _makes_room(item, wanted.get(path))
        ]
        come = [item for path, item in wanted.items() if not _same(item, there.get(path))]
        for item in come:
            if item.kind == "file":
                self._require(item)
        # What a folder holds comes behind it in a list, so backwards folders are empty when they go.
        removed = sum(self._remove(item, lease) for item in reversed(gone))
        for item in come:
            self._put(item, lease, first)
        written = sum(item.kind != "folder" for item in come)
        return Changes(written, removed)

    def size(self) -> int:
        """Bytes of all it holds."""
        return sum(path.stat().st_size for path in self._contents())

    def sweep(self, snapshots: Iterable[str]) -> None:
        """Let go of what none of these snapshots names, except what is new."""
        named: set[str] = set()
        for snapshot in snapshots:
            with suppress(Damaged):
                named.update(item.content for item in self.items(snapshot) if item.kind == "file")
                named.add(snapshot)
        oldest = time.time() - ORPHAN_SECONDS
        for path in self._contents():
            if path.name not in named and path.stat().st_mtime < oldest:
                path.unlink(missing_ok=True)

    # --- contents ---------------------------------------------------------------------------------

    def _path_of(self, name: str) -> Path:
        return self._place / "contents" / name[:2] / name

    def _folder(self, *names: str) -> Path:
        """A folder of the store, which is for nobody but this server."""
        path = self._place.parent
        for name in ("", self._place.name, *names):
            path = path / name
            path.mkdir(mode=0o700, exist_ok=True)
        return path

    def _contents(self) -> Iterator[Path]:
        folder = self._place / "contents"
        return (path for path in folder.glob("*/*")) if folder.is_dir() else iter(())

    def _take(self, chunks: Iterable[bytes]) -> tuple[str, int]:
        """Store what comes under its hash; the hash, and how long it was."""
        incoming = self._folder("incoming")
        temporary = incoming / secrets.token_hex(8)
        digest, size = hashlib.sha256(), 0
        try:
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                for chunk in chunks:
                    digest.update(chunk)
                    size += len(chunk)
                    file.write(chunk)
            path = self._path_of(digest.hexdigest())
            self._folder("contents", path.parent.name)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
        return digest.hexdigest(), size

    def _write_list(self, items: list[Item]) -> Snapshot:
        data = json.dumps([asdict(each) for each in items]).encode()
        files = [each for each in items if each.kind == "file"]
        name, _size = self._take([data])
        return Snapshot(name, len(files), sum(each.size for each in files))

    def _write(self, path: Path, data: bytes) -> None:
        temporary = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
        temporary.write_bytes(data)
        temporary.replace(path)

    def _index(self) -> dict[str, list[object]]:
        """What is known of files from the last look: by path their marks and content."""
        try:
            known = json.loads((self._place / "index").read_bytes())
        except (OSError, ValueError):
            return {}
        return known if isinstance(known, dict) else {}

    def _require(self, item: Item) -> None:
        try:
            there = self._path_of(item.content).stat()
        except OSError as problem:
            raise _damaged() from problem
        if there.st_size != item.size:
            raise _damaged()

    # --- one name ---------------------------------------------------------------------------------

    def _item(
        self,
        found: Found,
        known: Mapping[str, list[object]],
        began: int,
        room: int,
        source_of: SourceOf,
    ) -> tuple[Item | None, list[object] | None]:
        """The name as it is kept, and what to note of it where that may be believed the next time."""
        *folders, name = found.path.split("/")
        try:
            if found.kind == "folder":
                return Item(found.path, "folder", source=source_of(found)), None
            if found.kind == "link":
                with entered(self._root, folders) as folder:
                    target = os.readlink(name, dir_fd=folder)
                return Item(found.path, "link", target, source=source_of(found)), None
            marks, noted = _marks(found.status), known.get(found.path)
            if noted and noted[:-1] == marks and self._path_of(str(noted[-1])).exists():
                return self._file(found, str(noted[-1]), found.status, source_of), noted
            with entered(self._root, folders) as folder:
                content, status, steady = self._read(folder, name, found.path, room)
        except (FileNotFoundError, NotADirectoryError):
            return None, None
        except OSError as problem:
            raise _unreadable(found.path) from problem
        except AgentError as problem:
            if _is_gone(self._root, folders, name):
                return None, None
            raise _unreadable(found.path) from problem
        item = self._file(Found(found.path, status), content, status, source_of)
        believed = steady and _last_change(status) < began - RACY_NANOSECONDS
        return item, [*_marks(status), content] if believed else None

    def _file(
        self, found: Found, content: str, status: os.stat_result, source_of: SourceOf
    ) -> Item:
        executable = bool(status.st_mode & 0o100)
        size = self._path_of(content).stat().st_size
        return Item(found.path, "file", content, size, executable, source_of(found))

    def _read(
        self, folder: int, name: str, path: str, room: int
    ) -> tuple[str, os.stat_result, bool]:
        """Store a file's content; whether it was not written meanwhile."""
        for attempt in range(TRIES):
            with os.fdopen(open_file(folder, name, path), "rb") as file:
                before = os.fstat(file.fileno())
                content, size = self._take(_at_most(file.read, room))
                after = os.fstat(file.fileno())
            steady = _marks(before) == _marks(after) and size == after.st_size
            if steady or attempt == TRIES - 1:
                return content, after, steady
        raise AssertionError("there is at least one try")

    def _remove(self, item: Item, lease: Lease) -> int:
        """1 where something that people would miss is gone."""
        *folders, name = item.path.split("/")
        try:
            with entered(self._root, folders) as folder, _writable(folder), lease.committing():
                lease.renew()
                if item.kind == "folder":
                    os.rmdir(name, dir_fd=folder)  # one that holds what is not ours to remove stays
                else:
                    os.unlink(name, dir_fd=folder)
        except (OSError, AgentError):
            if item.kind == "folder" or _is_gone(self._root, folders, name):
                return 0
            raise
        return int(item.kind != "folder")

    def _put(self, item: Item, lease: Lease, first: First) -> None:
        *folders, name = item.path.split("/")
        if item.kind == "folder":
            is_new = bool(item.source) and _is_gone(self._root, folders, name)
            if is_new:
                first(item.path, item.source, 0)
            with entered(self._root, [*folders, name], create=True) as made:
                if is_new:
                    first(item.path, item.source, os.fstat(made).st_ino & INODES)
            return
        with entered(self._root, folders, create=True) as folder, _writable(folder):
            temporary = f"{TEMPORARY_PREFIX}{secrets.token_hex(8)}"
            try:
                if item.kind == "link":
                    os.symlink(item.content, temporary, dir_fd=folder)
                else:
                    self._copy(item, folder, temporary)
                if item.source:
                    first(item.path, item.source, 0)
                with lease.committing():
                    lease.renew()
                    os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
                if item.source:
                    inode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_ino
                    first(item.path, item.source, inode & INODES)
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(temporary, dir_fd=folder)

    def _copy(self, item: Item, folder: int, name: str) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(name, flags, 0o600, dir_fd=folder)
        digest = hashlib.sha256()
        with os.fdopen(descriptor, "wb") as into, self._path_of(item.content).open("rb") as file:
            while chunk := file.read(CHUNK):
                digest.update(chunk)
                into.write(chunk)
            os.fchmod(into.fileno(), 0o700 if item.executable else 0o600)
            into.flush()
            os.fsync(into.fileno())
        if digest.hexdigest() != item.content:
            raise _damaged()


def store_of(root: Path) -> Path:
    """Where the snapshots of the workspace at `root` lie."""
    return root.parent / FOLDER / root.name


def remove_store(root: Path) -> None:
    """The workspace is gone, and all that was kept of it goes; nothing where there is none."""
    with suppress(FileNotFoundError):
        remove_tree(store_of(root))


def walk(root: Path, most: int) -> Iterator[Found]:
    """Everything below `root`, each folder before what it holds, by name. Nothing is followed: no link,
    and no folder of another file system. What is half written by us is left out. Raises `NotKept` for
    more than `most` names, for folders too deep and for one that cannot be read."""
    with entered(root, ()) as folder:
        names = _below(folder, "", DEPTH, os.fstat(folder).st_dev)
        yield from islice(names, most)
        if next(names, None) is not None:
            raise NotKept("too_many", f"The workspace holds more than {most:,} names.", files=most)


def _below(folder: int, path: str, depth: int, device: int) -> Iterator[Found]:
    try:
        names = sorted(os.listdir(folder))
    except OSError as problem:
        raise _unreadable(path) from problem
    for name in names:
        if name.casefold().startswith(TEMPORARY_PREFIX):
            continue
        here = f"{path}/{name}" if path else name
        try:
            found = Found(here, os.stat(name, dir_fd=folder, follow_symlinks=False))
        except OSError:
            continue
        if found.kind == "folder" and found.status.st_dev != device:
            continue
        yield found
        if found.kind != "folder":
            continue
        if depth <= 1:
            raise NotKept(
                "too_deep", f"The workspace has more than {DEPTH} folders in one another."
            )
        try:
            inner = open_folder(folder, name)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as problem:
            raise _unreadable(here) from problem
        try:
            yield from _below(inner, here, depth - 1, device)
        finally:
            os.close(inner)


def _at_most(read: Callable[[int], bytes], room: int) -> Iterator[bytes]:
    """What a file says; of one that grows past all limits while it is read, a little more than fits."""
    while room >= 0 and (chunk := read(CHUNK)):
        room -= len(chunk)
        yield chunk


def _marks(status: os.stat_result) -> list[object]:
    """What tells that a file has not been touched. No program can set the time of its last change."""
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_mode]


def _last_change(status: os.stat_result) -> int:
    return max(status.st_mtime_ns, status.st_ctime_ns)


def _same(wanted: Item, there: Item | None) -> bool:
    return there is not None and (
        (wanted.kind, wanted.content, wanted.executable)
        == (there.kind, there.content, there.executable)
    )


def _above(paths: Iterable[str]) -> set[str]:
    """The folders that hold these."""
    parts = (path.split("/") for path in paths)
    return {"/".join(names[:depth]) for names in parts for depth in range(1, len(names))}


def _makes_room(there: Item, wanted: Item | None) -> bool:
    """A file takes a file's place at once; anything else is taken away first."""
    if wanted is None:
        return True
    return wanted.kind != there.kind and "folder" in {wanted.kind, there.kind}


@contextmanager
def _writable(folder: int) -> Iterator[None]:
    """An agent may have taken its own folder's right to write; for the moment it has it again."""
    mode = stat.S_IMODE(os.fstat(folder).st_mode)
    lacking = mode & 0o300 != 0o300
    if lacking:
        with suppress(OSError):
            os.fchmod(folder, mode | 0o700)
    try:
        yield
    finally:
        if lacking:
            with suppress(OSError):
                os.fchmod(folder, mode)


def _is_gone(root: Path, folders: list[str], name: str) -> bool:
    try:
        with entered(root, folders) as folder:
            os.stat(name, dir_fd=folder, follow_symlinks=False)
    except (OSError, AgentError):
        return True
    return False


def _too_large(files: int, size: int, limits: Limits) -> NotKept:
    return NotKept(
        "too_large",
        f"The files have {size / MB:,.0f} MB, more than {limits.size / MB:,.0f} MB.",
        files=files,
        size=size,
    )


def _unreadable(path: str) -> NotKept:
    return NotKept("unreadable", f"“{shown(path or '.')}” cannot be read.")


def _damaged() -> Damaged:
    return Damaged("A part of what was kept of the files is lost.")

"""A conversation's own directory: the only way in which tools and pages touch its files.

Every path is relative text, parsed and walked by `tools_app.confinement`. Errors are those of
`harness.errors` for whoever asked and never name a place of the host. Who may see which workspace
is decided by the caller.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Literal

from django.conf import settings
from django.utils.translation import gettext as _

from harness.errors import Conflict, Invalid, TooLarge
from reading.moments import moment_at
from tools_app.confinement import (
    DEPTH_LIMIT,
    NAME_LIMIT,
    TEMPORARY_PREFIX,
    entered,
    is_reserved,
    is_text,
    open_file,
    open_folder,
    parse_path,
    refuse_mode,
    shown,
    translated,
)
from tools_app.leases import Lease, forget, leased
from tools_app.quota import admit, require_room
from tools_app.removing import remove_tree
from tools_app.snapshots import INODES, remove_store
from tools_app.textfiles import decode, language_of

FILE_LIMIT = 10 * 1024**2
"""Bytes that are read or written at once."""
UPLOAD_LIMIT = 10 * 1024**2
"""Bytes of one upload."""
PREVIEW_LIMIT = 102_400
"""Characters of a preview."""
LISTING_LIMIT = 2_000
"""Files of one listing."""
WALK_LIMIT = 50_000
"""Names that one walk looks at."""

PUBLIC_ROOT = "/mnt/session"
"""Where sandboxes with a view of files of their own show the workspace, and what the tools take for
it everywhere; a name of the public API."""
OUTPUTS = "outputs"
"""Folder of what an agent made for whoever asked: programs list and fetch it as files of the session."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
"""When a file was changed whose own time is none."""

_UID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")

Kind = Literal["file", "folder", "link", "other"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One name in a workspace. `path` leads to it; pass it through `shown` before showing it."""

    path: str
    kind: Kind
    size: int
    """Bytes; 0 for anything but a file."""
    modified: datetime
    inode: int = 0
    """The file's number, the same under every name of it; 0: not known."""
    changed: float = 0.0
    """When its content or its name last changed, by the kernel's own word, which no program can set."""

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def display_path(self) -> str:
        return shown(self.path)


@dataclass(frozen=True, slots=True)
class Listing:
    entries: tuple[Entry, ...]
    complete: bool
    """False when there are more files than were asked for."""


@dataclass(frozen=True, slots=True)
class Preview:
    entry: Entry
    text: str
    language: str
    """A Pygments lexer's short name, `text` if unknown; empty for a binary file."""
    truncated: bool
    binary: bool


@dataclass(frozen=True, slots=True)
class Usage:
    files: int
    size: int
    """Bytes of all files, reserved ones included."""
    complete: bool


def _nothing_first(_path: str, _number: int) -> None:
    pass


class Workspace:
    """The files below one root. Holds nothing open; any number may exist for one root."""

    def __init__(self, root: Path) -> None:
        self._root = root

    # --- reading ---------------------------------------------------------------------------------

    def stat(self, path: str) -> Entry:
        """What stands at `path`; the root is a folder with the path "". Links are not followed."""
        parts = parse_path(path)
        if not parts:
            with entered(self._root, ()) as folder:
                return entry_of("", os.fstat(folder))
        with entered(self._root, parts[:-1]) as folder, translated(path):
            status = os.stat(parts[-1], dir_fd=folder, follow_symlinks=False)
        return entry_of("/".join(parts), status)

    def open_for_read(self, path: str) -> BinaryIO:
        """An ordinary file, opened; the caller closes it. Raises `NotFound` or `Invalid`."""
        *folders, name = _file_parts(path)
        with entered(self._root, folders) as folder:
            return os.fdopen(open_file(folder, name, path), "rb")

    def read_bytes(self, path: str, limit: int = FILE_LIMIT) -> bytes:
        """The whole file. Raises `TooLarge` past `limit` bytes, however large it says it is."""
        with self.open_for_read(path) as file:
            data = file.read(limit + 1)
        if len(data) > limit:
            raise TooLarge(
                _("“%(path)s” is larger than %(limit)s bytes.")
                % {"path": shown(path), "limit": f"{limit:,}"},
                field="path",
                hint=_("Search in it, or read a smaller file."),
            )
        return data

    def preview(self, path: str, limit: int = PREVIEW_LIMIT) -> Preview:
        """The first `limit` characters as text, or the note that it is binary."""
        with self.open_for_read(path) as file:
            entry = entry_of("/".join(parse_path(path)), os.fstat(file.fileno()))
            data = file.read(limit * 4 + 4)
            whole = not file.read(1)
        found = decode(data, complete=whole)
        if found is None:
            return Preview(entry, text="", language="", truncated=False, binary=True)
        return Preview(
            entry,
            text=found.text[:limit],
            language=language_of(path),
            truncated=not whole or len(found.text) > limit,
            binary=False,
        )

    def walk(
        self, path: str = "", *, depth: int = DEPTH_LIMIT, skip: Collection[str] | None = ()
    ) -> Iterator[Entry]:
        """Everything below the folder `path`, each folder before what it holds, sorted by name.

        Goes `depth` levels down, never through links, and not into folders named in `skip`, which
        are themselves given. Reserved names, and names that are no valid text, are left out, unless
        `skip` is None: then everything is given, and no tool reaches some of it. What vanishes
        meanwhile is passed over. Raises `NotFound` or `Invalid` for `path` itself, and `TooLarge` once
        `WALK_LIMIT` names were given.
        """
        parts = parse_path(path)
        with entered(self._root, parts) as folder:
            left_out = None if skip is None else frozenset(skip)
            names = _below(folder, "/".join(parts), depth, left_out)
            yield from islice(names, WALK_LIMIT)
            if next(names, None) is not None:
                raise TooLarge(
                    _("“%(path)s” holds more than %(limit)s names.")
                    % {"path": shown(path or "."), "limit": f"{WALK_LIMIT:,}"},
                    field="path",
                    hint=_("Name a smaller folder."),
                )

    def entries(self, limit: int = LISTING_LIMIT) -> Listing:
        """The files of the whole workspace, flat, sorted folder by folder."""
        found: list[Entry] = []
        try:
            for entry in self.walk():
                if entry.kind == "file":
                    if len(found) == limit:
                        return Listing(tuple(found), complete=False)
                    found.append(entry)
        except TooLarge:
            return Listing(tuple(found), complete=False)
        return Listing(tuple(found), complete=True)

    def usage(self) -> Usage:
        files = size = seen = 0
        with entered(self._root, ()) as folder:
            for entry in islice(_below(folder, "", DEPTH_LIMIT, None), WALK_LIMIT):
                seen += 1
                files += entry.kind == "file"
                size += entry.size
        return Usage(files, size, complete=seen < WALK_LIMIT)

    # --- changing --------------------------------------------------------------------------------

    @contextmanager
    def exclusive(self) -> Iterator[Lease]:
        """Keeps other holders out of this workspace, in every process, while a change is made of
        what was read; give the lease to `write_bytes`. Not re-entrant. Raises `Conflict` when another
        change takes too long."""
        with leased(self._root) as lease:
            yield lease

    @contextmanager
    def _held(self, lease: Lease | None) -> Iterator[Lease]:
        if lease is not None:
            yield lease
            return
        with leased(self._root) as own:
            yield own

    def write_bytes(
        self, path: str, data: bytes, limit: int = FILE_LIMIT, *, lease: Lease | None = None
    ) -> Entry:
        """Make `data` the whole content of `path`, at once or not at all; missing folders are made.

        Who holds the `lease` gives it; raises `Conflict` when it was lost meanwhile.
        A file that is replaced keeps its owner's right to execute it; other names of the same file
        (hard links) keep the old content. Readable by the owner only.
        """
        parts = _file_parts(path)
        if path.endswith("/"):
            raise Invalid(
                _("“%(path)s” names a folder, not a file.") % {"path": shown(path)}, field="path"
            )
        if len(data) > limit:
            raise TooLarge(
                _("“%(path)s” would be larger than %(limit)s bytes.")
                % {"path": shown(path), "limit": f"{limit:,}"},
                field="content",
                hint=_("Write it in several smaller files."),
            )
        name = parts[-1]
        with (
            self._held(lease) as held,
            entered(self._root, parts[:-1], create=True) as folder,
        ):
            admit(held, self._root, len(data))
            mode = 0o600 | (_mode_of_file(folder, name, path) & 0o100)
            with (
                _temporary(folder, [data], mode, path) as temporary,
                held.committing(),
                translated(path),
            ):
                os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
                status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        return entry_of("/".join(parts), status)

    def save_upload(
        self,
        name: str,
        chunks: Iterable[bytes],
        limit: int = UPLOAD_LIMIT,
        *,
        folder: str = "",
        replace: bool = False,
        first: Callable[[str, int], None] = _nothing_first,
    ) -> Entry:
        """Store what somebody sends under the last part of `name`, in `folder`, made if missing.

        A name that is taken gets a number, `name (2).ext`; with `replace` the file that has it makes
        room at once. `first` is told of its path and its number before anybody can read it. Raises
        `TooLarge` past `limit` bytes, having read no further and left nothing behind.
        """
        wanted = re.split(r"[/\\]", name)[-1].strip()
        if wanted in {"", ".", ".."} or parse_path(wanted) != (wanted,):
            raise Invalid(_("The file has no name."), field="name", hint=_("Give it a name."))
        parts = parse_path(folder)
        with (
            entered(self._root, parts, create=True) as place,
            _temporary(place, self._fitting(chunks, limit, wanted), 0o600, wanted) as temporary,
            leased(self._root) as lease,
        ):
            admit(lease, self._root, _size_of(place, temporary), written=True)
            if replace:
                _mode_of_file(place, wanted, wanted)
            with translated(wanted):
                number = os.stat(temporary, dir_fd=place).st_ino & INODES
                for candidate in [wanted] if replace else _candidates(wanted):
                    if not replace and _is_taken(place, candidate):
                        continue
                    first("/".join((*parts, candidate)), number)
                    with lease.committing():
                        try:
                            if replace:
                                os.replace(temporary, wanted, src_dir_fd=place, dst_dir_fd=place)
                            else:
                                # Unlike a rename, a link never replaces what has the name already.
                                os.link(temporary, candidate, src_dir_fd=place, dst_dir_fd=place)
                        except FileExistsError:
                            continue
                        status = os.stat(candidate, dir_fd=place)
                        return entry_of("/".join((*parts, candidate)), status)
        raise Conflict(
            _("There are too many files named “%(name)s”.") % {"name": shown(wanted)},
            hint=_("Rename it."),
        )

    def _fitting(self, chunks: Iterable[bytes], limit: int, name: str) -> Iterator[bytes]:
        """The chunks, as long as they keep to the limit of one upload and of the workspace."""
        size = 0
        for chunk in _at_most(chunks, limit, name):
            size += len(chunk)
            require_room(self._root, size)
            yield chunk

    def make_folder(self, path: str) -> None:
        """Make the folder if it is missing. Raises `Invalid` when something else has the name."""
        with entered(self._root, parse_path(path), create=True):
            pass

    def remove(self, path: str, *, lease: Lease | None = None) -> None:
        """Remove a file, or a link itself; who holds the `lease` gives it. Raises `NotFound`, or `Invalid`
        for a folder."""
        *folders, name = _file_parts(path)
        with (
            self._held(lease) as held,
            entered(self._root, folders) as folder,
            held.committing(),
            translated(path),
        ):
            if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                raise Invalid(
                    _("“%(path)s” is a folder, not a file.") % {"path": shown(path)}, field="path"
                )
            os.unlink(name, dir_fd=folder)


def inside(root: Path, path: str) -> str:
    """`path` relative to the workspace at `root`, also where it was given as commands see it: below
    `PUBLIC_ROOT`, or below the root itself where sandboxes show the host's own folders. Anything else
    stays as it is, to be judged by `parse_path`."""
    for place in (PUBLIC_ROOT, str(root)):
        if path == place or path.startswith(f"{place}/"):
            return path.removeprefix(place).lstrip("/") or "."
    return path


def workspace_for(conversation_uid: str) -> Path:
    """The directory of a conversation, below `AGENTSITE_WORKSPACES_DIR`; made if missing."""
    root = _root_of(conversation_uid)
    root.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    root.mkdir(mode=0o700, exist_ok=True)
    return root


def remove_workspace(conversation_uid: str, *, still: Callable[[], bool] = lambda: True) -> None:
    """Delete the directory of a conversation with all it holds and its snapshots; nothing if there is
    none. One removes it at a time, who asks whether it is `still` to go. Raises `Conflict` where somebody
    else is at it for long."""
    root = _root_of(conversation_uid)
    root.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with leased(root):
        if not still():
            return
        with suppress(FileNotFoundError):
            remove_tree(root)
        remove_store(root)
        forget(root)


def _root_of(uid: str) -> Path:
    if not _UID.fullmatch(uid):
        raise Invalid(_("This is not the id of a conversation."), field="conversation")
    return Path(settings.AGENTSITE_WORKSPACES_DIR) / uid


def _file_parts(path: str) -> tuple[str, ...]:
    parts = parse_path(path)
    if not parts:
        raise Invalid(_("The path names the workspace itself, not a file."), field="path")
    return parts


def entry_of(path: str, status: os.stat_result) -> Entry:
    """What a look at `path` found."""
    kind: Kind = "other"
    if stat.S_ISREG(status.st_mode):
        kind = "file"
    elif stat.S_ISDIR(status.st_mode):
        kind = "folder"
    elif stat.S_ISLNK(status.st_mode):
        kind = "link"
    size = status.st_size if kind == "file" else 0
    # Whoever writes a file may give it any time, also one that no calendar has.
    modified = moment_at(status.st_mtime) or EPOCH
    # Some file systems use the highest bit, which no column of a table has room for.
    inode = status.st_ino & INODES
    return Entry(path, kind, size, modified, inode, status.st_ctime)


def _below(folder: int, path: str, depth: int, skip: frozenset[str] | None) -> Iterator[Entry]:
    """What the open `folder` holds; `skip=None` leaves nothing out."""
    with os.scandir(folder) as scan:
        names = sorted(entry.name for entry in islice(scan, WALK_LIMIT + 1))
    for name in names:
        if skip is not None and (is_reserved(name) or not is_text(name)):
            continue
        here = f"{path}/{name}" if path else name
        try:
            entry = entry_of(here, os.stat(name, dir_fd=folder, follow_symlinks=False))
        except OSError:
            continue
        yield entry
        if entry.kind != "folder" or depth <= 1 or (skip is not None and name in skip):
            continue
        try:
            inner = open_folder(folder, name)
        except OSError:
            continue
        try:
            yield from _below(inner, here, depth - 1, skip)
        finally:
            os.close(inner)


def _size_of(folder: int, name: str) -> int:
    return os.stat(name, dir_fd=folder, follow_symlinks=False).st_size


def _mode_of_file(folder: int, name: str, path: str) -> int:
    """The mode of the ordinary file `name`, 0 if there is none."""
    with translated(path):
        try:
            mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
        except FileNotFoundError:
            return 0
    refuse_mode(mode, path)
    return mode


@contextmanager
def _temporary(folder: int, chunks: Iterable[bytes], mode: int, path: str) -> Iterator[str]:
    """The name of a new file in `folder` with these chunks on disk; gone afterwards."""
    name = f"{TEMPORARY_PREFIX}{secrets.token_hex(8)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with translated(path):
        descriptor = os.open(name, flags, mode, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "wb") as file, translated(path):
            for chunk in chunks:
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
        yield name
    finally:
        try:
            os.unlink(name, dir_fd=folder)
        except OSError as problem:
            if problem.errno != errno.ENOENT:  # renamed to its final name
                raise


def _at_most(chunks: Iterable[bytes], limit: int, name: str) -> Iterator[bytes]:
    size = 0
    for chunk in chunks:
        size += len(chunk)
        if size > limit:
            raise TooLarge(
                _("“%(name)s” is larger than %(limit)s bytes.")
                % {"name": shown(name), "limit": f"{limit:,}"},
                field="file",
                hint=_("Send a smaller file."),
            )
        yield chunk


def _is_taken(folder: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _candidates(name: str) -> Iterator[str]:
    """`name`, then with numbers before its ending, never longer than a name may be."""
    yield name
    stem, dot, ending = name.rpartition(".")
    if not stem:
        stem, dot, ending = name, "", ""
    for number in range(2, 1_000):
        tail = f" ({number}){dot}{ending}"
        room = NAME_LIMIT - len(tail.encode())
        if room < 1:
            return
        yield stem.encode()[:room].decode(errors="ignore") + tail

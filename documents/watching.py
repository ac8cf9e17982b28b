"""Keeps the documents of a collection as the files of a directory are that the operator named for it.

What is new or changed there is read in the background, as an upload is; what is gone is forgotten. Nobody
acts here but the server. It never leaves the directory: links are not followed, nor is a file read that has
another name elsewhere. What stands in a directory that cannot be read, or below it, is not forgotten, nor
what lay on a device of its own that is not there now.
"""

from __future__ import annotations

import errno
import logging
import os
import stat
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from harness.errors import Invalid
from jobs.dispatch import dispatch

from .actions.collections import check_name
from .indexing import INDEX
from .models import Collection, Document, DocumentBody, DocumentQuerySet

WATCH = "documents.watch"
DEPTH = 16
ENTRIES = 50_000
"""Names that one look goes through; a directory with more is not watched."""
AT_ONCE = 50
"""Files that one look takes up; the rest is the next one's."""
WAITS = [
    "stamp",
    "mount",
    "state",
    "claimed_at",
    "tries",
    "problem",
    "problem_code",
    "updated_at",
]
"""What is written of a file that changed: all else is its reader's."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_GONE = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}
"""How a folder is refused in whose place nothing, a file or a link stands now."""
logger = logging.getLogger(__name__)


class TooMany(Exception):
    """The directory has more than anybody looks through."""


@dataclass(frozen=True, slots=True)
class File:
    path: str
    """From the directory on, between slashes."""
    stamp: str
    mount: str
    """The folder above it where another device than the directory's begins, with a slash; empty: none."""


def watch_all() -> None:
    """Have a look at each directory; one that cannot be read keeps no other waiting."""
    for uid, directory in settings.AGENTSITE_WATCHED_DOCUMENTS.items():
        collection = Collection.objects.filter(uid=uid).first()
        if collection is None:
            logger.warning("AGENTSITE_WATCHED_DOCUMENTS: there is no collection %s", uid)
            continue
        try:
            watch(collection, Path(directory))
        except (OSError, TooMany) as problem:
            if isinstance(problem, OSError) and _watched(collection).exists():
                _hold(collection, Collection.Held.MISSING)
            logger.warning("the documents of %s were not looked at: %s", uid, problem)


def watch(
    collection: Collection, directory: Path, *, at_once: int = AT_ONCE, entries: int = ENTRIES
) -> int:
    """How many documents are read anew or forgotten. Raises OSError, TooMany."""
    unread: list[str] = []
    mounts: list[str] = []
    there = {file.path: file for file in _files(directory, unread, mounts, entries)}
    rows = _watched(collection)
    known = dict(rows.values_list("name", "stamp"))
    away = tuple(unread)
    if known and not there and not away:
        _hold(collection, Collection.Held.EMPTIED)
        logger.warning("of %s, nothing is left in its directory; it is kept", collection.uid)
        return 0
    _hold(collection, "")
    gone = [name for name in known if name not in there and not name.startswith(away)]
    mount_of = dict(rows.exclude(mount="").values_list("name", "mount"))
    kept = {name for name in gone if mount_of.get(name, "") not in {"", *mounts}}
    gone = [name for name in gone if name not in kept]
    if kept:
        logger.warning(
            "of %s, %d files may not be mounted; they are kept", collection.uid, len(kept)
        )
    for name in gone:
        with transaction.atomic():
            rows.filter(name=name).delete_held()
    if away:
        logger.warning("of %s, %d folders cannot be read", collection.uid, len(away))
    held = set(collection.documents.values_list("name", flat=True))
    room = max(0, settings.AGENTSITE_DOCUMENTS - len(held))
    changed = [each for name, each in there.items() if known.get(name, each.stamp) != each.stamp]
    fresh = [each for name, each in there.items() if name not in held]
    if len(fresh) > room:
        logger.warning("of %s, %d files have no room", collection.uid, len(fresh) - room)
    # What can be taken up by none of the looks stands in the way of nothing else.
    changed = [*changed, *fresh[:room]][:at_once]
    root = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        taken = sum(_take(collection, root, each) for each in changed)
    finally:
        os.close(root)
    return len(gone) + taken


def _watched(collection: Collection) -> DocumentQuerySet:
    return Document.objects.filter(collection=collection, watched=True)


def _hold(collection: Collection, why: str) -> None:
    Collection.objects.filter(pk=collection.pk).exclude(held_back=why).update(held_back=why)


def _take(collection: Collection, root: int, file: File) -> bool:
    """Whether it is to be read. What is too large or cannot be opened is passed over until it changes."""
    data = _read(root, file.path)
    with transaction.atomic():
        held = Collection.objects.select_for_update(of=("self",), no_key=True)
        if not held.filter(pk=collection.pk).exists():
            return False
        rows = Document.objects.select_for_update(of=("self",), no_key=True)
        document = rows.filter(collection=collection, name=file.path).first()
        written = WAITS if document is not None else None
        if document is None:
            if collection.documents.count() >= settings.AGENTSITE_DOCUMENTS:
                return False
            document = Document(collection=collection, name=file.path, watched=True)
        elif not document.watched or document.stamp == file.stamp:
            return False  # somebody uploaded one of this name, or another process was first
        document.stamp, document.mount = file.stamp, file.mount
        document.state, document.claimed_at, document.tries = Document.State.WAITING, None, 0
        document.problem = document.problem_code = ""
        document.updated_at = timezone.now()
        if not data:
            document.state = Document.State.FAILED
            document.problem = "it is empty, too large or cannot be opened"
            document.problem_code = "unreadable"
        document.save(update_fields=written)
        DocumentBody.objects.filter(document=document).delete()
        if data:
            DocumentBody.objects.create(document=document, data=data)
            dispatch(INDEX, document_id=document.pk)
    return bool(data)


def _files(
    directory: Path, unread: list[str], mounts: list[str], most: int = ENTRIES
) -> Generator[File]:
    """Raises OSError where the directory cannot be read; the path of one below it that cannot is put into
    `unread`, that of one where another device begins into `mounts`."""
    looked = 0

    def below(place: int, above: str, mount: str, depth: int) -> Iterator[File]:
        """One is open of each level at a time: there may be more folders than a process may open."""
        nonlocal looked
        # Of folders alone: where layers lie above each other, files have the devices of these.
        device = os.fstat(place).st_dev
        with os.scandir(place) as entries:
            folders: list[str] = []
            for entry in entries:
                looked += 1
                if looked > most:
                    raise TooMany(f"it has more than {most} files")
                if entry.name.startswith(".") or entry.is_symlink():
                    continue
                if not entry.is_dir(follow_symlinks=False):
                    if (file := _file(f"{above}{entry.name}", entry, mount)) is not None:
                        yield file
                elif depth < DEPTH:
                    folders.append(entry.name)
        for name in folders:
            path = f"{above}{name}/"
            try:
                inner = os.open(name, _FOLDER, dir_fd=place)
            except OSError as problem:
                if problem.errno not in _GONE:
                    unread.append(path)
                continue
            try:
                begins = os.fstat(inner).st_dev != device
                if begins:
                    mounts.append(path)
                yield from below(inner, path, path if begins else mount, depth + 1)
            except OSError:
                unread.append(path)
            finally:
                os.close(inner)

    root = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield from below(root, "", "", 0)
    finally:
        os.close(root)


def _file(path: str, entry: os.DirEntry[str], mount: str) -> File | None:
    try:
        found = entry.stat(follow_symlinks=False)
        check_name(path)
    except (OSError, Invalid):
        return None
    if not _is_plain(found):
        return None
    return File(path, f"{found.st_mtime_ns}:{found.st_ctime_ns}:{found.st_size}", mount)


def _read(root: int, path: str) -> bytes:
    """What stands in it; nothing where that is more than a document may have. Each part of the way is opened
    by itself, since a link may have taken its place meanwhile."""
    *folders, name = path.split("/")
    place: int | None = os.dup(root)
    for folder in folders:
        above, place = place, _open(place, folder, os.O_DIRECTORY) if place is not None else None
        if above is not None:
            os.close(above)
    if place is None:
        return b""
    try:
        opened = _open(place, name, os.O_NONBLOCK)
    finally:
        os.close(place)
    if opened is None:
        return b""
    with os.fdopen(opened, "rb") as file:
        most = settings.AGENTSITE_DOCUMENT_BYTES
        if not _is_plain(os.fstat(opened)):
            return b""
        data = file.read(most + 1)
    return data if len(data) <= most else b""


def _open(place: int, name: str, flags: int) -> int | None:
    try:
        return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | flags, dir_fd=place)
    except OSError:
        return None


def _is_plain(found: os.stat_result) -> bool:
    """A file that has no other name: that one may be anywhere."""
    return stat.S_ISREG(found.st_mode) and found.st_nlink == 1

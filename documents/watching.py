"""Keeps the documents of a collection as the files of a directory are that the operator named for it.

What is new or changed there is read in the background, as an upload is; what is gone is forgotten. Nobody
acts here but the server. It never leaves the directory: links are not followed, nor is a file read that has
another name elsewhere. Where the directory itself cannot be read, nothing is forgotten.
"""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from harness.errors import Invalid
from jobs.dispatch import dispatch

from .actions.collections import check_name
from .indexing import INDEX
from .models import Collection, Document, DocumentBody

WATCH = "documents.watch"
DEPTH = 16
ENTRIES = 50_000
"""Names that one look goes through; a directory with more is not watched."""
AT_ONCE = 50
"""Files that one look takes up; the rest is the next one's."""
logger = logging.getLogger(__name__)


class TooMany(Exception):
    """The directory has more than anybody looks through."""


@dataclass(frozen=True, slots=True)
class File:
    path: str
    """From the directory on, between slashes."""
    stamp: str


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
            logger.warning("the documents of %s were not looked at: %s", uid, problem)


def watch(collection: Collection, directory: Path) -> int:
    """How many documents are read anew or forgotten. Raises OSError, TooMany."""
    there = {file.path: file for file in _files(directory)}
    rows = Document.objects.filter(collection=collection, watched=True)
    known = dict(rows.values_list("name", "stamp"))
    gone = [name for name in known if name not in there]
    for name in gone:
        rows.filter(name=name).delete()
    changed = [each for each in there.values() if known.get(each.path) != each.stamp][:AT_ONCE]
    root = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        taken = sum(_take(collection, root, each) for each in changed)
    finally:
        os.close(root)
    return len(gone) + taken


def _take(collection: Collection, root: int, file: File) -> bool:
    """Whether it is to be read. What is too large or cannot be opened is passed over until it changes."""
    data = _read(root, file.path)
    with transaction.atomic():
        held = Collection.objects.select_for_update(of=("self",), no_key=True)
        if not held.filter(pk=collection.pk).exists():
            return False
        document = Document.objects.filter(collection=collection, name=file.path).first()
        if document is None:
            if collection.documents.count() >= settings.AGENTSITE_DOCUMENTS:
                return False
            document = Document(collection=collection, name=file.path, watched=True)
        elif not document.watched:
            return False  # somebody uploaded one of this name
        document.stamp = file.stamp
        document.state, document.claimed_at, document.tries = Document.State.WAITING, None, 0
        document.problem = document.problem_code = ""
        document.updated_at = timezone.now()
        if not data:
            document.state = Document.State.FAILED
            document.problem = "it is empty, too large or cannot be opened"
            document.problem_code = "unreadable"
        document.save()
        DocumentBody.objects.filter(document=document).delete()
        if data:
            DocumentBody.objects.create(document=document, data=data)
            dispatch(INDEX, document_id=document.pk)
    return bool(data)


def _files(directory: Path) -> Iterator[File]:
    """Raises OSError where the directory cannot be read; one below it that cannot is passed over."""
    looked = 0
    waiting = [("", os.open(directory, os.O_RDONLY | os.O_DIRECTORY), 0)]
    while waiting:
        above, place, depth = waiting.pop()
        try:
            with os.scandir(place) as entries:
                for entry in entries:
                    looked += 1
                    if looked > ENTRIES:
                        for _above, other, _depth in waiting:
                            os.close(other)
                        waiting = []
                        raise TooMany(f"it has more than {ENTRIES} files")
                    if entry.name.startswith(".") or entry.is_symlink():
                        continue
                    path = f"{above}{entry.name}"
                    if entry.is_dir(follow_symlinks=False):
                        below = _open(place, entry.name, os.O_DIRECTORY) if depth < DEPTH else None
                        if below is not None:
                            waiting.append((f"{path}/", below, depth + 1))
                    elif (file := _file(path, entry)) is not None:
                        yield file
        finally:
            os.close(place)


def _file(path: str, entry: os.DirEntry[str]) -> File | None:
    try:
        found = entry.stat(follow_symlinks=False)
        check_name(path)
    except (OSError, Invalid):
        return None
    if not _is_plain(found):
        return None
    return File(path, f"{found.st_mtime_ns}:{found.st_ctime_ns}:{found.st_size}")


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

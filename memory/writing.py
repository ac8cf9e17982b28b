"""Writes memories: a row as it is now and, with it, the version that stays.

The callers hold the store (`access.held_store`) and have decided that it may be; here stand the rules that
hold for every content, whoever brings it.
"""

from __future__ import annotations

import hashlib
from typing import Any

from django.conf import settings
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import User
from harness.errors import Conflict, Invalid, LimitReached, TooLarge
from harness.redaction import redacted_text
from reading.linear import whole_characters

from .access import Author
from .models import Memory, MemoryStore, MemoryVersion
from .paths import check_path
from .retrieval.words import indexed
from .vectors import text_written

CONTENT_LIMIT = 102_400
"""Bytes of one memory."""
Operation = MemoryVersion.Operation


class HoldsSecret(Invalid):
    """What is to be remembered looks like a secret; a vault is the place for those."""

    code = "holds_secret"


def sha_of(content: str) -> str:
    return hashlib.sha256(content.encode()).hexdigest()


def check_content(content: str) -> str:
    """Raises TooLarge, Invalid for what no database holds, HoldsSecret."""
    if len(content.encode("utf-8", "replace")) > CONTENT_LIMIT:
        raise TooLarge(
            _("A memory has %(most)d bytes at most.") % {"most": CONTENT_LIMIT},
            field="content",
            hint=_("Write less, or several."),
        )
    if "\0" in content or whole_characters(content) != content:
        raise Invalid(
            _("It holds characters that are none."), field="content", hint=_("Send plain text.")
        )
    if redacted_text(content) != content:
        raise HoldsSecret(
            _("It looks as if it held a password, a key or a token."),
            field="content",
            hint=_("Leave the secret out; it belongs into a vault."),
        )
    return content


def words_of(content: str) -> str:
    """What it is found by, for who is about to write it: a long text takes half a second, for which nobody
    is to wait. Nothing of one that cannot be written."""
    return indexed(content) if len(content) <= CONTENT_LIMIT else ""


def write_new(
    *,
    store: MemoryStore,
    path: str,
    content: str,
    author: Author,
    account: User,
    words: str | None = None,
    **fields: Any,
) -> Memory:
    """A memory and its first version. `words`: of its content, where they were read before. `fields`: further
    columns. Raises Invalid, TooLarge, Conflict for a path that is taken, LimitReached."""
    check_path(path)
    check_content(content)
    _require_free(store, path)
    if store.memories.count() >= settings.AGENTSITE_MEMORIES:
        raise LimitReached(
            _("There are %(most)d memories in this store already.")
            % {"most": settings.AGENTSITE_MEMORIES},
            hint=_("Delete what is not needed any more."),
        )
    memory = Memory(store=store, path=path, **fields)
    version = _version(memory, Operation.CREATED, content, author, account)
    _take(memory, content, version, words)
    memory.save(force_insert=True)
    text_written(memory, new=True)
    return memory


def write_change(
    memory: Memory,
    *,
    author: Author,
    account: User | None,
    path: str | None = None,
    content: str | None = None,
    words: str | None = None,
) -> Memory:
    """None: as it was. What changes nothing adds no version. Raises as `write_new`."""
    path = memory.path if path is None else check_path(path)
    content = memory.content if content is None else check_content(content)
    if (path, content) == (memory.path, memory.content):
        return memory
    if path != memory.path:
        _require_free(memory.store, path)
    memory.path = path
    said = memory.content
    version = _version(memory, Operation.MODIFIED, content, author, account)
    _take(memory, content, version, words)
    memory.updated_at = version.created_at
    memory.save()
    if content != said:
        text_written(memory)
    return memory


def write_less(memory: Memory, *, author: Author, path: str, content: str) -> Memory:
    """What is left of it, in place of all that it and its versions said. Nobody wrote anything, so it is as
    old as before. Raises as `write_new`."""
    if (path, content) != (memory.path, memory.content):
        if path != memory.path:
            _require_free(memory.store, check_path(path))
        memory.path = path
        check_content(content)
        said = memory.content
        version = _version(memory, Operation.MODIFIED, content, author, None)
        _take(memory, content, version)
        memory.save()
        if content != said:
            text_written(memory)
    take_out_all(memory.store, memory.uid, author, but=memory.version_uid)
    return memory


def write_end(memory: Memory, *, author: Author, account: User | None) -> None:
    """Take the memory away; its versions stay, and one says that. What was suggested in its place waits at
    its path from then on: the oldest, and others for that."""
    waiting = _suggested(memory)
    _version(memory, Operation.DELETED, None, author, account)
    path = memory.path
    memory.delete()
    for number, each in enumerate(waiting):
        each.supersedes = waiting[0] if number else None
        each.save(update_fields=["supersedes"])
        if not number:
            write_change(each, author=author, account=account, path=path)


def write_away(
    memory: Memory, *, author: Author, account: User | None, suggested: bool = True
) -> None:
    """Take the memory away with everything that its versions say. That there was one stays. `suggested`:
    with what waits to take its place, which repeats it; else that waits on, as by `write_end`."""
    for each in _suggested(memory) if suggested else ():
        write_away(each, author=author, account=account)
    store, uid = memory.store, memory.uid
    write_end(memory, author=author, account=account)
    take_out_all(store, uid, author)


def take_out(version: MemoryVersion, author: Author) -> None:
    """Blank what a version says, for good. Who wrote it when stays."""
    version.path = version.content = version.sha256 = version.size = None
    version.redacted_at = timezone.now()
    version.redacted_kind, version.redacted_uid = author.kind, author.uid
    version.save()


def take_out_all(store: MemoryStore, memory_uid: str, author: Author, *, but: str = "") -> None:
    """Of all versions that a memory had. `but`: not this one's."""
    rows = MemoryVersion.objects.filter(
        store=store, memory_uid=memory_uid, redacted_at__isnull=True
    )
    for version in rows.exclude(uid=but):
        take_out(version, author)


def _suggested(memory: Memory) -> list[Memory]:
    """Other texts that wait to take its place, the oldest first."""
    rows = Memory.objects.filter(supersedes=memory, untrusted=True, confirmed_at=None)
    found = rows.select_related("store").order_by("pk")
    return [each for each in found if each.is_suggestion]


def _require_free(store: MemoryStore, path: str) -> None:
    """A path is one memory's, and no folder of others: on disk it could not be both. The path of one that
    waits is of strangers' words, and is not told to who did not name it."""
    parts = path.split("/")
    above = ["/".join(parts[:end]) for end in range(2, len(parts))]
    there = Memory.objects.filter(store=store)
    below = there.filter(path__startswith=f"{path}/")
    taken = there.filter(path__in=[path, *above]).first() or below.trusted().first()
    if taken is not None:
        raise Conflict(
            _("There is a memory at %(path)s already.") % {"path": taken.path},
            hint=_("Change that one, or choose another path."),
        )
    if below.exists():
        raise Conflict(
            _("The path %(path)s is taken already.") % {"path": path},
            hint=_("Choose another one."),
        )


def _version(
    memory: Memory, operation: str, content: str | None, author: Author, account: User | None
) -> MemoryVersion:
    return MemoryVersion.objects.create(
        store=memory.store,
        memory_uid=memory.uid,
        operation=operation,
        path=memory.path,
        content=content,
        sha256=None if content is None else sha_of(content),
        size=None if content is None else len(content.encode()),
        author_kind=author.kind,
        author_uid=author.uid,
        author=account,
    )


def _take(memory: Memory, content: str, version: MemoryVersion, words: str | None = None) -> None:
    memory.content = content
    memory.sha256 = version.sha256 or ""
    memory.size = version.size or 0
    memory.version_uid = version.uid
    memory.terms = f"{indexed(memory.path)} {indexed(content) if words is None else words}".strip()
    memory.audience = memory.store.audience

"""Memories are written, changed and deleted at their paths, and taken out of the versions of before."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import User
from audit.models import AuditEntry
from harness.errors import Conflict, NotFound
from memory.access import Author, author_of, held_memory, held_store, require_in_force
from memory.auditing import about_store
from memory.models import Memory, MemoryStore, MemoryVersion
from memory.writing import sha_of, take_out, words_of, write_change, write_end, write_new


class MemoryChanged(Conflict):
    """Somebody else was first: it is not what the asker has read."""

    code = "memory_changed"


def create_memory(
    *,
    actor: User,
    store: MemoryStore,
    path: str,
    content: str,
    author: Author | None = None,
    words: str | None = None,
    **fields: Any,
) -> Memory:
    """Never overwrites. `fields`: further columns of it. `words`: of its content, as `words_of` gives them,
    where the caller has a transaction. Raises NotFound, Forbidden, Conflict for an archived store and for a
    path that is taken, Invalid, HoldsSecret, TooLarge, LimitReached."""
    words = words_of(content) if words is None else words
    with transaction.atomic():
        held = held_store(actor, store)
        require_in_force(held)
        return write_new(
            store=held,
            path=path,
            content=content,
            author=author or author_of(actor),
            account=actor,
            words=words,
            **fields,
        )


def change_memory(
    *,
    actor: User,
    memory: Memory,
    path: str | None = None,
    content: str | None = None,
    expected_sha256: str | None = None,
    author: Author | None = None,
    words: str | None = None,
) -> Memory:
    """None: as it was. Raises as `create_memory`, and MemoryChanged unless it has the expected content."""
    words = words_of(content) if words is None and content is not None else words
    with transaction.atomic():
        held = held_memory(actor, memory)
        require_in_force(held.store)
        require_unchanged(held, expected_sha256)
        by = author or author_of(actor)
        return write_change(held, author=by, account=actor, path=path, content=content, words=words)


def delete_memory(
    *,
    actor: User,
    memory: Memory,
    expected_sha256: str | None = None,
    author: Author | None = None,
) -> None:
    """Its versions stay. Raises NotFound, Forbidden, MemoryChanged."""
    with transaction.atomic():
        held = held_memory(actor, memory)
        require_unchanged(held, expected_sha256)
        write_end(held, author=author or author_of(actor), account=actor)


def redact_version(
    *, actor: User, version: MemoryVersion, author: Author | None = None
) -> MemoryVersion:
    """Take out for good what it says. Again changes nothing. Raises NotFound, Forbidden, and Conflict for
    the version that a memory has now."""
    with transaction.atomic():
        store = held_store(actor, version.store)
        held = MemoryVersion.objects.filter(pk=version.pk).first()
        if held is None:
            raise NotFound(_("There is no such version."))
        if Memory.objects.filter(store=store, version_uid=held.uid).exists():
            raise Conflict(
                _("This is what the memory says now."),
                hint=_("Change or delete the memory first."),
            )
        if held.redacted_at is None:
            take_out(held, author or author_of(actor))
            about_store(
                AuditEntry.Action.MEMORY_REDACTED,
                actor,
                store,
                memory=held.memory_uid,
                version=held.uid,
            )
    return held


def require_unchanged(memory: Memory, expected: str | None) -> None:
    """Raises MemoryChanged unless it has the expected content; None: whatever it says."""
    if expected is not None and expected != sha_of(memory.content):
        raise changed_meanwhile()


def changed_meanwhile() -> MemoryChanged:
    return MemoryChanged(_("It was changed meanwhile."), hint=_("Read it again, and decide anew."))

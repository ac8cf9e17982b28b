"""Learnings: what is remembered of a person or a project, once each, and what takes the place of what.

A text of a kind (fact, preference, lesson, correction) with the key that says what it is about. The same
again changes nothing; another text under the same key ends the one before, which stays as what was true
until then. Forgetting takes out everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import Organisation, User
from accounts.permissions import require_member
from audit.models import AuditEntry
from harness.errors import Conflict, Forbidden, Invalid, TooLarge
from memory.access import Author, author_of, held_memory, held_store, require_in_force
from memory.actions.memories import changed_meanwhile, require_unchanged
from memory.auditing import about_store
from memory.keys import alike_in, clean_key
from memory.models import Kind, Memory, MemoryStore
from memory.paths import as_part
from memory.searching import search_memories
from memory.writing import write_away, write_change, write_end, write_new

TEXT_LIMIT = 2_000
"""Characters of a learning: one thing, not a document."""
LEARNABLE = (Kind.FACT, Kind.PREFERENCE, Kind.LESSON, Kind.CORRECTION)


class MemoryEnded(Conflict):
    """What waits for a yes has ended meanwhile, and takes the place of nothing."""

    code = "memory_ended"


@dataclass(frozen=True, slots=True)
class Source:
    """Where a learning came from, by public ids; empty: a person typed it."""

    conversation: str = ""
    event: str = ""
    agent: str = ""
    untrusted: bool = False
    """Strangers' words were in what it was made from."""


@dataclass(frozen=True, slots=True)
class Remembered:
    memory: Memory
    new: bool
    """False: it was known."""
    changed: bool = False
    """It was known, and says more by this."""
    superseded: Memory | None = None
    stood: str = ""
    """The version of what was there about the same, be it the same or another text; empty: nothing."""


def own_store(*, actor: User, organisation: Organisation) -> MemoryStore:
    """The one in which the person's agents keep what they learn of her; made when it is first asked for.
    Raises NotFound for a stranger to the organisation."""
    require_member(actor, organisation)
    with transaction.atomic():
        User.objects.select_for_update(no_key=True).get(pk=actor.pk)
        mine = MemoryStore.objects.filter(organisation=organisation, owner=actor, main=True)
        found = mine.first()
        if found is None:
            found = MemoryStore.objects.create(
                organisation=organisation, owner=actor, name=_("About me"), main=True
            )
            about_store(AuditEntry.Action.MEMORY_STORE_MADE, actor, found, scope=found.scope)
    return found


def remember(
    *,
    actor: User,
    store: MemoryStore,
    text: str,
    kind: str = Kind.FACT,
    key: str = "",
    source: Source | None = None,
    author: Author | None = None,
    valid_from: datetime | None = None,
) -> Remembered:
    """Keep a learning, unless it is known. One that waits for a person's yes ends and changes nothing that
    does not wait: it takes the place of that with the yes. Raises NotFound, Forbidden, Conflict for an
    archived store, Invalid, HoldsSecret, TooLarge, LimitReached."""
    text = text.strip()
    if kind not in LEARNABLE:
        raise Invalid(
            _("There is no such kind of memory."),
            field="kind",
            hint=_("Choose from: %(names)s.") % {"names": ", ".join(LEARNABLE)},
        )
    if not text:
        raise Invalid(_("It is empty."), field="text", hint=_("Say what is to be remembered."))
    if len(text) > TEXT_LIMIT:
        raise TooLarge(
            _("It is longer than %(most)d characters.") % {"most": TEXT_LIMIT},
            field="text",
            hint=_("Remember one thing at a time."),
        )
    source = source or Source()
    key = clean_key(key)
    now = timezone.now()
    with transaction.atomic():
        held = held_store(actor, store)
        require_in_force(held)
        same, before = _about_the_same(actor, held, kind, key, text, hold=True)
        there = same or before
        stood = "" if there is None else there.version_uid
        by = author or author_of(actor)
        waits = source.untrusted and author is not None
        stays = before is not None and waits and not before.waits
        ends = before
        if before is not None and stays and same is None:
            ends = _against(before)
            same = ends if ends is not None and ends.content == text else None
        if same is not None:
            more = len(text) > len(same.content) and (same.waits or not waits)
            if more:
                write_change(same, author=by, account=actor, content=text)
            return Remembered(same, new=False, changed=more, stood=stood)
        if ends is not None:
            _end(ends, now)
        memory = write_new(
            store=held,
            path=_free_path(held, kind, key or text),
            content=text,
            author=by,
            account=actor,
            kind=kind,
            key="" if stays else key,
            valid_from=valid_from or now,
            supersedes=before,
            untrusted=source.untrusted,
            confirmed_at=now if author is None else None,
            source_conversation=source.conversation,
            source_event=source.event,
            source_agent=source.agent,
        )
    return Remembered(memory, new=True, superseded=None if stays else before, stood=stood)


def before_sharing(*, user: User, memory: Memory, store: MemoryStore) -> tuple[Memory | None, str]:
    """What stands in a store that she sees about the same as her memory, and what would be said there
    once `promote_memory` has shared it. Changes nothing."""
    text = memory.content.strip()
    kind, key = _kind_shared(memory), clean_key(memory.key)
    same, before = _about_the_same(user, store, kind, key, text, hold=False)
    if same is not None and len(text) <= len(same.content):
        return same, same.content
    return same or before, text


def correct_memory(
    *,
    actor: User,
    memory: Memory,
    text: str,
    author: Author | None = None,
    replaced_version_uid: str | None = None,
) -> Memory:
    """Put it right; what it said before is in its versions. A person who does so says yes to it, as by
    `confirm_memory`; a program and a service account do not. `replaced_version_uid`: of what she was shown
    that it takes the place of. Raises as `remember` and `confirm_memory`."""
    text = text.strip()
    if not text:
        raise Invalid(_("It is empty."), field="text", hint=_("Say how it is, or forget it."))
    with transaction.atomic():
        held = held_memory(actor, memory)
        require_in_force(held.store)
        if replaced_version_uid not in {None, _version_of(replaced_by(held))}:
            raise changed_meanwhile()
        write_change(held, author=author or author_of(actor), account=actor, content=text)
        if author is None and not actor.is_service:
            return _confirm(held, actor)
    return held


def mark_memory(*, actor: User, memory: Memory, pinned: bool) -> Memory:
    """Pin or unpin it. Raises NotFound, Forbidden."""
    with transaction.atomic():
        held = held_memory(actor, memory)
        held.pinned, held.marked_at = pinned, timezone.now()
        held.save(update_fields=["pinned", "marked_at"])
    return held


def replaced_by(memory: Memory) -> Memory | None:
    """What ends, or says something else from then on, with a person's yes to it."""
    before = memory.supersedes
    if before is None or not memory.waits:
        return None
    return before if memory.is_suggestion or before.valid_until is None else None


def confirm_memory(
    *, actor: User, memory: Memory, version_uid: str, replaced_version_uid: str = ""
) -> Memory:
    """Say yes to what came from strangers, in the version that she was shown, and to the end of what that
    takes the place of (`replaced_by`), in its version; empty: she was shown none. The memory that says it
    from now on: of a suggested change the one that it is for. Raises NotFound, Forbidden, also for a service
    account, MemoryChanged where either is another version by now, and MemoryEnded."""
    with transaction.atomic():
        held = held_memory(actor, memory)
        if actor.is_service:
            raise Forbidden(_("A person confirms memories."), hint=_("Ask one to do it."))
        shown = (version_uid, replaced_version_uid)
        if shown != (held.version_uid, _version_of(replaced_by(held))):
            raise changed_meanwhile()
        return _confirm(held, actor)


def forget_memory(
    *,
    actor: User,
    memory: Memory,
    version_uid: str | None = None,
    author: Author | None = None,
) -> None:
    """Take it away with everything that its versions say. That there was one, and who forgot it, stays.
    Raises NotFound, Forbidden, and MemoryChanged where it has another version than is given."""
    with transaction.atomic():
        held = held_memory(actor, memory)
        if version_uid not in {None, held.version_uid}:
            raise changed_meanwhile()
        store, uid = held.store, held.uid
        write_away(held, author=author or author_of(actor), account=actor)
        about_store(AuditEntry.Action.MEMORY_FORGOTTEN, actor, store, memory=uid)


def forget_memories(
    *, actor: User, memories: Sequence[Memory], author: Author | None = None
) -> int:
    """All of them, or none; how many. Raises as `forget_memory`."""
    with transaction.atomic():
        # What waits in the place of another goes with that.
        for memory in sorted(memories, key=lambda each: not each.is_suggestion):
            forget_memory(actor=actor, memory=memory, author=author)
    return len(memories)


def promote_memory(*, actor: User, memory: Memory, store: MemoryStore, sha256: str) -> Remembered:
    """A copy of what she has in a store that others share, on her own word. Raises NotFound, Forbidden
    where she may not write there, Conflict, Forbidden for what strangers wrote and nobody confirmed, and
    MemoryChanged unless its content has this hash."""
    with transaction.atomic():
        mine = held_memory(actor, memory)
        require_unchanged(mine, sha256)
        if mine.untrusted and mine.confirmed_at is None:
            raise Forbidden(
                _("It came from what strangers wrote."), hint=_("Confirm it first, or leave it.")
            )
        made = remember(
            actor=actor,
            store=store,
            text=mine.content,
            kind=_kind_shared(mine),
            key=mine.key,
            source=Source(mine.source_conversation, mine.source_event, mine.source_agent),
        )
        about_store(AuditEntry.Action.MEMORY_PROMOTED, actor, store, memory=made.memory.uid)
    return made


def _version_of(memory: Memory | None) -> str:
    return "" if memory is None else memory.version_uid


def _kind_shared(memory: Memory) -> str:
    return memory.kind if memory.kind in LEARNABLE else Kind.FACT


def _confirm(memory: Memory, actor: User) -> Memory:
    """Say yes; what it contradicts and was left standing meanwhile ends now, or says what was suggested.
    Raises MemoryEnded."""
    now = timezone.now()
    before = replaced_by(memory)
    if before is not None and memory.is_suggestion:
        return _take_over(memory, before, actor, now)
    if before is not None:
        if memory.valid_until is not None:
            raise MemoryEnded(
                _("It holds no more: something else waits in its place, or it has ended."),
                hint=_("Decide about that, or have it remembered anew."),
            )
        _end(before, now)
        memory.key, memory.valid_from = before.key, now
    memory.confirmed_at = now
    memory.save(update_fields=["confirmed_at", "key", "valid_from"])
    return memory


def _take_over(suggested: Memory, memory: Memory, actor: User, now: datetime) -> Memory:
    by = author_of(actor)
    write_end(suggested, author=by, account=actor)
    memory.untrusted, memory.confirmed_at = True, now
    memory.source_conversation = suggested.source_conversation
    memory.save(update_fields=["untrusted", "confirmed_at", "source_conversation"])
    return write_change(memory, author=by, account=actor, content=suggested.content)


def _end(memory: Memory, now: datetime) -> None:
    memory.valid_until = max(now, memory.valid_from or now)
    memory.save(update_fields=["valid_until"])


def _about_the_same(
    actor: User, store: MemoryStore, kind: str, key: str, text: str, *, hold: bool
) -> tuple[Memory | None, Memory | None]:
    """What says the same there, and what says something else about it or has the same key. `hold`: that one
    until the transaction ends."""
    under = Memory.objects.filter(store=store, kind=kind, key=key, valid_until=None)
    if hold:
        under = under.select_for_update(of=("self",), no_key=True)
    before = under.first() if key else None
    if before is not None:
        return (before, before) if before.content == text else (None, before)
    here = MemoryStore.objects.filter(pk=store.pk)
    near = search_memories(actor, text, here, limit=5)
    alike = alike_in(store, kind, text, [hit.memory for hit in near.hits])
    if alike is None:
        return None, None
    return (alike.memory, None) if alike.same else (None, alike.memory)


def _against(memory: Memory) -> Memory | None:
    """The learning that waits for a yes to take its place."""
    others = Memory.objects.filter(supersedes=memory, valid_until=None).exclude(kind=Kind.NOTE)
    return others.filter(untrusted=True, confirmed_at=None).first()


def _free_path(store: MemoryStore, kind: str, words: str) -> str:
    base = f"/{kind}s/{as_part(words)}"
    taken = set(store.memories.filter(path__startswith=base).values_list("path", flat=True))
    number, path = 1, f"{base}.md"
    while path in taken:
        number += 1
        path = f"{base}-{number}.md"
    return path

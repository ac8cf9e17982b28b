"""The stores of a conversation as folders that its commands see, and what they change there.

The tables are the truth. Before a run, before each of its calls and when it rests, what commands changed
in a folder becomes memories and versions, whichever way a file was changed; then what the tables have anew is
written into the folder. Files are read and written like those of a workspace: never through a link. Commands
may fill a folder as they like, and others wait while tables are written: files are read before that, and of
many changes some are taken in at each look, the others later.
"""

from __future__ import annotations

import logging
import os
import random
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, Max, OuterRef, Q
from django.db.models.signals import post_delete
from django.dispatch import receiver
from django.utils.translation import gettext as _

from conversations.models import Conversation, Event
from harness.errors import AgentError
from harness.events import Event as EventValue
from harness.rules import LevelledRule
from jobs.dispatch import dispatch
from jobs.prepared import Prepared
from memory.access import Author
from memory.actions.memories import delete_memory
from memory.models import AuthorKind, Memory, MemoryStore
from memory.retrieval.words import indexed
from memory.writing import CONTENT_LIMIT, sha_of
from sandbox.contract import Mount
from tools_app.removing import remove_tree
from tools_app.workspace import Workspace

from .changes import change_in, create_in
from .models import Access, AttachedStore
from .reach import reach_of
from .strangers import commands_may_bring_them, has_strangers_words

logger = logging.getLogger(__name__)

FILES_BESIDE = 200
"""So many more files than a store may have memories are looked at."""
CHANGES = 100
"""Files that one look keeps or forgets."""
CHARACTERS = 200_000
"""Of the files that one look keeps."""
LAID_OUT = 200
"""Files that one look writes into a folder."""
SMALL = 200_000
"""Bytes of a folder that is looked at while a rest is stored."""
FOLLOW = "recall.follow"
PROBLEMS = 20
UNNAMED = "what strangers may have named: look in the folder for what is no text, too large or out of place"
"""Said of such files without their names, which the prompt has in every turn."""

_ATTACHED = Prepared(
    lambda given: (
        AttachedStore.objects.filter(conversation=given.conversation)
        .select_related("store__organisation", "store__agent")
        .order_by("id")
    )
)


def has_stores() -> Exists:
    """Whether a conversation was given any."""
    return Exists(AttachedStore.objects.filter(conversation=OuterRef("pk")))


def attached_to(conversation: Conversation) -> list[AttachedStore]:
    """Those that may be used there now: of what its owner still sees, and of a person's own none where others
    read."""
    rows = _ATTACHED.all(conversation=conversation.pk)
    return _usable(conversation, rows, _seen(conversation, rows)) if rows else []


def _usable(
    conversation: Conversation, rows: Sequence[AttachedStore], seen: set[int]
) -> list[AttachedStore]:
    reach = reach_of(conversation)
    if not reach.on:
        return []
    return [
        each
        for each in rows
        if each.store_id in seen and (reach.personal or each.store.owner_id is None)
    ]


def _seen(conversation: Conversation, rows: Sequence[AttachedStore]) -> set[int]:
    """The keys of their stores that its owner sees: she may have left since they were attached."""
    stores = MemoryStore.objects.visible_to(conversation.owner)
    keys = stores.filter(pk__in=[each.store_id for each in rows]).values_list("pk", flat=True)
    return set(keys)


def _still_usable(conversation: Conversation) -> list[AttachedStore]:
    """`attached_to`, without the files of stores that its owner sees no more. These are noted no more before
    they go: what is noted and gone would be taken as removed by a command, should she come back."""
    rows = _ATTACHED.all(conversation=conversation.pk)
    if not rows:
        return []
    seen = _seen(conversation, rows)
    for attached in rows:
        folder = folder_of(conversation, attached)
        if attached.store_id not in seen and folder.is_dir():
            AttachedStore.objects.filter(pk=attached.pk).update(laid_out={}, problems=[])
            _remove_tree(folder)
    return _usable(conversation, rows, seen)


def mounts(conversation: Conversation) -> tuple[Mount, ...]:
    found = []
    for attached in _still_usable(conversation):
        folder = folder_of(conversation, attached)
        try:
            more = follow_changes(conversation, attached).unlaid
            for _look in range(settings.AGENTSITE_MEMORIES // LAID_OUT):
                more = more and follow_changes(conversation, attached, takes=False).unlaid
        except (AgentError, OSError):
            logger.exception("the memory store %s cannot be shown", attached.store.uid)
            continue
        label = _("the memory store “%(name)s”") % {"name": attached.name}
        found.append(Mount(folder, Path(attached.path), writable=writable(attached), label=label))
    return tuple(found)


def follow_calls(conversation: Conversation) -> tuple[LevelledRule, ...]:
    """No rule: asked with the rules, before each call and before a turn rests, so that what the call before
    changed is kept: who hears of a rest may remove the conversation, or begin the next one."""
    for attached in _laid_out(conversation):
        _follow(conversation, attached)
    return ()


def follow_rest(conversation: Conversation, row: Event, event: EventValue) -> None:
    """What is more than a little, a job takes in behind it: everybody waits while a rest is stored."""
    for attached in _laid_out(conversation):
        held = Workspace(folder_of(conversation, attached)).usage()
        is_small = held.complete and held.size <= SMALL and held.files <= LAID_OUT
        if not is_small or _follow(conversation, attached).left:
            dispatch(FOLLOW, attached=attached.pk)


def follow_on(key: int) -> None:
    """What that job does, as long as there is more of it."""
    row = AttachedStore.objects.select_related("conversation").filter(pk=key).first()
    if row is None:
        return
    for attached in _laid_out(row.conversation):
        if attached.pk == key and _follow(row.conversation, attached).left:
            dispatch(FOLLOW, attached=key)


def _laid_out(conversation: Conversation) -> list[AttachedStore]:
    usable = _still_usable(conversation)
    return [each for each in usable if folder_of(conversation, each).is_dir()]


class Followed(NamedTuple):
    """What one look left to be done."""

    left: bool = False
    """Changes of commands, beside such as were taken in."""
    unlaid: bool = False
    """Files that are not in the folder yet."""


def _follow(conversation: Conversation, attached: AttachedStore) -> Followed:
    try:
        return follow_changes(conversation, attached)
    except (AgentError, OSError):
        logger.exception("the memory store %s cannot be followed", attached.store.uid)
        return Followed()


def folder_of(conversation: Conversation, attached: AttachedStore) -> Path:
    return Path(settings.AGENTSITE_DATA_DIR) / "memory" / conversation.uid / attached.slug


@dataclass(slots=True)
class _Look:
    """What stands in a folder, beside what was noted of it, and what of that is taken in now."""

    noted: dict[str, str]
    there: dict[str, str]
    gone: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    """What is no text or too large."""
    changed: dict[str, tuple[str, str]] = field(default_factory=dict)
    """By path, what it says now, and the words of that."""
    left: set[str] = field(default_factory=set)
    """What else commands changed."""


def follow_changes(
    conversation: Conversation, attached: AttachedStore, *, takes: bool = True
) -> Followed:
    """One look both ways, in one transaction: what commands did, unless it `takes` nothing, then what the
    tables have."""
    folder = folder_of(conversation, attached)
    workspace = Workspace(folder)
    takes_in = takes if writable(attached) else None
    rows = AttachedStore.objects.filter(pk=attached.pk)
    noted = rows.values_list("laid_out", flat=True).first()
    look = _look_at(workspace, noted or {}, takes_in) if folder.is_dir() else None
    with transaction.atomic():
        held = rows.select_for_update(of=("self",)).get()
        held.store = attached.store
        stored = held.laid_out, held.problems, held.left_by_strangers
        if not folder.is_dir():
            # No command removed it, for which it is a mount: files were not restored, or are elsewhere.
            folder.mkdir(mode=0o755, parents=True, exist_ok=True)
            held.laid_out = {}
        if look is None or look.noted != held.laid_out:  # somebody else looked meanwhile
            look = _look_at(workspace, held.laid_out, takes_in)
        problems: list[str] = []
        kept = _keep(conversation, held, look, problems)
        seen, unlaid = _lay_out(conversation, held, workspace, look)
        told = list(dict.fromkeys(problems))[:PROBLEMS] if takes else held.problems
        if (seen, told, held.left_by_strangers) != stored:
            held.laid_out, held.problems = seen, told
            held.save(update_fields=["laid_out", "problems", "left_by_strangers"])
    return Followed(left=bool(look.left) and kept, unlaid=unlaid)


def _look_at(workspace: Workspace, noted: dict[str, str], takes: bool | None) -> _Look:
    """None: nothing that commands do counts."""
    look = _Look(noted, _hashes(workspace))
    if takes is None:
        return look
    gone = [path for path in noted if path not in look.there]
    is_whole = len(look.there) < _most_files()
    changed = [path for path, digest in look.there.items() if noted.get(path) != digest]
    if not takes:
        look.left = {*gone, *changed}
        return look
    if len(changed) > CHANGES:
        random.shuffle(changed)  # those that cannot be kept are in nobody's way for ever
    # Of more files than are looked at, what was noted may lie behind them.
    taken = CHANGES if is_whole else 0
    look.gone, look.left = gone[:taken], set(gone[taken:])
    room = CHARACTERS
    for path in changed:
        if len(look.gone) + len(look.changed) >= CHANGES or room <= 0:
            look.left.add(path)
            continue
        content = _content(workspace, path[1:])
        if content is None:
            look.unread.append(path)
        else:
            look.there[path] = sha_of(content)
            look.changed[path] = content, indexed(content)
            room -= len(content)
    return look


def _hashes(workspace: Workspace) -> dict[str, str]:
    """By path, the SHA-256 of each file's content; "" of what is no text or too large."""
    found: dict[str, str] = {}
    for entry in workspace.walk():
        if entry.kind != "file":
            continue
        if len(found) >= _most_files():
            break
        content = _content(workspace, entry.path)
        found[f"/{entry.path}"] = "" if content is None else sha_of(content)
    return found


def _most_files() -> int:
    return int(settings.AGENTSITE_MEMORIES) + FILES_BESIDE


def _content(workspace: Workspace, path: str) -> str | None:
    try:
        return workspace.read_bytes(path, CONTENT_LIMIT).decode()
    except (AgentError, UnicodeDecodeError, OSError):
        return None


def _keep(
    conversation: Conversation, attached: AttachedStore, look: _Look, problems: list[str]
) -> bool:
    """Whether anything is otherwise now."""
    if not (look.gone or look.unread or look.changed or look.left):
        attached.left_by_strangers = False
        return False
    untrusted = (
        attached.left_by_strangers
        or commands_may_bring_them(conversation)
        or has_strangers_words(conversation)
    )
    # What is left may be taken in where nobody knows any more who had spoken.
    attached.left_by_strangers = untrusted and bool(look.left)
    store, actor = attached.store, conversation.owner
    author = Author(AuthorKind.SESSION, conversation.uid)
    known = {each.path: each for each in shown_in(conversation, store, texts=False)}
    kept = False
    for path in look.gone:
        memory = known.get(path)
        if memory is not None and untrusted and not memory.waits:
            continue  # others are told it: the file comes back
        if memory is not None and memory.sha256 == look.noted[path]:
            try:
                delete_memory(actor=actor, memory=memory, author=author)
                kept = True
            except AgentError as problem:
                told = UNNAMED if memory.untrusted else f"{path}: {problem.message}"
                problems.append(told)
    for path in look.unread:
        told = _("%(path)s is no text or too large.") % {"path": path}
        problems.append(UNNAMED if untrusted else told)
    for path, (content, words) in look.changed.items():
        memory = known.get(path)
        if memory is None or memory.sha256 != look.there[path]:
            given: Any = {"untrusted": untrusted, "words": words}
            try:
                if memory is None:
                    create_in(conversation, attached, path, content, **given)
                else:
                    change_in(conversation, attached, memory, content, **given)
                kept = True
            except AgentError as problem:
                problems.append(UNNAMED if untrusted else f"{path}: {problem.message}")
    return kept


def shown_in(
    conversation: Conversation, store: MemoryStore, path: str | None = None, *, texts: bool = True
) -> list[Memory]:
    """Those of a store that it was given, without what strangers wrote elsewhere and nobody confirmed. A
    change that was suggested here stands in the place of what it is for, with the path of that. `path`: the
    one that is found there. Without `texts` each is read where it is asked what it says."""
    rows = store.memories.all() if texts else store.memories.defer("content", "terms")
    if path is not None:
        rows = rows.filter(Q(path=path) | Q(supersedes__path=path))
    seen = {
        each.pk: each
        for each in rows
        if not each.waits or each.source_conversation == conversation.uid
    }
    for each in list(seen.values()):
        key = each.supersedes_id
        if key is not None and key in seen and each.is_suggestion:
            each.path = seen.pop(key).path
    return [each for each in seen.values() if path is None or each.path == path]


def _lay_out(
    conversation: Conversation, attached: AttachedStore, workspace: Workspace, look: _Look
) -> tuple[dict[str, str], bool]:
    """Write what is different; what commands left there and could not be kept stays as it is. What is to be
    noted now, and whether more is to be written. Of what is not there nothing is noted: a command would have
    removed it."""
    shown = shown_in(conversation, attached.store, texts=False)
    wanted = {each.path: each for each in shown}
    noted = {path: digest for path, digest in look.noted.items() if path in look.left}
    written, unlaid = 0, False
    for path, memory in wanted.items():
        if path in look.left:
            continue
        if look.there.get(path) == memory.sha256:
            noted[path] = memory.sha256
            continue
        if path in look.noted and path in look.there:
            # Until it is written anew: else a command would have put it there.
            noted[path] = look.noted[path]
        if written == LAID_OUT:
            unlaid = True
            continue
        try:
            workspace.write_bytes(path[1:], memory.content.encode())
            if attached.access == Access.READ_ONLY:
                _let_read(folder_of(conversation, attached), path)
            noted[path] = memory.sha256
            written += 1
        except (AgentError, OSError):
            logger.warning("%s of %s cannot be written", path, attached.store.uid)
    for path in look.there:
        if path in look.noted and path not in wanted and look.noted[path] == look.there[path]:
            workspace.remove(path[1:])
    return noted, unlaid


@receiver(post_delete, sender=AttachedStore, dispatch_uid="recall.mounted.detached")
def _remove_folder(instance: AttachedStore, **_kwargs: Any) -> None:
    """With its conversation, or its store."""
    folder = folder_of(instance.conversation, instance)
    transaction.on_commit(partial(_remove_tree, folder))


def _remove_tree(folder: Path) -> None:
    with suppress(OSError):
        remove_tree(folder)


@receiver(post_delete, sender=Memory, dispatch_uid="recall.mounted.gone")
def _remove_file(instance: Memory, **_kwargs: Any) -> None:
    """Of a memory that is gone."""
    remove_files(instance.store_id, instance.path)
    if instance.is_suggestion and instance.supersedes_id is not None:
        for stood in Memory.objects.filter(pk=instance.supersedes_id):
            remove_files(stood.store_id, stood.path, of=instance.source_conversation)


def remove_files(store: int, path: str, *, of: str = "") -> None:
    """Once it is certain: from every folder, also of conversations that rest, and from what is noted of it.
    What is there now is written when one of them works again. `of`: from that of one conversation."""
    found = AttachedStore.objects.filter(store=store).select_related("conversation")
    for attached in found.filter(conversation__uid=of) if of else found:
        folder = folder_of(attached.conversation, attached)
        transaction.on_commit(partial(_without, attached.pk, folder, path), robust=True)


def last_use(store: MemoryStore) -> datetime | None:
    """When something last happened in a conversation whose commands see it as a folder: which files they read
    is not known."""
    given = AttachedStore.objects.filter(store=store)
    found: datetime | None = given.aggregate(at=Max("conversation__active_at"))["at"]
    return found


def _without(attached: int, folder: Path, path: str) -> None:
    """A path may be made of the words. It stays noted as long as anything is there: what is there and not
    noted would be taken as new."""
    with transaction.atomic():
        rows = AttachedStore.objects.select_for_update(of=("self",), no_key=True)
        held = rows.filter(pk=attached).first()
        with suppress(AgentError, OSError):
            Workspace(folder).remove(path[1:])
        if held is not None and path in held.laid_out and not os.path.lexists(folder / path[1:]):
            del held.laid_out[path]
            held.save(update_fields=["laid_out"])


def _let_read(folder: Path, path: str) -> None:
    """By the sandbox's own user, who is made the owner of folders to write alone. Nobody else can have put
    a link there."""
    file = folder / path[1:]
    file.chmod(0o644)
    for above in file.parents:
        if above == folder:
            break
        above.chmod(0o755)


def writable(attached: AttachedStore) -> bool:
    return attached.access == Access.READ_WRITE and attached.store.archived_at is None

"""The stores of a conversation as folders that its commands see, and what they change there.

The tables are the truth. Before a run, before each of its calls and when it rests, what commands changed
in a folder becomes memories and versions, whichever way a file was changed; then what the tables have anew is
written into the folder. Files are read and written like those of a workspace: never through a link.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

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
from jobs.prepared import Prepared
from memory.access import Author
from memory.actions.memories import delete_memory
from memory.models import AuthorKind, Memory, MemoryStore
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
            follow_changes(conversation, attached)
        except (AgentError, OSError):
            logger.exception("the memory store %s cannot be shown", attached.store.uid)
            continue
        label = _("the memory store “%(name)s”") % {"name": attached.name}
        found.append(Mount(folder, Path(attached.path), writable=writable(attached), label=label))
    return tuple(found)


def follow_calls(conversation: Conversation) -> tuple[LevelledRule, ...]:
    """No rule: asked with the rules, before each call, so that what the call before changed is kept."""
    _follow_all(conversation)
    return ()


def follow_rest(conversation: Conversation, row: Event, event: EventValue) -> None:
    _follow_all(conversation)


def _follow_all(conversation: Conversation) -> None:
    for attached in _still_usable(conversation):
        if folder_of(conversation, attached).is_dir():
            try:
                follow_changes(conversation, attached)
            except (AgentError, OSError):
                logger.exception("the memory store %s cannot be followed", attached.store.uid)


def folder_of(conversation: Conversation, attached: AttachedStore) -> Path:
    return Path(settings.AGENTSITE_DATA_DIR) / "memory" / conversation.uid / attached.slug


def follow_changes(conversation: Conversation, attached: AttachedStore) -> None:
    """Both ways, in one transaction: what commands did, then what the tables have."""
    folder = folder_of(conversation, attached)
    workspace = Workspace(folder)
    with transaction.atomic():
        held = AttachedStore.objects.select_for_update(of=("self",)).get(pk=attached.pk)
        held.store = attached.store
        stored = held.laid_out, held.problems
        if not folder.is_dir():
            # No command removed it, for which it is a mount: files were not restored, or are elsewhere.
            folder.mkdir(mode=0o755, parents=True, exist_ok=True)
            held.laid_out = {}
        problems: list[str] = []
        there = _hashes(workspace)
        if writable(held):
            _keep(conversation, held, workspace, there, problems)
        seen = _lay_out(conversation, held, workspace, there)
        told = list(dict.fromkeys(problems))[:PROBLEMS]
        if (seen, told) != stored:
            held.laid_out, held.problems = seen, told
            held.save(update_fields=["laid_out", "problems"])


def _hashes(workspace: Workspace) -> dict[str, str]:
    """By path, the SHA-256 of each file's content; "" of what is no text or too large."""
    found: dict[str, str] = {}
    for entry in workspace.walk():
        if entry.kind != "file":
            continue
        if len(found) >= settings.AGENTSITE_MEMORIES + FILES_BESIDE:
            break
        content = _content(workspace, entry.path)
        found[f"/{entry.path}"] = "" if content is None else sha_of(content)
    return found


def _content(workspace: Workspace, path: str) -> str | None:
    try:
        return workspace.read_bytes(path, CONTENT_LIMIT).decode()
    except (AgentError, UnicodeDecodeError, OSError):
        return None


def _keep(
    conversation: Conversation,
    attached: AttachedStore,
    workspace: Workspace,
    there: dict[str, str],
    problems: list[str],
) -> None:
    before: dict[str, str] = attached.laid_out
    changed = [path for path, digest in there.items() if before.get(path) != digest]
    gone = [path for path in before if path not in there]
    if not changed and not gone:
        return
    store, actor = attached.store, conversation.owner
    author = Author(AuthorKind.SESSION, conversation.uid)
    known = {each.path: each for each in shown_in(conversation, store)}
    untrusted = commands_may_bring_them(conversation) or has_strangers_words(conversation)
    for path in gone:
        memory = known.get(path)
        if memory is not None and untrusted and not memory.waits:
            continue  # others are told it: the file comes back
        if memory is not None and memory.sha256 == before[path]:
            try:
                delete_memory(actor=actor, memory=memory, author=author)
            except AgentError as problem:
                told = UNNAMED if memory.untrusted else f"{path}: {problem.message}"
                problems.append(told)
    for path in changed:
        content = _content(workspace, path[1:])
        memory = known.get(path)
        if content is None:
            told = _("%(path)s is no text or too large.") % {"path": path}
            problems.append(UNNAMED if untrusted else told)
        elif memory is None or memory.sha256 != there[path]:
            try:
                if memory is None:
                    create_in(conversation, attached, path, content, untrusted=untrusted)
                else:
                    change_in(conversation, attached, memory, content, untrusted=untrusted)
            except AgentError as problem:
                problems.append(UNNAMED if untrusted else f"{path}: {problem.message}")


def shown_in(
    conversation: Conversation, store: MemoryStore, path: str | None = None
) -> list[Memory]:
    """Those of a store that it was given, without what strangers wrote elsewhere and nobody confirmed. A
    change that was suggested here stands in the place of what it is for, with the path of that. `path`: the
    one that is found there."""
    rows = store.memories.all()
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
    conversation: Conversation,
    attached: AttachedStore,
    workspace: Workspace,
    there: dict[str, str],
) -> dict[str, str]:
    """Write what is different; what commands left there and could not be kept stays as it is."""
    before: dict[str, str] = attached.laid_out
    wanted = {each.path: each for each in shown_in(conversation, attached.store)}
    for path, memory in wanted.items():
        if there.get(path) != memory.sha256:
            try:
                workspace.write_bytes(path[1:], memory.content.encode())
                if attached.access == Access.READ_ONLY:
                    _let_read(folder_of(conversation, attached), path)
            except AgentError:
                logger.warning("%s of %s cannot be written", path, attached.store.uid)
    for path in there:
        if path in before and path not in wanted and before[path] == there[path]:
            workspace.remove(path[1:])
    return {path: memory.sha256 for path, memory in wanted.items()}


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

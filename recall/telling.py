"""What people are shown when they are asked about a memory: what would be shared with others and what that
takes the place of, what would be forgotten, deleted or moved.

Told when the question is made. What the tools do afterwards is held to it
(`tools_app.touches.require_as_told`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from django.db.models.signals import post_delete, post_save
from django.dispatch import receiver
from django.utils.translation import gettext_noop

from conversations.models import Conversation
from harness.events import DiffDisplay
from harness.tools import ToolContext
from memory.actions.remembering import before_sharing
from memory.models import Memory, MemoryStore, MemoryVersion
from tools_app.touches import changed_text, forget_told, told_of

from .mounted import attached_to
from .tools import bound_to, found_memory, shared_store
from .trained import TAKING_AWAY, Work, bound_by, taken_away

TOOLS = ("share_memory", "forget_memory", "memory")
SHOWN = 20
"""Memories of which the texts are shown; of more the paths."""
TEXT = 4_000
"""Characters of one of these."""
PATHS = 300

_SHARED = gettext_noop("What everybody who reads “%(store)s” is to find there:")
_KEY = gettext_noop("Its key is “%(key)s”.")
_KNOWN = gettext_noop("It is known there already, as: “%(text)s”")
_OTHER = gettext_noop(
    "The memory is not the one that this call names, so nothing can be shown, and nothing is shared by it."
)
_FORGOTTEN = gettext_noop("To be forgotten for good, with all that it said before:")
_DELETED = gettext_noop("Memories to be deleted from “%(store)s”: %(count)d")
_MOVED = gettext_noop("“%(old)s” is to be “%(new)s” from then on. Memories: %(count)d")
_ALSO = gettext_noop("“%(path)s”")

_Words = tuple[str, Mapping[str, Any]]


def tell(conversation_uid: str, tool: str, given: Mapping[str, Any]) -> dict[str, Any]:
    rows = Conversation.objects.select_related("owner", "organisation", "agent_version__agent")
    conversation = rows.get(uid=conversation_uid)
    if tool == "share_memory":
        return _sharing(conversation, given)
    if tool == "forget_memory":
        memory = found_memory(conversation, str(given.get("id", "")))
        return told_of(
            [_gone(memory)],
            (_FORGOTTEN, {}),
            bound=bound_to(memory),
            about=_uids(memory),
            whole=not _is_cut(memory),
        )
    if given.get("command") in TAKING_AWAY:
        return _taking_away(conversation, given)
    return {"kind": "path", "path": str(given.get("path", ""))}


def hold(about: Sequence[str]) -> None:
    """The stores among these, as `memory.access.held_store` holds them: who shares a memory holds first the
    one it is in."""
    rows = MemoryStore.objects.filter(uid__in=about).values_list("uid", "pk")
    keys = dict(rows)
    for uid in about:
        if uid in keys:
            MemoryStore.objects.select_for_update(no_key=True).filter(pk=keys[uid]).first()


def _sharing(conversation: Conversation, given: Mapping[str, Any]) -> dict[str, Any]:
    memory = found_memory(conversation, str(given.get("id", "")))
    store = shared_store(conversation, str(given.get("store", "")))
    if memory.sha256 != str(given.get("sha256", "")).strip().lower():
        return told_of([], (_OTHER, {}), whole=False)
    there, said = before_sharing(user=conversation.owner, memory=memory, store=store)
    words: list[_Words] = [(_SHARED, {"store": store.name})]
    if memory.key:
        words.append((_KEY, {"key": memory.key}))
    if there is None:
        change = changed_text(memory.path, None, said)
    else:
        change = changed_text(there.path, there.content, said)
        if said == there.content:
            words.append((_KNOWN, {"text": said}))
    bound = [*bound_to(memory), store.uid, "" if there is None else there.version_uid]
    told = [memory] if there is None else [memory, there]
    # Its store even where nothing is there yet: another may be by the time that it is held.
    about = [memory.store.uid, store.uid, *(each.uid for each in told)]
    return told_of([change], *words, bound=bound, about=about)


def _gone(memory: Memory) -> DiffDisplay:
    text = memory.content
    if _is_cut(memory):
        text = f"{text[:TEXT]}\n[… {len(text) - TEXT:,}]"
    return changed_text(memory.path, text, "")


def _is_cut(memory: Memory) -> bool:
    return len(memory.content) > TEXT


def _taking_away(conversation: Conversation, given: Mapping[str, Any]) -> dict[str, Any]:
    work = Work(ToolContext("", Path()), conversation, attached_to(conversation))
    place, new, memories = taken_away(work, given)
    about = {"store": place.attached.store.name, "count": len(memories)}
    if new is None:
        words: list[_Words] = [(_DELETED, about)]
        shown = memories[:SHOWN]
    else:
        words = [(_MOVED, {"old": place.shown, "new": new.shown, **about})]
        shown = []
    words += [(_ALSO, {"path": each.path}) for each in memories[len(shown) :][:PATHS]]
    bound = bound_by(new, memories)
    whole = len(memories) <= (SHOWN if new is None else PATHS) and not any(map(_is_cut, shown))
    changes = [_gone(each) for each in shown]
    return told_of(changes, *words, bound=bound, about=_uids(*memories), whole=whole)


def _uids(*memories: Memory) -> list[str]:
    """With those of their stores: what goes with these is forgotten as well."""
    return [*dict.fromkeys(each.store.uid for each in memories), *(each.uid for each in memories)]


@receiver(post_save, sender=MemoryVersion, dispatch_uid="recall.telling.redacted")
def _forget_version(instance: MemoryVersion, **_kwargs: Any) -> None:
    if instance.redacted_at is not None:
        forget_told(instance.store.organisation_id, instance.memory_uid)


@receiver(post_delete, sender=MemoryStore, dispatch_uid="recall.telling.gone")
def _forget_store(instance: MemoryStore, **_kwargs: Any) -> None:
    forget_told(instance.organisation_id, instance.uid)

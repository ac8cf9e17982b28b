"""Changes that strangers' words may have made: what agents are told stays, and the other text waits beside it
until a person says yes (`remembering.confirm_memory`). A conversation has one for each memory.
"""

from __future__ import annotations

from django.db import transaction

from accounts.models import User
from memory.access import Author, held_memory, require_in_force
from memory.actions.memories import require_unchanged
from memory.models import Kind, Memory
from memory.models.memory import PATH_LIMIT, new_memory_id
from memory.writing import write_change, write_new


def suggest_change(
    *,
    actor: User,
    memory: Memory,
    content: str,
    author: Author,
    source_conversation: str,
    expected_sha256: str | None = None,
    words: str | None = None,
) -> Memory:
    """What waits itself is changed; beside what does not, another one waits, which is returned. Raises as
    `memories.change_memory`."""
    with transaction.atomic():
        held = held_memory(actor, memory)
        require_in_force(held.store)
        require_unchanged(held, expected_sha256)
        waiting = held if held.waits else _beside(held, source_conversation)
        if waiting is not None:
            if waiting.source_conversation != source_conversation:
                waiting.source_conversation = source_conversation
                waiting.save(update_fields=["source_conversation"])
            return write_change(waiting, author=author, account=actor, content=content, words=words)
        uid = new_memory_id()
        path = f"{held.path}.{uid}"
        return write_new(
            store=held.store,
            path=path if len(path.encode()) <= PATH_LIMIT else f"/{uid}.md",
            content=content,
            author=author,
            account=actor,
            uid=uid,
            kind=Kind.NOTE,
            supersedes=held,
            untrusted=True,
            source_conversation=source_conversation,
            words=words,
        )


def _beside(memory: Memory, conversation: str) -> Memory | None:
    rows = Memory.objects.select_for_update(of=("self",), no_key=True).select_related("store")
    there = rows.filter(supersedes=memory, source_conversation=conversation)
    return next((each for each in there if each.is_suggestion), None)

"""What an agent makes of a store that its conversation was given, by a tool or by a file: it waits for a
person where strangers may have worded it. Whether they may have is the callers' to say.
"""

from __future__ import annotations

from django.db import transaction

from conversations.models import Conversation
from memory.access import Author
from memory.actions.memories import change_memory, create_memory
from memory.actions.suggesting import suggest_change
from memory.models import AuthorKind, Memory

from .models import AttachedStore
from .strangers import mark_as_strangers


def create_in(
    conversation: Conversation,
    attached: AttachedStore,
    path: str,
    content: str,
    *,
    untrusted: bool,
    call: str = "",
    words: str | None = None,
) -> Memory:
    """A memory that its agent wrote, by this call where one is known. `words`: as `create_memory` takes them.
    Raises as that."""
    # In one transaction with its mark: no agent finds it meanwhile.
    with transaction.atomic():
        memory = create_memory(
            actor=conversation.owner,
            store=attached.store,
            path=path,
            content=content,
            author=Author(AuthorKind.SESSION, conversation.uid),
            source_conversation=conversation.uid,
            source_event=call,
            source_agent=conversation.agent_version.agent.uid,
            untrusted=untrusted,
            words=words,
        )
        if untrusted:
            mark_as_strangers(conversation, attached, path)
    return memory


def change_in(
    conversation: Conversation,
    attached: AttachedStore,
    memory: Memory,
    content: str,
    *,
    untrusted: bool,
    expected_sha256: str | None = None,
    words: str | None = None,
) -> Memory:
    """Another text of one that is shown there; what waits does so beside what others are told. Raises as
    `change_memory`."""
    author = Author(AuthorKind.SESSION, conversation.uid)
    if not untrusted:
        return change_memory(
            actor=conversation.owner,
            memory=memory,
            content=content,
            expected_sha256=expected_sha256,
            author=author,
            words=words,
        )
    with transaction.atomic():
        waiting = suggest_change(
            actor=conversation.owner,
            memory=memory,
            content=content,
            expected_sha256=expected_sha256,
            author=author,
            source_conversation=conversation.uid,
            words=words,
        )
        mark_as_strangers(conversation, attached, memory.path)
    return waiting

"""What was learned when a message was read goes with it, whichever message the model named: the memory with
all that its versions say, also where it was deleted before, in the person's own stores. What she shared
herself is a copy of hers."""

from __future__ import annotations

from collections.abc import Collection

from conversations.forgetting import Removed
from conversations.models import Conversation
from memory.access import Author
from memory.models import AuthorKind, Memory, MemoryStore, MemoryVersion
from memory.writing import take_out, write_away

from .models import Learned


def forget(removed: Removed) -> None:
    uids = {removed.subject, *removed.uids}
    found = Learned.objects.filter(conversation=removed.conversation, message_uid__in=uids)
    forget_memories_of(removed.conversation, found.values_list("memory_uid", flat=True))
    found.delete()


def forget_all(conversation: Conversation) -> int:
    found = Learned.objects.filter(conversation=conversation)
    gone = forget_memories_of(conversation, found.values_list("memory_uid", flat=True))
    found.delete()
    return gone


def forget_memories_of(conversation: Conversation, memory_uids: Collection[str]) -> int:
    """Also what versions still say of those that were deleted; of how many something was left. Nobody's
    permission is asked: who may take out words or delete a conversation decided that."""
    owner, uids = conversation.owner, set(memory_uids)
    if not uids:
        return 0
    author = Author(AuthorKind.SESSION, conversation.uid)
    versions = MemoryVersion.objects.filter(
        store__owner=owner, memory_uid__in=uids, redacted_at=None
    )
    # Stores before what is in them, as everybody locks.
    stores = MemoryStore.objects.select_for_update(no_key=True).filter(
        owner=owner, pk__in=versions.values("store")
    )
    gone: set[str] = set()
    for store in stores.order_by("pk"):
        for memory in Memory.objects.filter(store=store, uid__in=uids).order_by("pk"):
            memory.store = store
            write_away(memory, author=author, account=owner)
            gone.add(memory.uid)
        for version in versions.filter(store=store).order_by("pk"):
            take_out(version, author)
            gone.add(version.memory_uid)
    return len(gone)

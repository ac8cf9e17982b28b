"""What was learned of a message goes with it: the memory with all that its versions say, in the person's own
stores. What she shared herself is a copy of hers."""

from __future__ import annotations

from collections.abc import Collection

from conversations.forgetting import Removed
from conversations.models import Conversation
from memory.access import Author
from memory.models import AuthorKind, Memory, MemoryStore
from memory.writing import write_away

from .models import Learned


def forget(removed: Removed) -> None:
    uids = {removed.subject, *removed.uids}
    found = Learned.objects.filter(conversation=removed.conversation, message_uid__in=uids)
    forget_memories_of(removed.conversation, found.values_list("memory_uid", flat=True))
    found.delete()


def forget_memories_of(conversation: Conversation, memory_uids: Collection[str]) -> None:
    """Nobody's permission is asked: who may take out words or delete a conversation decided that."""
    owner = conversation.owner
    rows = Memory.objects.filter(uid__in=list(memory_uids), store__owner=owner)
    # Stores before what is in them, as everybody locks.
    stores = MemoryStore.objects.select_for_update(no_key=True).filter(pk__in=rows.values("store"))
    held = {store.pk: store for store in stores.order_by("pk")}
    for memory in rows.filter(store__in=held).order_by("pk"):
        memory.store = held[memory.store_id]
        write_away(memory, author=Author(AuthorKind.SESSION, conversation.uid), account=owner)

"""A person says that agents are to remember nothing of her: anywhere in an organisation, or of one
conversation."""

from __future__ import annotations

from django.db import transaction

from accounts.models import Organisation, User
from accounts.permissions import require_member
from conversations.actions.messages import set_feature
from conversations.actions.own import own_even_ended
from conversations.models import Conversation
from memory.actions.remembering import forget_memories
from memory.models import Memory
from recall.beside import forget_of
from recall.models import MemoryOff


def switch_memory(*, actor: User, organisation: Organisation, on: bool) -> None:
    """What is remembered stays until it is forgotten; off, nothing of it is told to an agent, and nothing
    is added by one. Raises NotFound for a stranger to the organisation."""
    require_member(actor, organisation)
    if on:
        MemoryOff.objects.filter(user=actor, organisation=organisation).delete()
    else:
        MemoryOff.objects.get_or_create(user=actor, organisation=organisation)


def leave_out(*, actor: User, conversation: Conversation) -> int:
    """Do not remember this one: what was learned from it is forgotten, with what it was added to, and
    memory is switched off in it. How much was forgotten. Raises NotFound, and Conflict for one that has
    ended."""
    with transaction.atomic():
        held = own_even_ended(actor, conversation)
        if held.features.memory:
            set_feature(actor=actor, conversation=held, feature="memory", enabled=False)
        learned = Memory.objects.visible_to(actor).filter(
            store__owner=actor, source_conversation=held.uid
        )
        gone = forget_memories(actor=actor, memories=list(learned.select_related("store")))
        return gone + forget_of(held)

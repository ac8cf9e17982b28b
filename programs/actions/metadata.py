"""Notes that programs keep on a conversation. They mean nothing to this server."""

from __future__ import annotations

from collections.abc import Mapping

from accounts.models import User
from conversations.actions.own import require_own
from conversations.models import Conversation
from wire.metadata import check_metadata


def note_conversation(
    *, actor: User, conversation: Conversation, metadata: Mapping[str, str]
) -> None:
    """NotFound unless it is the actor's."""
    require_own(actor, conversation)
    Conversation.objects.filter(pk=conversation.pk).update(metadata=check_metadata(metadata))

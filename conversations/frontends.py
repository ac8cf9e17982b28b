"""What a front end has sent along with the words of a conversation, as it is held now.

It is in the log; what of it a turn is offered is `harness.history`'s, who may send it `actions.frontends`'.
"""

from __future__ import annotations

from harness.events import UserCustomToolResult, UserMessage
from harness.frontends import FrontEnd

from .models import Conversation, Event


def front_end_of(conversation: Conversation) -> FrontEnd:
    """The last that came; an empty one where none has."""
    if conversation.front_end_seq is None:
        return FrontEnd()
    row = Event.objects.filter(conversation=conversation, seq=conversation.front_end_seq).first()
    value = row.value if row is not None else None
    sent = value.front_end if isinstance(value, UserMessage | UserCustomToolResult) else None
    return sent or FrontEnd()

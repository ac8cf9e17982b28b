"""When a conversation is read for what is to be remembered: each time it comes to rest, and never else.

Whether there is enough that is new is asked in the job (`actions.analysing`).
"""

from __future__ import annotations

from conversations.models import Conversation, Event
from harness.events import EndTurn, SessionStatusIdle
from harness.events import Event as EventValue
from harness.hooks import HELD_BACK
from jobs.dispatch import dispatch

from .wanted import is_on

FOLLOWED = (SessionStatusIdle,)
READ = "learning.read"


def project(conversation: Conversation, _row: Event, event: EventValue) -> None:
    if not isinstance(event, SessionStatusIdle) or not isinstance(event.stop_reason, EndTurn):
        return
    if not is_on():
        return
    if event.stop_details is not None and event.stop_details.code == HELD_BACK:
        return  # hooks let no model see its words by now
    if conversation.parent_id is not None or conversation.unlisted:
        return
    if conversation.features.memory:
        dispatch(READ, conversation_id=conversation.pk)

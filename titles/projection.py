"""When a conversation is named by a model: once it rests for the first time, where it is still called after
its first words."""

from __future__ import annotations

from django.conf import settings

from conversations.models import Conversation, Event
from harness.events import Event as EventValue
from harness.events import SessionStatusIdle
from harness.hooks import HELD_BACK
from jobs.dispatch import dispatch
from jobs.prepared import Prepared

from .models import TitleRequest

FOLLOWED = (SessionStatusIdle,)
WRITE = "titles.write"

_KNOWN = Prepared(
    lambda given: TitleRequest.objects.filter(conversation=given.conversation).values_list("pk")
)


def project(conversation: Conversation, _row: Event, event: EventValue) -> None:
    if not isinstance(event, SessionStatusIdle):
        return
    if event.stop_details is not None and event.stop_details.code == HELD_BACK:
        return  # hooks let no model see its words by now
    wanted = settings.AGENTSITE_TITLE_MODELS and settings.AGENTSITE_TITLE_TOKENS_PER_DAY
    if not wanted or not conversation.title:
        return
    if conversation.parent_id is not None or conversation.unlisted:
        return
    if _KNOWN.first(conversation=conversation.pk) is None:
        dispatch(WRITE, conversation_id=conversation.pk)

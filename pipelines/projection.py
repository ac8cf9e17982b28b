"""Has a run looked at when the conversation of one of its steps comes to rest."""

from __future__ import annotations

from conversations.models import Conversation, Event
from harness.events import Event as EventValue
from jobs.dispatch import dispatch
from jobs.prepared import Prepared

from .models import StepRun
from .running import LOOK

_OPEN = Prepared(
    lambda given: StepRun.objects.filter(
        conversation=given.conversation, state=StepRun.State.RUNNING
    ).values_list("run")
)


def look_when_at_rest(conversation: Conversation, row: Event, event: EventValue) -> None:
    """In the transaction of the rest; a conversation that people began costs nothing."""
    if conversation.parent_id is None:
        return
    found = _OPEN.first(conversation=conversation.pk)
    if found is not None:
        dispatch(LOOK, run_id=found[0])

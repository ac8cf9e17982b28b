"""Has a trial looked at when its conversation, or that of one of its judges, comes to rest."""

from __future__ import annotations

from conversations.models import Conversation, Event
from harness.events import Event as EventValue
from jobs.dispatch import dispatch

from .models import Judgement, Trial
from .running import LOOK


def look_when_at_rest(conversation: Conversation, row: Event, event: EventValue) -> None:
    """In the transaction of the rest; a conversation that people began costs nothing."""
    if conversation.parent_id is None:
        return
    trials = Trial.objects.filter(conversation=conversation, state__in=Trial.OPEN)
    judged = Judgement.objects.filter(conversation=conversation).values_list("trial", flat=True)
    for pk in (*trials.values_list("pk", flat=True), *judged):
        dispatch(LOOK, trial_id=pk)

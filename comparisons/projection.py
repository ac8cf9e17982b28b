"""Has a comparison looked at when something of it comes to rest."""

from __future__ import annotations

from django.db.models import Q

from conversations.models import Conversation, Event
from harness.events import Event as EventValue
from jobs.dispatch import dispatch
from jobs.prepared import Prepared
from pipelines.models import PipelineRun

from .models import Entry
from .running import LOOK

_OPEN = Prepared(
    lambda given: Entry.objects.filter(
        Q(conversation=given.conversation) | Q(judge=given.conversation), state__in=Entry.OPEN
    ).values_list("comparison")
)


def look_when_at_rest(conversation: Conversation, row: Event, event: EventValue) -> None:
    """In the transaction of the rest; a conversation that people began costs nothing."""
    if conversation.parent_id is None:
        return
    found = _OPEN.first(conversation=conversation.pk)
    if found is not None:
        dispatch(LOOK, comparison_id=found[0])


def look_when_run_ended(run: PipelineRun) -> None:
    found = Entry.objects.filter(run=run, state__in=Entry.OPEN).values_list("comparison", flat=True)
    for pk in found:
        dispatch(LOOK, comparison_id=pk)

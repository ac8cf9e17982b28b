"""In which order the messages of a conversation wait, asked of the tables.

The same as `harness.history.History.queued` gives of the whole log. Who may change it is the actions' to say.
"""

from __future__ import annotations

from harness.events import QueueOrdered
from jobs.prepared import Prepared

from .models import Event

_ORDERED = Prepared(
    lambda given: Event.objects.filter(
        conversation=given.conversation, type="x.queue_ordered"
    ).order_by("-seq")[:1]
)
_WAITING = Prepared(
    lambda given: (
        Event.objects.filter(
            conversation=given.conversation, type="user.message", processed_at=None
        )
        .order_by("seq")
        .values_list("uid", "seq")
    )
)


def places(conversation_id: int) -> dict[str, int]:
    """Of the messages that somebody ordered, numbers in that order, smaller than those of all that came
    later. A message that is not here stands by its own number."""
    row = _ORDERED.first(conversation=conversation_id)
    if row is None or not isinstance(row.value, QueueOrdered):
        return {}
    ordered = row.value.event_ids
    return {uid: row.seq - len(ordered) + place for place, uid in enumerate(ordered)}


def waiting_in_order(conversation_id: int) -> list[str]:
    """The ids of the messages that wait, the next one first."""
    ordered = places(conversation_id)
    rows = _WAITING.all(conversation=conversation_id)
    return [uid for uid, _seq in sorted(rows, key=lambda row: ordered.get(row[0], row[1]))]

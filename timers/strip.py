"""The strip above the message box: what a sleeping conversation waits for."""

from __future__ import annotations

from django.template.loader import render_to_string

from chat.presentation.content import Moment
from conversations.models import Conversation, Wake
from jobs.prepared import Prepared
from reading.unseen import visible

_WAITING = Prepared(
    lambda given: (
        Wake.objects.waiting()
        .filter(conversation=given.conversation, kind=Wake.Kind.AGENT)
        .order_by("due_at", "id")
    )
)


def draw_strip(conversation: Conversation) -> str:
    rows = [
        {"key": row.pk, "reason": visible(row.reason), "at": Moment.of(row.due_at)}
        for row in _WAITING.all(conversation=conversation.pk)
    ]
    if not rows:
        return ""
    return render_to_string("timers/_strip.html", {"rows": rows}).strip()

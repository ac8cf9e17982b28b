"""The strip above the composer: the subagents of a conversation that are at work.

It depends on what is stored only; what each does now, how long it works and what it used comes from
`views.now`, which the page asks while one is shown.
"""

from __future__ import annotations

from django.template.loader import render_to_string

from chat.presentation.content import Moment
from conversations.models import Conversation
from jobs.prepared import Prepared
from reading.unseen import visible

from .models import LIVE, Subagent

_LIVE = Prepared(
    lambda given: (
        Subagent.objects.filter(parent=given.parent, state__in=list(LIVE))
        .exclude(child=None)
        .select_related("child")
        .order_by("id")
    )
)


def draw_strip(conversation: Conversation) -> str:
    rows = [
        {
            "child": row.child.uid,
            "kind": visible(row.kind),
            "description": visible(row.description),
            "background": row.background,
            "since": Moment.of(row.started_at),
            "ending": row.stop_asked_at is not None,
        }
        for row in _LIVE.all(parent=conversation.pk)
        if row.child is not None and row.started_at is not None
    ]
    if not rows:
        return ""
    return render_to_string("subagents/_strip.html", {"rows": rows, "of": conversation}).strip()

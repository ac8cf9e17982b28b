"""The strip of a conversation for its board and its team: how far the tasks are, how each teammate stands.

What can be done about them is on their pages, to which it leads.
"""

from __future__ import annotations

from django.db.models import Count, Q
from django.template.loader import render_to_string

from conversations.models import Conversation
from jobs.prepared import Prepared

from .members import member_of, members_of, with_since
from .models import Task, Team

SHOWN = 8
"""Tasks in progress that it names."""

_HERE = Prepared(
    lambda given: Conversation.objects.filter(pk=given.conversation).values_list(
        "board__pk", "team__pk"
    )
)
"""One look for both: most conversations have neither."""


def draw(conversation: Conversation) -> str:
    """Of a conversation that people began; a teammate's page leads back to it."""
    if conversation.parent_id is not None:
        return _way_back(conversation)
    board, team = _HERE.first(conversation=conversation.pk) or (None, None)
    if board is None and team is None:
        return ""
    found = Team.objects.filter(pk=team).first() if team is not None else None
    members = with_since(members_of(found)[1:]) if found is not None else []
    tasks = Task.objects.filter(board=board) if board is not None else Task.objects.none()
    counted = tasks.aggregate(
        all=Count("pk", filter=~Q(status=Task.Status.CANCELLED)),
        done=Count("pk", filter=Q(status=Task.Status.COMPLETED)),
    )
    if not counted["all"] and not members:
        return ""
    context = {
        "conversation": conversation,
        "all": counted["all"],
        "done": counted["done"],
        "current": tasks.filter(status=Task.Status.IN_PROGRESS).order_by("number")[:SHOWN],
        "members": members,
    }
    return render_to_string("teams/_strip.html", context).strip()


def _way_back(conversation: Conversation) -> str:
    mine = member_of(conversation)
    if mine is None:
        return ""
    return render_to_string("teams/_way_back.html", {"member": mine}).strip()

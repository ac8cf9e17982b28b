"""The strip of a conversation for its board and its team: how far the tasks are, how each teammate stands.

What can be done about them is on their pages, to which it leads.
"""

from __future__ import annotations

from django.db.models import Count, Q
from django.template.loader import render_to_string

from conversations.models import Conversation
from jobs.prepared import Prepared

from .members import LEAD, member_of, members_of
from .models import Board, Task

SHOWN = 8
"""Tasks in progress that it names."""

_BOARD = Prepared(lambda given: Board.objects.filter(conversation=given.conversation))


def draw(conversation: Conversation) -> str:
    """Of a conversation that people began; a teammate's page leads back to it."""
    if conversation.parent_id is not None:
        return _way_back(conversation)
    board = _BOARD.first(conversation=conversation.pk)
    mine = member_of(conversation)
    members = members_of(mine.team)[1:] if mine is not None else []
    if board is None and not members:
        return ""
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
    return render_to_string("teams/_way_back.html", {"member": mine, "lead": LEAD}).strip()

"""Tasks and questions that wait for a person, for the mails about what waits (`notices.waiting`).

A task of an organisation's board that no agent made belongs to no conversation: nobody is mailed about it.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Exists, F, OuterRef
from django.urls import reverse
from django.utils.translation import gettext as _

from accounts.models import User
from notices.waiting import NEWS, Item, in_turn, is_reachable

from .models import Dependency, Task, TeamRequest


def waiting(now: datetime) -> Iterator[tuple[Item, User]]:
    """Tasks that somebody else handed to her and she has not begun, and questions of a team."""
    link = settings.AGENTSITE_BASE_URL + reverse("tasks:mine")
    recent = (now - NEWS, now - timedelta(minutes=1))
    tasks = (
        Task.objects.filter(status=Task.Status.PENDING, changed_at__range=recent)
        .exclude(owner_user=None)
        .exclude(owner_user=F("creator_user"))
        .exclude(Exists(Dependency.objects.holding().filter(task=OuterRef("pk"))))
        .select_related("owner_user", "board__conversation", "creator_conversation")
    )
    for task in in_turn(tasks, whose="owner_user", since="changed_at"):
        user, conversation = task.owner_user, task.board.conversation or task.creator_conversation
        if user is None or conversation is None or not is_reachable(user):
            continue
        if Task.objects.waiting_for(user).filter(pk=task.pk).exists():
            words = _("a task, #%(number)d") % {"number": task.number}
            item = Item(task.uid, conversation, words, task.changed_at, link, may_answer=True)
            yield item, user
    asked = TeamRequest.objects.pending().filter(created_at__range=recent).exclude(person=None)
    rows = asked.select_related("person", "asker")
    for request in in_turn(rows, whose="person", since="created_at"):
        if request.person is None or not is_reachable(request.person):
            continue
        if TeamRequest.objects.waiting_for(request.person).filter(pk=request.pk).exists():
            words = _("a question of a team")
            item = Item(
                request.uid, request.asker, words, request.created_at, link, may_answer=True
            )
            yield item, request.person

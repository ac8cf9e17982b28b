"""What the pages of boards show: columns, filtered; who may be given a task; how much waits for a person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db.models import Q
from django.utils.translation import gettext as _

from accounts.models import User
from conversations.models import Share
from harness.errors import Invalid
from jobs.prepared import Prepared
from reading.digits import number_of

from .boards import Standing, standings
from .models import Board, Task, TeamRequest
from .models.board import TaskQuerySet

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise

FINISHED = 50
"""Finished tasks that a column shows, the latest first."""
PEOPLE = 200
"""People that a form offers."""
COUNTED = 99
ME, NOBODY, AGENTS = "me", "nobody", "agents"
WHOSE = ("", ME, NOBODY, AGENTS)

_MINE = Prepared(
    lambda given: Task.objects.open().filter(owner_user=given.user).values_list("pk")[:1]
)
_ASKED = Prepared(
    lambda given: TeamRequest.objects.pending().filter(person=given.user).values_list("pk")[:1]
)
"""Whether she has any at all, which is cheaper to ask than what of it she still sees."""


@dataclass(frozen=True, slots=True)
class Column:
    status: str
    label: str | _StrPromise
    cards: Sequence[Standing]
    left_out: int
    """How many more there are than are shown."""


def columns(board: Board, user: User, filters: Mapping[str, str]) -> list[Column]:
    """Raises Invalid for a filter that there is not."""
    tasks = _filtered(board, user, filters).select_related("owner_user", "owner_conversation")
    rows = list(tasks.order_by("number"))
    made = []
    for status, label in Task.Status.choices:
        mine = [task for task in rows if task.status == status]
        open_ = status in {Task.Status.PENDING, Task.Status.IN_PROGRESS}
        if not open_:
            mine.sort(key=lambda task: task.changed_at, reverse=True)
        shown = mine if open_ else mine[:FINISHED]
        made.append(Column(status, label, standings(shown), len(mine) - len(shown)))
    return made


def people_at(board: Board) -> list[User]:
    """Who can see the board, so that a task may be handed to her."""
    people = User.objects.filter(
        kind=User.Kind.PERSON,
        is_active=True,
        memberships__organisation=board.organisation_id,
    )
    if board.conversation_id is not None:
        shares = Share.objects.filter(conversation=board.conversation_id)
        if not shares.filter(user=None).exists():
            owner = Q(pk=board.conversation.owner_id) if board.conversation else Q()
            people = people.filter(owner | Q(shares__conversation=board.conversation_id)).distinct()
    return list(people.order_by("username")[:PEOPLE])


def mine(user: User) -> list[Task]:
    """What is hers to do, the oldest first."""
    tasks = Task.objects.waiting_for(user).select_related(
        "board__conversation", "board__organisation"
    )
    return list(tasks.order_by("created_at", "pk")[:PEOPLE])


def number_waiting(user: User) -> str:
    """How many tasks are hers to do, and questions to answer, as a tab shows it; empty for none."""
    number = 0
    if _MINE.exists(user=user.pk):
        number = Task.objects.waiting_for(user).order_by()[: COUNTED + 1].count()
    if _ASKED.exists(user=user.pk):
        number += TeamRequest.objects.waiting_for(user).order_by()[: COUNTED + 1].count()
    if not number:
        return ""
    return str(number) if number <= COUNTED else f"{COUNTED}+"


def _filtered(board: Board, user: User, filters: Mapping[str, str]) -> TaskQuerySet:
    if not board.is_stored:
        return Task.objects.none()
    found = Task.objects.filter(board=board)
    words = filters.get("q", "").replace("\0", "").split()[:10]
    for word in words:
        number = number_of(word.removeprefix("#"))
        found = found.filter(
            Q(subject__icontains=word) | (Q(pk=None) if number is None else Q(number=number))
        )
    match filters.get("whose", ""):
        case "":
            return found
        case "me":
            return found.filter(owner_user=user)
        case "nobody":
            return found.filter(owner_user=None, owner_conversation=None)
        case "agents":
            return found.exclude(owner_conversation=None)
    raise Invalid(_("There is no such choice."), field="whose", hint=_("Choose one of the list."))

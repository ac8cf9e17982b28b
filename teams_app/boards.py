"""Which board a conversation or an organisation has, and how its tasks stand to each other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from accounts.models import Organisation
from conversations.ancestry import root_conversation
from conversations.models import Conversation

from .events import TaskFacts
from .models import Board, Dependency, Task


def board_of(place: Conversation | Organisation) -> Board:
    """The board of all that descends from the same conversation, or of the organisation; one that is not
    stored yet as it will be."""
    if isinstance(place, Organisation):
        found = Board.objects.filter(organisation=place, conversation=None).first()
        return found or Board(organisation=place)
    root = root_conversation(place)
    found = Board.objects.filter(conversation=root).first()
    return found or Board(organisation_id=root.organisation_id, conversation=root)


def stored(board: Board) -> Board:
    """The same, in the table. Two who need it first get one."""
    if board.is_stored:
        return board
    return Board.objects.get_or_create(
        organisation=board.organisation, conversation=board.conversation
    )[0]


@dataclass(frozen=True, slots=True)
class Standing:
    """A task among those of its board."""

    task: Task
    blocked_by: tuple[int, ...]
    """Numbers of the open ones that it waits for."""
    blocks: tuple[int, ...]
    """Numbers of the open ones that wait for it."""

    @property
    def claimable(self) -> bool:
        pending = self.task.status == Task.Status.PENDING
        return pending and not self.task.is_owned and not self.blocked_by


def standings(tasks: Iterable[Task]) -> list[Standing]:
    """How each of them stands, in their order. Two queries, however many they are."""
    tasks = list(tasks)
    before = holding(task.pk for task in tasks)
    after: defaultdict[int, list[int]] = defaultdict(list)
    waiting = Dependency.objects.filter(blocker__in=tasks, task__status__in=_OPEN)
    for blocker, number in waiting.order_by("task__number").values_list("blocker", "task__number"):
        after[blocker].append(number)
    return [
        Standing(
            task,
            before.get(task.pk, ()),
            tuple(after[task.pk]) if task.is_open else (),
        )
        for task in tasks
    ]


def holding(tasks: Iterable[int]) -> Mapping[int, tuple[int, ...]]:
    """By task, the numbers of the open ones that it waits for."""
    found: defaultdict[int, tuple[int, ...]] = defaultdict(tuple)
    rows = Dependency.objects.holding().filter(task__in=list(tasks))
    for task, number in rows.order_by("blocker__number").values_list("task", "blocker__number"):
        found[task] += (number,)
    return found


def facts_of(task: Task) -> TaskFacts:
    return TaskFacts(
        id=task.uid,
        number=task.number,
        subject=task.subject,
        status=task.status,
        active_form=task.active_form,
        owner=task.owner_name,
        blocked_by=holding([task.pk]).get(task.pk, ()),
    )


_OPEN = (Task.Status.PENDING, Task.Status.IN_PROGRESS)

"""Whether a team stands still: nobody of it works, nothing that could wake one is on its way, and something
is left that nobody will do by herself. Pure of side effects; telling it is `attending`'s part."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from conversations.models import BackgroundCommand, Wake

from .boards import Standing, standings
from .members import Member, Status
from .models import Board, Task, Team, TeamRequest

SHOWN = 10


@dataclass(frozen=True, slots=True)
class Standstill:
    reasons: tuple[str, ...]
    untrusted_by: str = ""
    """What of them strangers may have written; empty: nothing."""

    @property
    def signature(self) -> str:
        return hashlib.sha256("\n".join(self.reasons).encode()).hexdigest()


def standstill(team: Team, members: Sequence[Member]) -> Standstill | None:
    """None where somebody works, or is waited for who may still act: a person, a wake, a command."""
    if any(member.status in {Status.WORKING, Status.WAITING} for member in members):
        return None
    pending = list(team.requests.pending().select_related("person", "task"))
    if any(request.person_id is not None for request in pending):
        return None
    here = [member.conversation.pk for member in members]
    if Wake.objects.waiting().filter(conversation__in=here).exists():
        return None
    if BackgroundCommand.objects.running().filter(conversation__in=here).exists():
        return None
    by_conversation = {member.conversation.pk: member for member in members}
    left = _tasks_left(team)
    reasons = [
        *_of_requests(pending, by_conversation),
        *(_left(row, by_conversation) for row in left),
    ]
    owner = members[0].conversation.owner_id
    foreign = next(filter(None, (row.task.strangers_for(owner) for row in left)), "")
    return Standstill(tuple(reasons[:SHOWN]), foreign) if reasons else None


def _of_requests(pending: Sequence[TeamRequest], members: Mapping[int, Member]) -> Sequence[str]:
    """Of each that waits for an answer of somebody at rest; those that wait for each other first."""
    waits = {
        (request.asker_id, request.addressee_id): request
        for request in pending
        if request.addressee_id is not None
    }
    found = []
    for (asker, addressee), request in waits.items():
        name = members[addressee].name if addressee in members else "somebody who has left"
        words = (
            f"{_name(members, asker)} waits for {name} to answer {request.uid} ({request.kind})."
        )
        if (addressee, asker) in waits:
            words = f"{_name(members, asker)} and {name} wait for each other ({request.uid})."
        found.append(words)
    return found


def _tasks_left(team: Team) -> Sequence[Standing]:
    """Each open task that nobody will begin or go on with, unless a person is to do one of them."""
    board = Board.objects.filter(conversation=team.lead_id).first()
    if board is None:
        return ()
    rows = standings(board.tasks.open().order_by("number"))
    if any(row.task.owner_user_id is not None for row in rows):
        return ()
    return rows


def _left(row: Standing, members: Mapping[int, Member]) -> str:
    task = row.task
    said = f"Task #{task.number} ({task.subject[:80]})"
    owner = task.owner_conversation_id
    if row.blocked_by:
        numbers = ", ".join(f"#{number}" for number in row.blocked_by)
        return f"{said} waits for {numbers}, which nobody does."
    if owner is None:
        return f"{said} is nobody's, and nobody can take it."
    if owner not in members:
        return f"{said} belongs to somebody who has left."
    member = members[owner]
    state = "was stopped" if member.status is Status.STOPPED else "is at rest"
    doing = "is in progress" if task.status == Task.Status.IN_PROGRESS else "is to be begun"
    return f"{said} {doing} by {member.name}, who {state}."


def _name(members: Mapping[int, Member], conversation: int) -> str:
    return members[conversation].name if conversation in members else "somebody who has left"

"""Hints that somebody should look at a team, and which team a happening concerns. `attending` looks."""

from __future__ import annotations

from conversations.ancestry import root_of
from conversations.models import Conversation, Event
from harness.events import Event as EventValue
from jobs.dispatch import dispatch
from jobs.prepared import Prepared

from .models import Board, Team

ATTEND = "teams_app.attend"

_OF_LEAD = Prepared(lambda given: Team.objects.filter(lead=given.conversation).values_list("pk"))


def attend_soon(team: Team) -> None:
    """After the current transaction. At most a hint: a sweep makes up for a lost one."""
    dispatch(ATTEND, team_id=team.pk)


def attend_board(board: Board) -> None:
    """Tasks of a team have changed: somebody idle may have something to do."""
    if board.conversation_id is not None:
        _attend_of(board.conversation_id)


def project(conversation: Conversation, _row: Event, _event: EventValue) -> None:
    """A conversation began to work or came to rest."""
    _attend_of(conversation.pk if conversation.parent_id is None else root_of(conversation))


def _attend_of(root: int) -> None:
    found = _OF_LEAD.first(conversation=root)
    if found is not None:
        dispatch(ATTEND, team_id=found[0] if isinstance(found, tuple) else found)

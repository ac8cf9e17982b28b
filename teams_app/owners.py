"""Who does a task: a person, or the agent of a conversation; and by what name a board knows her."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from accounts.models import User
from conversations.ancestry import root_of
from conversations.models import Conversation
from harness.errors import Invalid

from .models import Board, Task, Teammate

NAME_LIMIT = 150
"""Characters of `Task.owner_name`."""


@dataclass(frozen=True, slots=True)
class Owner:
    """At most one of both; neither is nobody."""

    user: User | None = None
    conversation: Conversation | None = None

    @property
    def name(self) -> str:
        if self.user is not None:
            return self.user.username
        return agent_name(self.conversation) if self.conversation is not None else ""

    def fields(self) -> dict[str, Any]:
        return {
            "owner_user": self.user,
            "owner_conversation": self.conversation,
            "owner_name": self.name[:NAME_LIMIT],
        }

    def has(self, task: Task) -> bool:
        user = self.user.pk if self.user else None
        conversation = self.conversation.pk if self.conversation else None
        return (user, conversation) == (task.owner_user_id, task.owner_conversation_id)


NOBODY = Owner()


def agent_name(conversation: Conversation) -> str:
    """What the agent of a conversation is called at its board."""
    teammate = Teammate.objects.filter(conversation=conversation).first()
    return teammate.name if teammate else conversation.agent_version.agent.name


def require_fit(board: Board, owner: Owner) -> None:
    """Invalid for somebody who cannot see the board, and for an agent that does not work at it."""
    user, conversation = owner.user, owner.conversation
    if user is not None:
        sees = _sees(user, board)
        if not (user.is_active and sees):
            raise _nobody(user.username)
    if conversation is not None and not works_at(board, conversation):
        raise Invalid(
            _("No agent of this name works at the board."),
            field="owner",
            hint=_("Name one of its conversation or its team, or leave the task to nobody."),
        )


def _sees(user: User, board: Board) -> bool:
    if board.is_stored:
        return Board.objects.visible_to(user).filter(pk=board.pk).exists()
    if board.conversation_id is None:
        return user.memberships.filter(organisation=board.organisation_id).exists()
    return Conversation.objects.visible_to(user).filter(pk=board.conversation_id).exists()


def works_at(board: Board, conversation: Conversation) -> bool:
    """Whether the agent of the conversation may act on the board: it descends from the board's own, or is
    of its organisation."""
    if board.conversation_id is None:
        return conversation.organisation_id == board.organisation_id
    return root_of(conversation) == board.conversation_id


def person_named(board: Board, name: str) -> User:
    """A member by name, mail address or id, who can see the board. Invalid for anybody else."""
    there = User.objects.filter(
        memberships__organisation=board.organisation_id, is_active=True, kind=User.Kind.PERSON
    )
    wanted = name.strip().lstrip("@").replace("\0", "")
    found = (
        there.filter(username=wanted).first()
        or there.filter(email__iexact=wanted).first()
        or there.filter(uid=wanted).first()
    )
    if found is None:
        raise _nobody(wanted)
    require_fit(board, Owner(user=found))
    return found


def _nobody(name: str) -> Invalid:
    return Invalid(
        _("Nobody who is called “%(name)s” can see the board.") % {"name": name[:100]},
        field="owner",
        hint=_("Name somebody whom the conversation is shared with, by her user name."),
    )

"""From which conversation a tool of this package is called, and how what is refused is told to a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from conversations.models import Conversation
from harness.errors import Declined, LimitReached, ToolError
from harness.tools import ToolContext
from teams_app.boards import board_of
from teams_app.members import member_named, member_of
from teams_app.models import Board
from teams_app.owners import NOBODY, Owner, person_named

EXTRA = "teams_app"
"""The key of the conversation, among a context's extras."""


def conversation_of(context: ToolContext) -> Conversation:
    key: int = context.extras[EXTRA]
    rows = Conversation.objects.select_related("owner", "organisation", "agent_version__agent")
    return rows.get(pk=key)


@contextmanager
def told_to_the_model() -> Iterator[None]:
    """What an action refuses becomes an error that the model reads."""
    try:
        yield
    except (Declined, LimitReached) as problem:
        raise ToolError(problem.message, hint=problem.hint) from problem


def owner_named(here: Conversation, name: str) -> Owner:
    """`me`, `nobody`, a member of the team, or a person behind an `@`."""
    wanted = name.strip()
    match wanted.casefold():
        case "me":
            return Owner(conversation=here)
        case "" | "nobody":
            return NOBODY
    if wanted.startswith("@"):
        return Owner(user=person_named(board_here(here), wanted))
    me = member_of(here)
    if me is not None:
        return Owner(conversation=member_named(me.team, wanted).conversation)
    raise ToolError(
        f"There is no agent “{wanted[:100]}” at this board.",
        hint="Say “me”, “nobody”, a teammate's name, or a person's user name behind an @.",
    )


def board_here(here: Conversation) -> Board:
    return board_of(here)


def text_in(arguments: Mapping[str, Any], name: str) -> str | None:
    value = arguments.get(name)
    return None if value is None else str(value)

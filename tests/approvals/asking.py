"""Calls that ask, as tests of approvals need them: stored without a run, or played by one."""

from __future__ import annotations

from typing import Any

from accounts.models import Organisation, Role, User
from approvals.models import Approval
from conversations.log import append
from conversations.models import Conversation
from harness.content import Text
from harness.events import (
    AgentToolUse,
    InputTaken,
    RequiresAction,
    SessionStatusIdle,
    SessionStatusRunning,
    UserMessage,
)
from harness.history import Entry
from harness.rules import AskTerms
from tests.cast import join, make_user

WRITE = {"path": "a.txt", "content": "one\n"}


def a_reviewer(organisation: Organisation, name: str = "rita") -> User:
    person = make_user(name)
    join(person, organisation, Role.REVIEWER)
    return person


def asks(
    conversation: Conversation,
    given: dict[str, Any] | None = None,
    *,
    tool: str = "write_file",
    rests: bool = True,
    **terms: Any,
) -> Approval:
    """A stored call that waits, as a run leaves it."""
    message = Entry.of(UserMessage(content=(Text(text="Do it."),)))
    append(conversation.pk, [message], actor=conversation.owner)
    taken = Entry.of(InputTaken(event_ids=(message.uid,)))
    use = Entry.of(
        AgentToolUse(
            name=tool,
            input=WRITE if given is None else given,
            evaluated_permission="ask",
            reason="A rule of this agent asks before write_file.",
            terms=AskTerms(effect="workspace", turn=taken.uid, **terms),
        )
    )
    entries = [Entry.of(SessionStatusRunning()), taken, use]
    if rests:
        entries.append(
            Entry.of(SessionStatusIdle(stop_reason=RequiresAction(event_ids=(use.uid,))))
        )
    append(conversation.pk, entries)
    conversation.refresh_from_db()
    return Approval.objects.get(conversation=conversation, call_uid=use.uid)

"""Answering a call that asks, as every door of a conversation does it.

How a call is decided belongs to `approvals`, which says so at start-up (`decide_with`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from accounts.models import User
from conversations.models import Conversation, Event


class Decide(Protocol):
    def __call__(
        self,
        *,
        actor: User,
        conversation: Conversation,
        call_uid: str,
        allow: bool,
        reason: str = "",
        shown: str = "",
        seen_round: int | None = None,
        read_to: str = "",
        edited_input: Mapping[str, Any] | None = None,
        key: str | None = None,
    ) -> Event: ...


_decide: list[Decide] = []


def decide_with(decide: Decide) -> None:
    _decide[:] = [decide]


def decide_call(
    *,
    actor: User,
    conversation: Conversation,
    call_uid: str,
    allow: bool,
    reason: str = "",
    shown: str = "",
    seen_round: int | None = None,
    read_to: str = "",
    edited_input: Mapping[str, Any] | None = None,
    key: str | None = None,
) -> Event:
    """Allow or deny a call that asks in one's own conversation, or one below it; only the first answer
    counts. `shown`, `seen_round`: what was on the card, so that nothing else is allowed; a door that shows
    no card says in `read_to` up to which event its person has read the log. Raises NotFound,
    AlreadyDecided, NotWaiting, AskedAnew and Invalid."""
    return _decide[0](
        actor=actor,
        conversation=conversation,
        call_uid=call_uid,
        allow=allow,
        reason=reason,
        shown=shown,
        seen_round=seen_round,
        read_to=read_to,
        edited_input=edited_input,
        key=key,
    )

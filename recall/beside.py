"""What other apps show on the memory page: a switch of theirs, and of which message a memory was made. And
what they forget with a conversation that is left out.

An app that adds to memory registers it (`show_beside`, in its `ready()`); this package knows none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from django.utils.functional import Promise

from accounts.models import Organisation, User
from conversations.models import Conversation
from memory.models import Memory


@dataclass(frozen=True, slots=True)
class Switch:
    on: bool
    words: str | Promise
    """What is so now."""
    address: str
    """Where a form sends `on`."""


@dataclass(frozen=True, slots=True)
class Beside:
    switch: Callable[[User, Organisation], Switch | None]
    """None: it would change nothing."""
    messages: Callable[[User, Sequence[Memory]], Mapping[str, str]]
    """By the id of a memory, the address of the message that it was made of, where she may read that."""
    forget: Callable[[Conversation], int]
    """All that was made of a conversation, where its owner said so; how much that was."""


_beside: dict[str, Beside] = {}


def show_beside(app: str, beside: Beside) -> None:
    """Have the page show it from now on; one for each app."""
    _beside[app] = beside


def switches_of(user: User, organisation: Organisation) -> list[Switch]:
    found = (each.switch(user, organisation) for each in _beside.values())
    return [switch for switch in found if switch is not None]


def messages_of(user: User, memories: Sequence[Memory]) -> dict[str, str]:
    messages: dict[str, str] = {}
    for each in _beside.values():
        messages.update(each.messages(user, memories))
    return messages


def forget_of(conversation: Conversation) -> int:
    """In the caller's transaction."""
    return sum(each.forget(conversation) for each in _beside.values())

"""What happens to people, organisations and their keys, told to whoever keeps the audit log.

The log belongs to a floor above, which listens here from the start on (`listen`). Actions tell in the
transaction of what they tell, so that neither is ever without the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum, auto
from typing import Any, Protocol

from accounts.models import Organisation, User


class Happening(StrEnum):
    """Each value is its name in lower case."""

    ORGANISATION_MADE = auto()
    ORGANISATION_RENAMED = auto()
    ORGANISATION_DELETED = auto()
    REVIEWERS_SEE_SET = auto()
    MEMBER_JOINED = auto()
    ROLE_CHANGED = auto()
    MEMBER_REMOVED = auto()
    INVITED = auto()
    INVITATION_WITHDRAWN = auto()
    SERVICE_MADE = auto()
    SERVICE_REMOVED = auto()
    SERVICE_HANDED_ON = auto()
    TOKEN_MADE = auto()
    TOKEN_REPLACED = auto()
    TOKEN_REVOKED = auto()
    PROVIDER_KEY_STORED = auto()
    PROVIDER_KEY_REMOVED = auto()
    PASSWORD_CHANGED = auto()
    PASSWORD_RESET = auto()
    FACTOR_ADDED = auto()
    FACTOR_REMOVED = auto()
    ADDRESS_CHANGED = auto()
    ACCOUNT_CHANGED = auto()
    ACCOUNT_DELETED = auto()


class Listener(Protocol):
    def __call__(
        self,
        happening: Happening,
        *,
        actor: User | None,
        organisation: Organisation | None,
        details: Mapping[str, Any],
    ) -> None: ...


_listeners: list[Listener] = []


def listen(listener: Listener) -> None:
    """Have it called for every happening from now on; once, however often it is said."""
    if listener not in _listeners:
        _listeners.append(listener)


def emit(
    happening: Happening,
    *,
    actor: User | None,
    organisation: Organisation | None = None,
    **details: Any,
) -> None:
    """`details` name things by their public ids and are JSON values; never a secret.

    A person among them is given as she is, and told by her id and name.
    """
    plain = {
        name: {"id": value.uid, "name": value.username} if isinstance(value, User) else value
        for name, value in details.items()
    }
    for listener in _listeners:
        listener(happening, actor=actor, organisation=organisation, details=plain)

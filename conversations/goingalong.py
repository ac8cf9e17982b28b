"""What of other subjects goes along with a fork, beside its dialogue and its files.

An app registers at start-up what copies its own (`go_along_with`, in its `ready()`); `actions.forking` asks
here and knows no app's name. What was allowed stays behind; what holds back goes along.
"""

from __future__ import annotations

from collections.abc import Callable

from accounts.models import User

from .models import Conversation

Part = Callable[[User, Conversation, Conversation], None]
"""Who forks, the conversation that is forked, and the fork. Called in the transaction that begins it, which
holds the row of the one that is forked; what it raises undoes that."""

_parts: dict[str, Part] = {}


def go_along_with(app: str, part: Part) -> None:
    """Have `part` copy what this app keeps of a conversation, from now on; one for each app."""
    _parts[app] = part


def go_along(actor: User, origin: Conversation, fork: Conversation) -> None:
    for part in _parts.values():
        part(actor, origin, fork)

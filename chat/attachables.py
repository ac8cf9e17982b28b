"""What may be attached by its name, behind an `@` in a message, beside the files of the workspace.

Apps say what there is in a conversation, with the address at which it is fetched and kept for the message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from accounts.models import User
from conversations.models import Conversation

MOST = 20
"""So many are shown together."""


@dataclass(frozen=True, slots=True)
class Attachable:
    label: str
    """What is typed behind the sign, without white space."""
    about: str
    address: str
    """Asked by POST, it answers with `files`, as `chat.attaching.chips` has them."""


Source = Callable[[Conversation], Iterable[Attachable]]

_sources: list[Source] = []


def offer_attachables(source: Source) -> None:
    """Have what it names offered from now on; once, however often it is said."""
    if source not in _sources:
        _sources.append(source)


def attachables_of(conversation: Conversation, reader: User, wanted: str) -> list[Attachable]:
    """Those whose label holds `wanted`, letters of any case; those that begin with it first. None for who
    only reads there: what its owner has to attach is not shared with her."""
    if not Conversation.objects.writable_by(reader).filter(pk=conversation.pk).exists():
        return []
    found = [
        each
        for source in _sources
        for each in source(conversation)
        if wanted in each.label.casefold()
    ]
    found.sort(key=lambda each: not each.label.casefold().startswith(wanted))
    return found[:MOST]

"""What a person does with several conversations at once: each by the action for one, each by itself.

What one refuses does not hold back the others, and is said. Subjects above add what they can do (`offer`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from django.utils.translation import gettext as _

from accounts.models import User
from conversations.actions.conversations import archive_conversation, delete_conversation
from conversations.models import Conversation, Run
from harness.errors import AgentError, Invalid

from .pins import pin_conversation
from .seen import mark_as_seen
from .tags import SEPARATOR, tag_conversation

MOST = 200
"""Conversations that one request changes."""

Act = Callable[[User, Conversation, str], object]
"""For one conversation, with the value that was given; raises as the action for one does."""


def _archive(actor: User, conversation: Conversation, value: str) -> None:
    archive_conversation(actor=actor, conversation=conversation, archived=True)


def _bring_back(actor: User, conversation: Conversation, value: str) -> None:
    archive_conversation(actor=actor, conversation=conversation, archived=False)


def _pin(actor: User, conversation: Conversation, value: str) -> None:
    pin_conversation(actor=actor, conversation=conversation, pinned=True)


def _unpin(actor: User, conversation: Conversation, value: str) -> None:
    pin_conversation(actor=actor, conversation=conversation, pinned=False)


def _seen(actor: User, conversation: Conversation, value: str) -> None:
    mark_as_seen(actor=actor, conversation=conversation)


def _tag(actor: User, conversation: Conversation, value: str) -> None:
    tag_conversation(actor=actor, conversation=conversation, words=value.split(SEPARATOR))


def _delete(actor: User, conversation: Conversation, value: str) -> None:
    delete_conversation(actor=actor, conversation=conversation)


_acts: dict[str, Act] = {
    "archive": _archive,
    "bring-back": _bring_back,
    "pin": _pin,
    "unpin": _unpin,
    "seen": _seen,
    "tag": _tag,
    "delete": _delete,
}


def offer(name: str, act: Act) -> None:
    """Have it done with several from now on."""
    _acts[name] = act


@dataclass(slots=True)
class Outcome:
    done: int = 0
    refused: list[tuple[str, AgentError]] = field(default_factory=list)
    """Titles, with the reason."""
    missing: int = 0
    """Of those that were named, how many there are not, or not any more."""


def chosen(actor: User, uids: Sequence[str]) -> list[Conversation]:
    """Of those that are named the ones she may see. Raises Invalid for none named, and for too many."""
    wanted = list(dict.fromkeys(uids))
    if not wanted:
        raise Invalid(
            _("No conversation is chosen."),
            field="chosen",
            hint=_("Tick at least one in the list."),
        )
    if len(wanted) > MOST:
        raise Invalid(
            _("At most %(limit)d conversations are changed at once.") % {"limit": MOST},
            field="chosen",
            hint=_("Choose fewer, then do it again."),
        )
    return list(Conversation.objects.visible_to(actor).filter(uid__in=wanted).in_list_order())


def at_work(conversations: Sequence[Conversation]) -> set[int]:
    """Which of them cannot be deleted now."""
    running = Run.objects.filter(conversation__in=conversations, state=Run.State.RUNNING)
    return set(running.values_list("conversation", flat=True))


def change_many(*, actor: User, uids: Sequence[str], act: str, value: str = "") -> Outcome:
    """Raises Invalid for an unknown act, a missing value, and as `chosen`; what one conversation refuses is
    in the outcome."""
    if act not in _acts:
        raise Invalid(_("Nothing is known that is called so."), field="act")
    if act == "tag" and not value.strip(f" {SEPARATOR}"):
        raise Invalid(_("No tag is written."), field="tags", hint=_("Type one, then choose Tag."))
    rows = chosen(actor, uids)
    outcome = Outcome(missing=len(set(uids)) - len(rows))
    for row in rows:
        try:
            _acts[act](actor, row, value)
        except AgentError as problem:
            outcome.refused.append((row.title, problem))
        else:
            outcome.done += 1
    return outcome

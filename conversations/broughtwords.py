"""What people wrote elsewhere and an agent here acts on: who they are is told in its log, so that they are
asked for, barred and charged as where they wrote it.

Words of strangers, who may be anybody, are `TableProvenance`'s and the `untrusted_by` of events; here only
where the events that say so stay behind.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from accounts.models import User
from harness.events import AppEvent
from harness.history import Entry

from .ancestry import root_of
from .log import append
from .models import Conversation
from .writers import by_people, instructing_in, writers_beside

Way = Literal["fork", "task", "step", "answer", "skill", "case"]


class WordsBrought(AppEvent):
    """What the agent hears rests on what this event's actor wrote elsewhere."""

    type: str = "x.words_brought"
    way: Way
    strangers: str = ""
    """Nobody is named: they came of this, in words."""

    def instructs(self) -> bool:
        return True

    def untrusted_by(self) -> str:
        return self.strangers

    def tells_of_before(self) -> bool:
        return True


def behind_what_stays(conversation: Conversation) -> set[int]:
    """Of `writers.behind`, those whose words do not go along with its dialogue. Its owner may be one, where
    the copy is another's."""
    outcomes = by_people([conversation.pk], ("user.define_outcome",)).values_list(
        "actor", flat=True
    )
    return writers_beside(conversation, root_of(conversation)) | set(outcomes)


def bring_words(conversation: Conversation, people: Iterable[int], *, way: Way) -> None:
    """Name them, but for its owner, among those who write in it; in a transaction. Whom it names already it
    does not name again."""
    others = set(people) - {conversation.owner_id}
    if others:
        others -= instructing_in([conversation.pk])
    if not others or _has_ended(conversation):
        return
    for person in User.objects.filter(pk__in=others).order_by("pk"):
        append(conversation.pk, [Entry.of(WordsBrought(way=way))], actor=person)


def _has_ended(conversation: Conversation) -> bool:
    ended = Conversation.objects.filter(pk=conversation.pk, status=Conversation.Status.TERMINATED)
    return ended.exists()

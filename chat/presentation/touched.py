"""What a call would act on where its arguments only name it, for its card and for the queue of approvals: as
`tools_app.touches` told it when people were asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from accounts.models import User
from conversations.models import Conversation, Event
from tools_app.touches import changes_in, shown_before, words_of

from .proposals import Diff, diff_from


@dataclass(frozen=True, slots=True)
class Touched:
    words: tuple[str, ...] = ()
    changes: tuple[Diff, ...] = ()

    @classmethod
    def of(cls, touches: Mapping[str, Any]) -> Self:
        # Of a text that a person says yes to, every line is there to its end.
        changes = (diff_from(change, longest=None) for change in changes_in(touches))
        return cls(tuple(words_of(touches)), tuple(changes))

    def __bool__(self) -> bool:
        return bool(self.words or self.changes)


NOTHING = Touched()


def touched_in(
    conversation: Conversation, rows: Iterable[Event], reader: User | None
) -> dict[str, Touched]:
    """Of those calls among `rows` that people were asked about, by their ids, as this reader may see it;
    None: for nobody in particular, who sees none of it. `rows` are all about each call."""
    if reader is None:
        return {}
    anew: set[str] = set()
    made: dict[str, Mapping[str, Any]] = {}
    for row in rows:
        if row.type == "x.approval_requested":
            anew.add(row.subject)
        elif row.type == "agent.tool_use":
            made[row.uid] = row.payload
    asked = {
        uid: use["name"]
        for uid, use in made.items()
        if use.get("evaluated_permission") == "ask" or uid in anew
    }
    shown = shown_before(reader, conversation.pk, asked)
    return {uid: Touched.of(touches) for uid, touches in shown.items()}

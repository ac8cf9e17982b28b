"""What a call would act on where its arguments only name it, for its card and for the queue of approvals: as
`tools_app.touches` told it when people were asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from tools_app.touches import changes_in, is_told_of, told_before, words_of

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


def touched(conversation: int, call_uid: str, tool: str) -> Touched:
    """Of a call of a conversation, by its key."""
    return Touched.of(told_before(conversation, call_uid)) if is_told_of(tool) else NOTHING

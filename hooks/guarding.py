"""The hooks of one run: read when it begins, asked by it, counted for those who look after them.

What is told behind a commit is `telling`'s; here it is only noted that there will be something to tell.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.db.models import Exists, OuterRef

from conversations.models import Conversation
from harness.history import History
from harness.hooks import About, Ruling
from jobs.engine import engine
from jobs.prepared import Prepared

from .asking import Held, ask
from .installed import Where
from .models import Hook
from .points import ASKED, TOLD
from .requests import before_request
from .rows import count, held_of, where_of
from .telling import has_ended, will_tell

_HOOKS = Prepared(
    lambda given: Hook.objects.filter(organisation=given.organisation, enabled=True).order_by(
        "position", "id"
    )
)


class Asking:
    """A `harness.hooks.Hooks`."""

    def __init__(self, conversation_id: int, hooks: Sequence[Held], where: Where) -> None:
        self._conversation_id = conversation_id
        self._hooks = hooks
        self._where = where
        points = frozenset(point for hook in hooks for point in hook.points)
        self.points = points & ASKED
        self._tells = not points.isdisjoint(TOLD)

    def sees(self, tool: str) -> bool:
        return any(each.sees(tool) for each in self._hooks)

    def before_request(self, history: History) -> Sequence[About]:
        return [*before_request(history, self.points)]

    async def ask(self, about: About, extras: Mapping[str, Any]) -> Ruling:
        ruling, told = await ask(self._hooks, about, self._where, extras)
        if told:
            counted = [(hook.pk, answer) for hook, answer in told]
            await engine.in_database(count, about.point, counted)
        return ruling

    async def ended(self) -> None:
        if self._tells:
            await has_ended(self._conversation_id)


def has_hooks() -> Exists:
    """Whether its organisation has any in use."""
    return Exists(Hook.objects.filter(organisation=OuterRef("organisation"), enabled=True))


def guard(conversation: Conversation) -> Asking | None:
    """None where its organisation has no hooks in use: then a run knows nothing of them."""
    rows = _HOOKS.all(organisation=conversation.organisation_id)
    if not rows:
        return None
    if any(not TOLD.isdisjoint(row.points) for row in rows):
        will_tell(conversation)
    return Asking(conversation.pk, [*map(held_of, rows)], where_of(conversation))

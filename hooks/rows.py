"""Between rows and what is asked: a hook as it is now, where something happens, and what came of asking."""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models import F

from conversations.models import Conversation

from .asking import Held
from .events import HookAnswer
from .installed import Where
from .models import Hook, HookCount


def held_of(row: Hook) -> Held:
    return Held(
        pk=row.pk,
        name=row.name,
        kind=row.kind,
        target=row.target,
        sealed=row.sealed,
        tool=row.tool,
        deadline=row.deadline,
        refuses_on_failure=row.on_failure == Hook.OnFailure.REFUSE,
        points=frozenset(row.points),
        trusted=row.vouched_for,
    )


def where_of(conversation: Conversation) -> Where:
    return Where(
        conversation=conversation.uid,
        organisation=conversation.organisation.uid,
        agent=conversation.agent_version.agent.uid,
        parent=conversation.parent.uid if conversation.parent is not None else "",
    )


def count(point: str, told: Iterable[tuple[int, HookAnswer]]) -> None:
    for pk, answer in told:
        HookCount.objects.filter(hook=pk, point=point).update(
            asked=F("asked") + 1,
            held_back=F("held_back") + int(answer.verdict in {"ask", "refuse"}),
            failed=F("failed") + int(answer.verdict == "failed"),
            milliseconds=F("milliseconds") + answer.milliseconds,
            last_milliseconds=answer.milliseconds,
        )

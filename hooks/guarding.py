"""The hooks of one run: read when it begins, asked about its calls, counted for those who look after them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from django.db.models import F

from conversations.models import Conversation
from harness.hooks import AboutCall, BeforeCall, Ruling
from jobs.engine import engine
from jobs.prepared import Prepared

from .asking import Held, ask
from .events import HookAnswer
from .installed import Where
from .models import Hook

_HOOKS = Prepared(
    lambda given: Hook.objects.filter(organisation=given.organisation, enabled=True).order_by(
        "position", "id"
    )
)


def guard(conversation: Conversation) -> BeforeCall | None:
    """None where its organisation has no hooks in use: then calls know nothing of them."""
    rows = _HOOKS.all(organisation=conversation.organisation_id)
    if not rows:
        return None
    hooks = [
        Held(
            pk=row.pk,
            name=row.name,
            kind=row.kind,
            target=row.target,
            sealed=row.sealed,
            tool=row.tool,
            deadline=row.deadline,
            refuses_on_failure=row.on_failure == Hook.OnFailure.REFUSE,
        )
        for row in rows
    ]
    where = Where(
        conversation=conversation.uid,
        organisation=conversation.organisation.uid,
        agent=conversation.agent_version.agent.uid,
    )
    return partial(_ask, hooks, where)


async def _ask(hooks: Sequence[Held], where: Where, about: AboutCall) -> Ruling:
    ruling, told = await ask(hooks, about, where)
    if told:
        await engine.in_database(_count, [(hook.pk, answer) for hook, answer in told])
    return ruling


def _count(told: Sequence[tuple[int, HookAnswer]]) -> None:
    for pk, answer in told:
        Hook.objects.filter(pk=pk).update(
            asked=F("asked") + 1,
            held_back=F("held_back") + int(answer.verdict in {"ask", "refuse"}),
            failed=F("failed") + int(answer.verdict == "failed"),
            milliseconds=F("milliseconds") + answer.milliseconds,
        )

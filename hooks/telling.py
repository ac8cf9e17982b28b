"""Tells hooks of what has happened: read from the log behind its commit, so that no turn waits for it.

A run notes when it begins that there will be something to tell, and hints when it has ended. What is to be
told becomes deliveries in the transaction that notes how far the log was read; each is told until it is taken
or given up: at least once, with one id. What a process that died leaves undone the sweep finds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef
from django.utils import timezone

from conversations.models import Conversation, Event, Run
from conversations.provenance import TableProvenance
from conversations.sandboxing import SandboxPlan, plan_sandbox, shell_access
from harness.events import (
    AgentThreadContextCompacted,
    RequiresAction,
    SessionStatusIdle,
    SpanModelRequestEnd,
    SubagentEnded,
)
from harness.events import Event as EventValue
from harness.hooks import About
from jobs.dispatch import dispatch
from jobs.engine import engine
from tools_app.builtin.shell import EXTRA as SHELL
from tools_app.provenance import EXTRA as PROVENANCE
from tools_app.workspace import workspace_for
from webhooks.deliveries import delay_after

from .asking import Held, ask_one
from .events import HookAnswer
from .installed import Where
from .models import Hook, HookDelivery, ToldUpTo
from .points import CHILD_AFTER, COMPACTION_AFTER, MODEL_AFTER, REST, TOLD, TURN_AFTER
from .rows import count, held_of, where_of

TELL = "hooks.tell"
FOLLOWED = (SpanModelRequestEnd, SessionStatusIdle, AgentThreadContextCompacted, SubagentEnded)
TYPES = tuple(kind.model_fields["type"].default for kind in FOLLOWED)
AT_ONCE = 500
"""Events of one reading, and rows that a sweep takes up."""
TRIES = 8
HELD_FOR = timedelta(seconds=90)
"""A delivery is its sender's; then it is due again. Longer than any deadline."""


def will_tell(conversation: Conversation) -> None:
    """A run begins whose hooks want to be told afterwards."""
    mark, made = ToldUpTo.objects.get_or_create(
        conversation=conversation, defaults={"seq": conversation.last_seq}
    )
    if not made and not mark.owes:
        ToldUpTo.objects.filter(pk=mark.pk).update(owes=True)


async def has_ended(conversation_id: int) -> None:
    """A hint: what it came to can be told."""
    await engine.in_database(dispatch, TELL, conversation_id=conversation_id)


async def tell(conversation_id: int) -> None:
    """Tell what is to be told of this conversation by now."""
    await engine.in_database(read_on, conversation_id)
    while (claimed := await engine.in_database(claim, conversation_id)) is not None:
        extras = claimed.extras()
        answer = await ask_one(claimed.hook, claimed.about, claimed.where, extras, uid=claimed.uid)
        await engine.in_database(settle, claimed, answer)


def sweep() -> None:
    """Hint again at what is due, and at what a run that ended has left to be read."""
    rows = HookDelivery.objects.filter(due_at__lte=timezone.now()).order_by("due_at")
    due = [*rows.values_list("conversation_id", flat=True)[:AT_ONCE]]
    at_work = Run.objects.filter(conversation=OuterRef("conversation"), state=Run.State.RUNNING)
    left = ToldUpTo.objects.filter(~Exists(at_work), owes=True).order_by("id")
    due += left.values_list("conversation_id", flat=True)[:AT_ONCE]
    for conversation_id in dict.fromkeys(due):
        dispatch(TELL, conversation_id=conversation_id)


# --- from the log to deliveries -------------------------------------------------------------------


def read_on(conversation_id: int) -> None:
    """Make deliveries of what the log gained since it was last read for hooks, and note how far that was."""
    with transaction.atomic():
        marks = ToldUpTo.objects.select_for_update(no_key=True)
        mark = marks.filter(conversation=conversation_id, owes=True).first()
        if mark is None:
            return
        # In this order: a run that begins meanwhile waits for the mark, and has it owe again.
        at_work = Run.objects.filter(conversation=conversation_id, state=Run.State.RUNNING).exists()
        conversation = Conversation.objects.get(pk=conversation_id)
        rows = Event.objects.filter(
            conversation=conversation_id, type__in=TYPES, seq__gt=mark.seq
        ).order_by("seq")[:AT_ONCE]
        events = [row for row in rows if row.seq <= conversation.last_seq]
        more = len(events) == AT_ONCE
        hooks = _listening(conversation.organisation_id)
        HookDelivery.objects.bulk_create(
            HookDelivery(
                hook=hook, conversation=conversation, point=point, subject=row.uid, facts=facts
            )
            for row in events
            for point, facts in told_of(row.value)
            for hook in hooks
            if point in hook.points and row.created_at >= hook.told_from
        )
        mark.seq = events[-1].seq if more else conversation.last_seq
        mark.owes = more or at_work
        mark.save(update_fields=["seq", "owes"])
        if more:
            dispatch(TELL, conversation_id=conversation_id)


def _listening(organisation_id: int) -> list[Hook]:
    rows = Hook.objects.filter(organisation=organisation_id, enabled=True)
    return [row for row in rows.order_by("position", "id") if not TOLD.isdisjoint(row.points)]


def told_of(event: EventValue) -> Iterator[tuple[str, dict[str, Any]]]:
    """At which points an event is told, with ids and numbers: whoever wants words reads them where he may."""
    match event:
        case SpanModelRequestEnd():
            yield (
                MODEL_AFTER,
                {
                    "request": event.model_request_start_id,
                    "end": event.end,
                    "is_error": event.is_error,
                    "usage": event.model_usage.model_dump(),
                },
            )
        case AgentThreadContextCompacted():
            facts: dict[str, Any] = {
                "messages": event.messages,
                "tokens_before": event.tokens_before,
            }
            yield COMPACTION_AFTER, {**facts, "dropped": event.fallback}
        case SubagentEnded():
            fields = {"tool_use_id", "subagent", "state", "tokens", "seconds"}
            yield CHILD_AFTER, event.model_dump(include=fields)
        case SessionStatusIdle():
            facts = {
                "stop_reason": event.stop_reason.type,
                "code": event.stop_details.code if event.stop_details is not None else "",
                "interrupted": event.interrupted,
            }
            if not isinstance(event.stop_reason, RequiresAction):
                yield TURN_AFTER, facts
            yield REST, facts
        case _:
            return


# --- deliveries -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Claimed:
    """A delivery to be told now."""

    pk: int
    uid: str
    attempts: int
    hook: Held
    about: About
    where: Where
    conversation_id: int
    sandbox: SandboxPlan | None = field(default=None, repr=False)
    """Of a command."""

    def extras(self) -> Mapping[str, Any]:
        """On the loop that asks."""
        if self.sandbox is None:
            return {}
        marks = TableProvenance(self.conversation_id)
        return {SHELL: shell_access(self.sandbox), PROVENANCE: marks}


def claim(conversation_id: int) -> Claimed | None:
    """Take the first delivery of the conversation that is due, for one try; None: there is none, or others
    have them."""
    now = timezone.now()
    with transaction.atomic():
        due = HookDelivery.objects.filter(conversation=conversation_id, due_at__lte=now)
        locked = due.select_for_update(of=("self",), skip_locked=True, no_key=True)
        first = locked.select_related("hook").order_by("id")
        while (row := first.first()) is not None and _is_over(row):
            row.delete()
        if row is None:
            return None
        row.attempts += 1
        row.due_at = now + HELD_FOR
        row.save(update_fields=["attempts", "due_at"])
    conversation = Conversation.objects.select_related(
        "organisation", "agent_version__agent", "environment", "parent"
    ).get(pk=conversation_id)
    plan = None
    if row.hook.kind == Hook.Kind.COMMAND:
        plan = plan_sandbox(conversation, conversation.config, workspace_for(conversation.uid))
    return Claimed(
        pk=row.pk,
        uid=row.uid,
        attempts=row.attempts,
        hook=held_of(row.hook),
        about=About(row.point, row.subject, more=row.facts),
        where=where_of(conversation),
        conversation_id=conversation_id,
        sandbox=plan,
    )


def _is_over(row: HookDelivery) -> bool:
    """Its hook is not to be told any more, or every process that tried it died over it."""
    hook = row.hook
    return row.attempts >= TRIES or not hook.enabled or row.point not in hook.points


def settle(claimed: Claimed, answer: HookAnswer) -> None:
    """It was taken or is given up, and counted; or it is due again later."""
    row = HookDelivery.objects.filter(pk=claimed.pk, attempts=claimed.attempts)
    if answer.verdict == "failed" and claimed.attempts < TRIES:
        delay = delay_after(claimed.attempts)
        if row.update(due_at=_in(delay)):
            dispatch(TELL, delay=delay, conversation_id=claimed.conversation_id)
        return
    if row.delete()[0]:
        count(claimed.about.point, [(claimed.hook.pk, answer)])


def _in(seconds: float) -> datetime:
    return timezone.now() + timedelta(seconds=seconds)

"""Has the log of the conversation that people began say which conversations below it wait for a person, and
on which calls, so that who follows only that log can answer them.

It compares what waits with what was said last, under the lock of both, so each change is said once, whoever
looks. Hints to look come from `projection`; the sweep makes up for lost ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from conversations.ancestry import TreeOf, root_of
from conversations.log import append
from conversations.models import Conversation, Event
from harness.events import RequiresAction, SessionStatusIdle
from harness.history import Entry
from jobs.apart import each_apart
from jobs.prepared import Prepared

from .events import SubagentsAsk, ThreadAsk
from .models import Subagent, Tree

MOST = 200
"""Conversations below one that are looked at."""


@dataclass(frozen=True, slots=True)
class _Ask:
    name: str
    """What the conversation is called."""
    calls: tuple[str, ...]
    rest: Event
    """With which it waits for them."""


_ANYBODY_ASKS = Prepared(
    lambda given: (
        Conversation.objects.order_by()
        .filter(
            pk__in=TreeOf(given.root),
            parent__isnull=False,
            status=Conversation.Status.IDLE,
            stop_reason="requires_action",
        )
        .values_list("pk")[:1]
    )
)
_SAID = Prepared(
    lambda given: Tree.objects.filter(root=given.root).exclude(asks={}).values_list("root")[:1]
)


def tell_asks(root_id: int) -> None:
    """Say what has changed since it was said last; nothing where nothing has."""
    if not (_ANYBODY_ASKS.exists(root=root_id) or _SAID.exists(root=root_id)):
        return
    with transaction.atomic():
        Tree.objects.get_or_create(root_id=root_id)
        tree = Tree.objects.select_for_update().get(root_id=root_id)
        root = Conversation.objects.select_for_update(no_key=True).filter(pk=root_id).first()
        if root is None or root.status == Conversation.Status.TERMINATED:
            return
        asking = _asking(root_id)
        before: dict[str, Any] = tree.asks.get("threads", {})
        rests = bool(asking) and not _anybody_works(root)
        event = SubagentsAsk(
            asking=tuple(
                ThreadAsk(
                    thread=uid,
                    name=ask.name,
                    calls=ask.calls,
                    known=_known(ask, before[uid]) if uid in before else (),
                    read_to=ask.rest.uid,
                )
                for uid, ask in asking.items()
                if before.get(uid, {}).get("read_to") != ask.rest.uid
            ),
            going_on=tuple(
                ThreadAsk(thread=uid, name=each["name"])
                for uid, each in before.items()
                if uid not in asking
            ),
            rests=rests,
            all_calls=tuple(call for ask in asking.values() for call in ask.calls),
        )
        if not (event.asking or event.going_on or rests != tree.asks.get("rests", False)):
            return
        append(root_id, [Entry.of(event)])
        threads = {
            uid: {"name": ask.name, "calls": list(ask.calls), "read_to": ask.rest.uid}
            for uid, ask in asking.items()
        }
        tree.asks = {"threads": threads, "rests": rests} if threads else {}
        tree.save(update_fields=["asks"])


def tell_left() -> None:
    """The same for all that hints were lost about: what was said and may hold no more, and what waits and was
    never said."""
    said = dict(Tree.objects.exclude(asks={}).order_by("pk").values_list("root_id", "asks")[:MOST])
    told = {uid for asks in said.values() for uid in asks.get("threads", {})}
    waiting = Conversation.objects.filter(
        parent__isnull=False,
        status=Conversation.Status.IDLE,
        stop_reason="requires_action",
    ).order_by("-active_at")
    never_said = {root_of(row) for row in waiting[:MOST] if row.uid not in told}
    each_apart(tell_asks, sorted({*said, *never_said}), told="who asks below %s could not be told")


def _below(root_id: int) -> QuerySet[Conversation]:
    found: list[int] = []
    generation = [root_id]
    while generation and len(found) < MOST:
        rows = Conversation.objects.filter(parent__in=generation).order_by("pk")
        generation = list(rows.values_list("pk", flat=True)[: MOST - len(found)])
        found += generation
    return Conversation.objects.filter(pk__in=found).order_by("pk")


def _known(ask: _Ask, before: dict[str, Any]) -> tuple[str, ...]:
    """Those told of `before` that were not asked anew since: such a question is to be seen whole."""
    log = Event.objects.filter(conversation=ask.rest.conversation_id)
    told = log.filter(uid=before.get("read_to", "")).values_list("seq", flat=True).first() or 0
    later = log.filter(type="x.approval_requested", subject__in=before["calls"], seq__gt=told)
    anew = set(later.values_list("subject", flat=True))
    return tuple(call for call in before["calls"] if call not in anew)


def _asking(root_id: int) -> dict[str, _Ask]:
    """The conversations below that wait for a person, by their ids."""
    below = _below(root_id)
    rows = below.filter(status=Conversation.Status.IDLE, stop_reason="requires_action")
    waiting = list(rows.select_related("agent_version__agent"))
    if not waiting:
        return {}
    called = {
        row.child_id: row.kind
        for row in Subagent.objects.filter(child__in=[row.pk for row in waiting]).order_by("pk")
    }
    found = {}
    for row in waiting:
        rests = Event.objects.filter(conversation=row, type="session.status_idle")
        rest = rests.order_by("-seq")[0]
        value = rest.value
        if isinstance(value, SessionStatusIdle) and isinstance(value.stop_reason, RequiresAction):
            name = called.get(row.pk) or row.agent_version.agent.name
            found[row.uid] = _Ask(name, value.stop_reason.event_ids, rest)
    return found


def _anybody_works(root: Conversation) -> bool:
    return any(
        row.is_running or row.is_about_to_start or row.owes_run for row in [root, *_below(root.pk)]
    )

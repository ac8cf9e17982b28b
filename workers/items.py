"""Work items from state to state: offered, acknowledged, kept alive, given back, lost.

Whoever takes one gets a secret that opens its conversation's calls for as long as the lease lasts. An
item that ends without all calls answered leaves a new one under a new id, so that a worker which comes
back late can neither stop nor answer what another has by then. Who may ask for any of this is
`actions.work`'s.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.conf import settings
from django.core.cache import cache
from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from accounts.tokens import hash_token, new_token
from agents.models import Environment
from conversations.judging import history_of, kit_of
from conversations.log import append
from conversations.models import Conversation
from conversations.opencalls import answered
from conversations.wakes import wake
from harness.calls import UNKNOWN, taken_back
from harness.content import as_blocks
from harness.events import AgentToolResult, OutcomeUnknown
from harness.history import Entry
from harness.tools import Effect
from jobs.leases import in_time, lapsed, lease_end

from . import handouts
from .models import LEASED, EnvironmentKey, HandedCall, WorkItem

SECRET_PREFIX = "agw_"  # noqa: S105 - how every secret of an item begins
LONGEST_TTL, SHORTEST_TTL = 600, 1
"""Seconds of a lease without a sign of life, whatever a worker asks for."""
SEEN_POLLING = 30.0
"""Seconds for which a worker that asked for work counts as one that does."""
MOST_POLLING = 1_000
"""Workers of one environment that are counted so, those that asked last."""
ATTEMPTS = 5
"""To weigh calls by a log that goes on meanwhile."""
AT_A_TIME = 100
"""Items that one look considers."""

State, Ending = WorkItem.State, WorkItem.Ending


@dataclass(frozen=True, slots=True)
class Offered:
    item: WorkItem
    secret: str = field(repr=False)
    """Known only now; only its hash is stored."""


# --- taking ---------------------------------------------------------------------------------------


def offer(key: EnvironmentKey, *, worker: str, reclaim_after: timedelta) -> Offered | None:
    """The oldest item of the key's environment that waits, now this worker's to acknowledge; None
    while there is none, or once the key is revoked. What was offered longer ago than `reclaim_after`
    and not acknowledged, and what was lost with its worker, waits again."""
    items = WorkItem.objects.filter(environment=key.environment_id)
    unclaimed = Q(state=State.QUEUED, offered_at__lt=Now() - reclaim_after)
    _end_each(items.filter(unclaimed), unclaimed, Ending.UNCLAIMED)
    _end_each(items.lapsed(), _LAPSED, Ending.LOST)
    free = items.filter(state=State.QUEUED, offered_at=None).of_members().order_by("pk")
    for pk, conversation_id in free.values_list("pk", "conversation_id")[:AT_A_TIME]:
        with transaction.atomic():
            if _hold(conversation_id) is None:
                continue
            item = free.filter(pk=pk).first()
            if item is None:
                continue
            if not HandedCall.objects.filter(conversation=conversation_id).exists():
                _close(item, Ending.NEEDLESS)
                continue
            # Locked: whoever revokes it meanwhile comes before this and is heeded, or finds the item.
            if not EnvironmentKey.objects.valid().select_for_update(no_key=True).filter(pk=key.pk):
                return None
            secret = SECRET_PREFIX + new_token()
            item.key, item.worker, item.digest = key, worker[:200], hash_token(secret)
            item.save(update_fields=["key", "worker", "digest"])
            WorkItem.objects.filter(pk=pk).update(offered_at=Now())
            item.refresh_from_db()
            return Offered(item, secret)
    return None


def acknowledge(item: WorkItem) -> bool:
    """Take what was offered; again is the same as once. False when it is another's by now."""
    these = WorkItem.objects.permitted().filter(pk=item.pk)
    offered = these.filter(state=State.QUEUED).exclude(offered_at=None)
    ttl = settings.AGENTSITE_WORK_LEASE_SECONDS
    taken = offered.update(
        state=State.STARTING,
        acknowledged_at=timezone.now(),
        ttl_seconds=ttl,
        lease_until=lease_end(ttl),
    )
    return bool(taken) or these.leased().exists()


# --- keeping --------------------------------------------------------------------------------------


def beat(item: WorkItem, *, expected: datetime | None, compare: bool, ttl: int) -> bool:
    """Prolong the lease, if its last sign of life is the `expected` one or it is being stopped;
    False where it is not, or is lost. `expected` None: there has been none yet."""
    held = _held(item)
    if compare:
        stands = Q(heartbeat_at=expected) if expected else Q(heartbeat_at=None)
        held = held.filter(Q(state=State.STOPPING) | stands)
    now = timezone.now()
    ttl = min(max(ttl, SHORTEST_TTL), LONGEST_TTL)
    kept = held.update(heartbeat_at=now, ttl_seconds=ttl, lease_until=lease_end(ttl))
    started = WorkItem.objects.filter(pk=item.pk, state=State.STARTING, heartbeat_at=now)
    started.update(state=State.ACTIVE, started_at=now)
    return bool(kept)


def holds(item: WorkItem) -> bool:
    """Whether its worker may act by it now."""
    return _held(item).exists()


def _held(item: WorkItem) -> QuerySet[WorkItem]:
    """The item, if it is its worker's and there is somebody whose work it is."""
    return WorkItem.objects.filter(pk=item.pk).leased().filter(in_time()).permitted()


def send_calls(item: WorkItem) -> dict[str, int]:
    """The calls that the item's worker is to carry out, with the number of the event that handed
    each out. That it was told of them is stored before this returns; without its lease it is told
    nothing. What may not run any more when it would be told of it is answered or asked about instead."""
    for _attempt in range(ATTEMPTS):
        weighed = _weigh(item.conversation_id)
        with transaction.atomic():
            held = _hold(item.conversation_id)
            if held is None or not holds(item):
                return {}
            calls = HandedCall.objects.filter(conversation=held)
            calls = calls.filter(Q(sent_to=None) | Q(sent_to=item))
            given = calls.values_list("call_uid", flat=True)
            calls = calls.exclude(call_uid__in=answered(held.pk, given))
            unsent = set(calls.filter(sent_to=None).values_list("call_uid", flat=True))
            if unsent and not weighed.covers(unsent, held):
                continue
            if back := {uid: weighed.taken_back[uid] for uid in unsent & weighed.taken_back.keys()}:
                _take_back(held, back)
            calls.filter(sent_to=None).update(sent_to=item)
            return dict(calls.values_list("call_uid", "seq"))
    # The log grows faster than it is read: what is new is for the worker's next look.
    sent = HandedCall.objects.filter(conversation=item.conversation_id, sent_to=item)
    given = sent.values_list("call_uid", flat=True)
    sent = sent.exclude(call_uid__in=answered(item.conversation_id, given))
    return dict(sent.values_list("call_uid", "seq")) if holds(item) else {}


@dataclass(frozen=True, slots=True)
class _Weighed:
    """What became of the calls that no worker was told of yet, by the log up to a number."""

    calls: frozenset[str] = frozenset()
    seq: int = 0
    taken_back: Mapping[str, Entry] = field(default_factory=dict)
    """The refusals and questions, by the call."""

    def covers(self, calls: Set[str], conversation: Conversation) -> bool:
        return calls <= self.calls and self.seq == conversation.last_seq


def _weigh(conversation_id: int) -> _Weighed:
    """Before any lock: to judge takes the whole log. Nobody knows how long a call waited for its worker."""
    unsent = HandedCall.objects.filter(conversation=conversation_id, sent_to=None)
    uids = list(unsent.values_list("call_uid", flat=True))
    conversation = Conversation.objects.filter(pk=conversation_id).first() if uids else None
    if conversation is None:
        return _Weighed()
    # The rules first: what is said in between is told by the log's number.
    kit, history = kit_of(conversation), history_of(conversation)
    found: dict[str, Entry] = {}
    for uid in uids:
        call = history.open_call(uid)
        entry = taken_back(call, kit, history) if call is not None else None
        if entry is not None:
            found[uid] = entry
    return _Weighed(frozenset(uids), history.last_seq, found)


def _take_back(conversation: Conversation, entries: Mapping[str, Entry]) -> None:
    """Its run goes on from there."""
    for uid in entries:
        handouts.close(conversation, uid)
    append(conversation.pk, list(entries.values()))
    Conversation.objects.filter(pk=conversation.pk).update(owes_run=True)
    wake(conversation.pk)


# --- ending ---------------------------------------------------------------------------------------


def ask_to_stop(item: WorkItem) -> bool:
    """Have its worker wind down, which it hears with its next heartbeat; False if nobody has it."""
    held = WorkItem.objects.filter(pk=item.pk, state__in=[State.STARTING, State.ACTIVE])
    return bool(held.update(state=State.STOPPING, stop_requested_at=timezone.now()))


def give_back(item: WorkItem) -> bool:
    """End it; False if it had ended. What its worker was told and has not answered is settled."""
    return _end(item, Q(), Ending.GIVEN_BACK)


def take_away(items: Iterable[WorkItem]) -> None:
    """End items whose worker may not go on."""
    for item in items:
        _end(item, Q(), Ending.LOST)


def end_lapsed() -> int:
    """End what was lost with its worker, in every environment; how many items that were."""
    return _end_each(WorkItem.objects.lapsed(), _LAPSED, Ending.LOST)


_LAPSED = Q(state__in=LEASED) & lapsed()


def _end_each(items: QuerySet[WorkItem], still: Q, ending: WorkItem.Ending) -> int:
    found = list(items.order_by("pk")[:AT_A_TIME])
    return sum(_end(item, still, ending) for item in found)


def _end(item: WorkItem, still: Q, ending: WorkItem.Ending) -> bool:
    with transaction.atomic():
        held = _hold(item.conversation_id)
        if held is None:
            return False
        current = WorkItem.objects.alive().filter(still, pk=item.pk).first()
        if current is None:
            return False
        _close(current, ending)
        _settle(current, held)
        if HandedCall.objects.filter(conversation=held).exists():
            handouts.queue(held)
    return True


def _close(item: WorkItem, ending: WorkItem.Ending) -> None:
    item.state, item.ending, item.stopped_at = State.STOPPED, ending, timezone.now()
    item.save(update_fields=["state", "ending", "stopped_at"])


def _settle(item: WorkItem, conversation: Conversation) -> None:
    """What the worker was told and has not answered may or may not have happened. Reading is done
    again by the next one; nothing else is, unless a person says so."""
    sent_to = list(
        HandedCall.objects.filter(conversation=conversation, sent_to=item).order_by("seq")
    )
    done = answered(conversation, [call.call_uid for call in sent_to])
    entries: list[Entry] = []
    for call in sent_to:
        if call.call_uid in done:
            handouts.close(conversation, call.call_uid)
        elif call.effect == Effect.READ:
            HandedCall.objects.filter(pk=call.pk).update(sent_to=None)
        elif call.effect == Effect.WORKSPACE:
            handouts.close(conversation, call.call_uid)
            result = AgentToolResult(
                tool_use_id=call.call_uid,
                content=as_blocks(UNKNOWN),
                is_error=True,
                outcome="unknown",
            )
            entries.append(Entry.of(result))
        else:
            unknown = OutcomeUnknown(
                tool_use_id=call.call_uid, effect=call.effect, idempotent=call.idempotent
            )
            entries.append(Entry.of(unknown))
    if entries:
        append(conversation.pk, entries)
        Conversation.objects.filter(pk=conversation.pk).update(owes_run=True)
        wake(conversation.pk)


def _hold(conversation_id: int) -> Conversation | None:
    """The conversation, locked: first of all locks, as in an append."""
    rows = Conversation.objects.select_for_update(of=("self",), no_key=True)
    return rows.filter(pk=conversation_id).first()


# --- figures --------------------------------------------------------------------------------------


def note_polling(environment: Environment, worker: str) -> None:
    """Remember that this worker asked for work a moment ago. A figure for people: it may be off."""
    if not worker:
        return
    now = timezone.now().timestamp()
    seen = _polling(environment)
    seen.pop(worker[:200], None)
    # The newest stand last. Names are made up by whoever has a key.
    kept = [(name, at) for name, at in seen.items() if at > now - SEEN_POLLING]
    named = dict(kept[1 - MOST_POLLING :])
    cache.set(_polling_key(environment), {**named, worker[:200]: now}, timeout=2 * SEEN_POLLING)


def workers_polling(environment: Environment) -> int:
    since = timezone.now().timestamp() - SEEN_POLLING
    return sum(at > since for at in _polling(environment).values())


def _polling(environment: Environment) -> dict[str, float]:
    return cache.get(_polling_key(environment)) or {}


def _polling_key(environment: Environment) -> str:
    return f"work:polling:{environment.pk}"

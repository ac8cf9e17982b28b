"""Who may run a conversation: taken, kept alive, given back and swept up by conditional writes.

The database decides every race; somebody else being faster is an ordinary answer. What a run does
with its claim is `runner`'s part.
"""

from __future__ import annotations

import os
import secrets
import socket
from functools import cache
from pathlib import Path

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Case, OuterRef, Q, QuerySet, Subquery, Value, When
from django.db.models.functions import Now

from jobs.leases import lapsed, lease_end
from jobs.metrics import RUNS_LOST
from jobs.prepared import Given, Prepared, PreparedUpdate

from . import activations, logsql, processes, seats
from .models import Activation, Conversation, Run, Wake
from .models.conversation import ConversationQuerySet
from .wakes import forget_woken, wake

_RUNNING = Prepared(
    lambda given: Run.objects.filter(
        conversation=given.conversation, state=Run.State.RUNNING
    ).values_list("pk")
)
_HELD = Prepared(
    # As an append of the run before does: so one that is under way is in the log before this run
    # reads it, and everybody locks in the same order.
    lambda given: (
        Conversation.objects.select_for_update(no_key=True)
        .only("owner_id", "organisation_id", "parent_id")
        .filter(pk=given.pk)
    )
)
_RELEASED = PreparedUpdate(
    lambda given: Run.objects.filter(pk=given.pk, state=Run.State.RUNNING),
    lambda given: {
        "state": given.state,
        "stop_reason": given.stop_reason,
        "error": given.error,
        "ended_at": Now(),
    },
)


def _host() -> str:
    """Where process numbers mean the same: a container has its own, whatever it calls itself."""
    try:
        namespace = Path("/proc/self/ns/pid").stat().st_ino
    except OSError:
        namespace = 0
    return f"{socket.gethostname()[:60]}/{namespace}"


def worker() -> str:
    """This process, for people and for telling that it is gone. A forked process is another one."""
    return _name_of(os.getpid())


@cache
def _name_of(process: int) -> str:
    return f"{_host()}:{process}:{secrets.token_hex(4)}"


def claim(conversation_id: int, cause: str = Activation.Cause.HINT) -> Run | None:
    """Take the conversation, or None while another run holds it, while its owner or organisation has
    no seat free (then it is woken when its turn comes), or when there is none.

    `cause` is what woke the caller, for the journal.
    """
    run = _taken(conversation_id, cause)
    if run is not None or not _is_running(conversation_id):
        return run
    dropped = _drop_dead(Run.objects.filter(conversation_id=conversation_id))
    return _taken(conversation_id, cause) if dropped else None


def _taken(conversation_id: int, cause: str) -> Run | None:
    try:
        with transaction.atomic():
            conversation = _HELD.first(pk=conversation_id)
            if conversation is None or _is_running(conversation_id):
                return None
            if not seats.take(conversation):
                return None
            run = logsql.begin_run(
                conversation_id, worker(), seconds=settings.AGENTSITE_LEASE_SECONDS
            )
            activations.lease(run, cause=Activation.Cause(cause))
            return run
    except IntegrityError:
        return None


def _is_running(conversation_id: int) -> bool:
    return _RUNNING.exists(conversation=conversation_id)


def renew(run: Run) -> bool:
    """Keep the lease; False when it was lost meanwhile."""
    held = Run.objects.filter(pk=run.pk, state=Run.State.RUNNING)
    return held.update(lease_until=lease_end(settings.AGENTSITE_LEASE_SECONDS)) == 1


def release(
    run: Run,
    *,
    stop_reason: str = "",
    error: str = "",
    step: Activation.Step = Activation.Step.ACKED,
) -> bool:
    """Give the conversation back; False when it was lost before. `step` is for the journal."""
    state = Run.State.FAILED if error else Run.State.RESTED
    with transaction.atomic():
        queue = seats.lock_queue(run.conversation)
        given = _RELEASED.run(
            pk=run.pk, state=state.value, stop_reason=stop_reason, error=error[:2000]
        )
        if given:
            # The kind of an error, not its words: those may hold what people wrote.
            activations.end(run, step, error.partition(":")[0] or stop_reason)
            for next_one in seats.next_after(queue):
                wake(next_one)
    return given == 1


def lost_conversations() -> list[int]:
    """Conversations that somebody ought to run and nobody does, the most urgent first: what people
    wait for, then wakes by their priority; among equals the oldest activity.

    Runs whose lease ran out or whose process is gone are marked lost on the way. Of those that wait
    for a seat only whoever has one is named.
    """
    _drop_dead(Run.objects.all())
    return [*seats.next_of_all(), *(pk for (pk,) in _unseated.all())]


@Prepared
def _unseated(_given: Given) -> QuerySet[Conversation, tuple[int]]:
    first_due = (
        Wake.objects.due()
        .filter(conversation=OuterRef("pk"))
        .annotate(urgency=_URGENCY)
        .order_by("urgency")
        .values("urgency")[:1]
    )
    urgency = Case(When(_asked(), then=Value(0)), default=Subquery(first_due))
    found = owing().annotate(urgency=urgency).order_by("urgency", "active_at", "pk")
    return found.filter(seat_wait=None).values_list("pk")


def owing() -> ConversationQuerySet:
    """What somebody ought to run and nobody does."""
    due = Wake.objects.due().values("conversation_id")
    unclaimed = ~Q(runs__state=Run.State.RUNNING)
    return Conversation.objects.filter(_asked() | Q(pk__in=due), unclaimed)


def _asked() -> Q:
    """Work that was begun, or that a person waits for."""
    put_off = Wake.objects.waiting().filter(kind=Wake.Kind.RETRY).values("conversation_id")
    return Q(status=Conversation.Status.RUNNING) | Q(owes_run=True) & ~Q(pk__in=put_off)


_URGENCY = Case(
    When(kind=Wake.Kind.RETRY, then=Value(0)),
    When(priority="high", then=Value(1)),
    When(priority="low", then=Value(3)),
    default=Value(2),
)


def _drop_dead(runs: QuerySet[Run]) -> bool:
    """Mark those lost whose lease ran out, or whose process on this host is gone. Whether there were any,
    also where somebody else marks them."""
    running = runs.filter(state=Run.State.RUNNING)
    host = worker().split(":", 1)[0]
    here = running.filter(worker__startswith=f"{host}:").exclude(worker=worker())
    # A number that is another process's by now only means waiting for the lease to run out.
    gone = [
        run.pk for run in here.only("worker") if not processes.runs(int(run.worker.split(":")[1]))
    ]
    dead = running.filter(lapsed() | Q(pk__in=gone)).order_by("pk")
    if not dead.exists():
        return False
    with transaction.atomic():
        # Two sweeps at once share the rows instead of waiting for each other's.
        found = list(dead.select_for_update(skip_locked=True, no_key=True))
        if found:
            lost = running.filter(pk__in=[run.pk for run in found])
            lost.update(state=Run.State.LOST, ended_at=Now())
            activations.abandon(found)
            RUNS_LOST.inc(len(found))
    forget_woken(run.conversation_id for run in found)
    return True

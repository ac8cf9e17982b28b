"""One run: claim the conversation, load its log, drive the loop, come to rest.

This is the seam: the harness is async and knows no tables, tables are sync; every touch of them goes
through `engine.in_database`. What to do is the loop's decision, who may do it the claim's.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import structlog
from django.conf import settings
from django.db import DatabaseError, transaction

from accounts.keyholders import who_can_mend
from accounts.persons import whose_place
from harness.errors import LeaseLost
from harness.events import (
    RetriesExhausted,
    SessionError,
    SessionErrorBody,
    SessionStatusIdle,
    StopDetails,
)
from harness.history import Entry, History
from harness.kit import Signal
from harness.loop import Loop
from harness.lostrequests import left_behind
from harness.messages import ModelRequest
from harness.ports import LiveBlock
from jobs.engine import engine
from jobs.prepared import Prepared
from jobs.shares import Shares
from live.hub import hub
from live.output import LiveOutput
from tools_app.documents import opened_for

from . import activations, claims, delays, departures, log, lostruns, partials
from .checkpoints import bring_back_due
from .interrupts import interrupts
from .journal import TableJournal
from .kitparts import rules_of
from .kits import Plan, build_kit, plan_kit, providers
from .livetext import LiveText
from .models import Activation, Conversation, Event, Run
from .traces import save_request, save_response
from .wakes import wake

logger = logging.getLogger(__name__)

TOOLS_AT_ONCE = 4
"""Plain tools of one run that work side by side."""

_LOADED = Prepared(
    lambda given: Conversation.objects.select_related(
        "owner", "organisation", "agent_version__agent", "environment"
    ).filter(pk=given.pk)
)

_LEFT = Prepared(
    lambda given: (
        Conversation.objects.filter(pk=given.pk)
        .order_by()
        .annotate(last=lostruns.last_state(), due=delays.any_due(), partials=partials.any_left())
        .values_list("last", "due", "partials")
    )
)
"""What runs before it and delayed wakes left for a run: mostly nothing."""
_RESTED = Prepared(lambda given: Conversation.objects.filter(pk=given.pk))
_OWES = Prepared(
    lambda given: Conversation.objects.filter(pk=given.pk, owes_run=True).values_list("pk")
)


_tool_threads = Shares(max(1, settings.AGENTSITE_TOOL_THREADS // 2))
"""Of one person's runs together: files may be made to take long, and others have tools as well."""


class ToolThreads:
    """Runs the plain tools of one run in the engine's tool threads, a few of them at a time, so that
    one conversation's slow tools hold up neither another's nor any write to the log, and all of one
    person's (`place`) not everybody else's."""

    def __init__(self, place: int) -> None:
        self._place = place
        self._seats = asyncio.Semaphore(TOOLS_AT_ONCE)

    async def __call__(self, function: Callable[..., Any], *args: Any) -> Any:
        call = partial(_for_whom, self._place, function, *args)
        async with self._seats:
            return await _tool_threads.run(self._place, engine.in_tool_thread, call)


def _for_whom(place: int, function: Callable[..., Any], *args: Any) -> Any:
    with opened_for(place):
        return function(*args)


class TableTracer:
    """Keeps what is sent and comes back, as rows."""

    def __init__(self, conversation_id: int) -> None:
        self._conversation_id = conversation_id

    async def request(self, model_request_id: str, request: ModelRequest) -> None:
        await engine.in_database(save_request, self._conversation_id, model_request_id, request)

    async def response(self, model_request_id: str, response: dict[str, Any]) -> None:
        await engine.in_database(save_response, model_request_id, response)


class Poisoned(Exception):
    """Runs of this conversation keep ending with their process."""


_driven: set[int] = set()
"""Conversations that runs of this process are at; of use on the engine's loop only."""


async def run_conversation(conversation_id: int, cause: str = Activation.Cause.HINT) -> None:
    """Do what the conversation owes, if anything, unless another run is at it already."""
    if conversation_id in _driven:
        return  # that run looks once more before it ends; asking the tables would only cost
    begun = await _begin_whole(conversation_id, cause)
    if begun is None:
        return
    run = begun.run
    structlog.contextvars.bind_contextvars(run=run.pk)
    error, owed_nothing_at = "", None
    try:
        _driven.add(conversation_id)
        try:
            owed_nothing_at = await _drive(conversation_id, begun)
        finally:
            _driven.discard(conversation_id)
    except LeaseLost:
        logger.warning("run %s lost conversation %s", run.pk, conversation_id)
        return
    except asyncio.CancelledError:
        # The process is being stopped: the claim goes back, so that the next one need not wait.
        await asyncio.shield(engine.in_database(_finish, conversation_id, run, "cancelled"))
        raise
    except Poisoned:
        logger.error("conversation %s is not tried again: its runs keep dying", conversation_id)
        error = lostruns.RUN_LOST
        details = lostruns.poisoned_details()
        await engine.in_database(_rest_after_failure, conversation_id, run, details)
    except Exception as problem:
        logger.exception("run %s of conversation %s failed", run.pk, conversation_id)
        error = f"{type(problem).__name__}: {problem}"
        await engine.in_database(_rest_after_failure, conversation_id, run, _OUR_FAULT)
    await engine.in_database(_finish, conversation_id, run, error, owed_nothing_at)


async def _begin_whole(conversation_id: int, cause: str) -> _Begun | None:
    """`_begin`; who is cancelled meanwhile gives back what was claimed."""
    beginning = asyncio.ensure_future(engine.in_database(_begin, conversation_id, cause))
    try:
        return await asyncio.shield(beginning)
    except asyncio.CancelledError:
        begun = await beginning
        if begun is not None:
            finishing = engine.in_database(_finish, conversation_id, begun.run, "cancelled")
            await asyncio.shield(finishing)
        raise


async def _drive(conversation_id: int, begun: _Begun) -> int | None:
    """Work; or, when there is nothing to do now, the place in the log up to which that is so."""
    if isinstance(begun.loaded, Exception):
        raise begun.loaded
    run, (conversation, entries, plan, said_before) = begun.run, begun.loaded
    structlog.contextvars.bind_contextvars(conversation=conversation.uid)
    history = History(entries, features=conversation.features)
    if not history.has_work and not said_before:
        return history.last_seq
    if plan.departed and not history.interrupt:
        await engine.in_database(_rest_after_failure, conversation_id, run, _NOBODY_THERE)
        return history.last_seq
    waits = history.put_off and not history.interrupt
    if waits and await engine.in_database(delays.is_put_off, conversation_id):
        return history.last_seq
    if conversation.files_due_seq is not None:
        await engine.in_tool_thread(bring_back_due, conversation_id)
    signal = Signal()
    live = LiveText(hub, conversation.uid, conversation_id, run)
    output = LiveOutput(hub, conversation.uid)
    kit = build_kit(
        plan,
        live=live,
        tracer=TableTracer(conversation_id) if plan.tracing else None,
        offload=ToolThreads(whose_place(conversation.owner)),
        output=output,
        read_rules=partial(engine.in_database, rules_of, conversation),
        who_can_mend=partial(
            engine.in_database,
            who_can_mend,
            conversation.owner,
            conversation.organisation,
            plan.choice.provider,
        ),
    )
    journal = TableJournal(conversation_id, run, history.last_seq)
    loop = Loop(history, kit, journal, signal, may_go_on=lambda: not engine.draining)
    work = asyncio.ensure_future(loop.run(said_before))
    helpers = [
        asyncio.ensure_future(interrupts.watch(conversation, signal, journal.known_seq)),
        asyncio.ensure_future(_keep_lease(begun, work)),
        asyncio.ensure_future(live.keep_checkpoints()),
    ]
    try:
        await work
    except asyncio.CancelledError:
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        await live.checkpoint()
        raise
    finally:
        for helper in helpers:
            helper.cancel()
        await asyncio.gather(*helpers, return_exceptions=True)
        live.abandon()
        output.abandon()
        await providers.let_go(kit.service or kit.provider)
    if kit.hooks is not None:
        await kit.hooks.ended()
    return None


async def _keep_lease(begun: _Begun, work: asyncio.Future[None]) -> None:
    """From the claim on: what was loaded since may have taken a while."""
    run, pause = begun.run, settings.AGENTSITE_LEASE_SECONDS / 3
    await asyncio.sleep(begun.claimed_at + pause - time.monotonic())
    while True:
        try:
            held = await engine.in_database(_renew, run)
        except DatabaseError:
            # It may come back before the lease runs out; if not, another run takes over.
            logger.exception("the lease of run %s could not be renewed", run.pk)
            held = True
        if not held:
            logger.warning("run %s lost conversation %s", run.pk, run.conversation_id)
            work.cancel()
            return
        await asyncio.sleep(pause)


def _renew(run: Run) -> bool:
    """Keep the lease, and see that somebody is there for whom it is kept."""
    held = claims.renew(run)
    if held:
        departures.interrupt_if_left(run.conversation_id)
    return held


Loaded = tuple[Conversation, list[Entry], Plan, list[tuple[LiveBlock, str]]]


@dataclass(frozen=True, slots=True)
class _Begun:
    """A claim, with what it is about, or why that could not be loaded."""

    run: Run
    claimed_at: float
    loaded: Loaded | Exception


def _begin(conversation_id: int, cause: str) -> _Begun | None:
    """Claim and load, in one go: the model's answer waits for both. None without a claim."""
    claimed_at = time.monotonic()
    run = claims.claim(conversation_id, cause)
    if run is None:
        return None
    try:
        return _Begun(run, claimed_at, _load(conversation_id, run))
    except Exception as problem:
        return _Begun(run, claimed_at, problem)


def _load(conversation_id: int, run: Run) -> Loaded:
    last, wakes_due, has_partials = _LEFT.first(pk=conversation_id) or (None, False, False)
    if last == Run.State.LOST and lostruns.is_poisoned(conversation_id):
        raise Poisoned
    if wakes_due:
        _bring_due_wakes(conversation_id, run)
    # The log first: what is changed about the agent in between is then news to the run, not missed.
    entries = log.entries_after(conversation_id, 0)
    conversation = _found(_LOADED, conversation_id)
    return (
        conversation,
        entries,
        plan_kit(conversation),
        partials.take_partials(conversation_id) if has_partials else [],
    )


def _found(query: Prepared[Conversation], conversation_id: int) -> Conversation:
    conversation = query.first(pk=conversation_id)
    if conversation is None:
        raise Conversation.DoesNotExist(f"There is no conversation {conversation_id}.")
    return conversation


def _is_interrupted(conversation_id: int) -> bool:
    return Event.objects.waiting_interrupts(conversation_id).exists()


def _bring_due_wakes(conversation_id: int, run: Run) -> None:
    with transaction.atomic():
        due = delays.take_due(conversation_id)
        if due:
            log.append(conversation_id, due, run=run)


def _finish(conversation_id: int, run: Run, error: str, owed_nothing_at: int | None = None) -> None:
    """Release the claim, then look once more: what came between the last look and the release was
    told to nobody, because everybody saw the conversation claimed. A process that is being stopped
    leaves the rest to another one."""
    if owed_nothing_at is not None:
        # What came in waits for something else, and that will call a run again.
        unchanged = Conversation.objects.filter(pk=conversation_id, last_seq=owed_nothing_at)
        unchanged.update(owes_run=False)
    conversation = run.conversation = _found(_RESTED, conversation_id)
    step = activations.step_of(conversation, skipped=owed_nothing_at is not None)
    claims.release(run, stop_reason=conversation.stop_reason, error=error, step=step)
    owes_run = _OWES.exists(pk=conversation_id)
    put_off = delays.is_put_off(conversation_id) and not _is_interrupted(conversation_id)
    left = engine.draining and conversation.status == Conversation.Status.RUNNING
    if left or (owes_run and not put_off and not error):
        wake(conversation_id)


_NOBODY_THERE = StopDetails(
    code="owner_left",
    message="The person this agent works for has left the organisation.",
    hint="Nothing runs here until she is a member again.",
)
_OUR_FAULT = StopDetails(
    code=lostruns.INTERNAL,
    message="The run failed because of a fault in this server.",
    hint="Try again; if it stays, tell the people who run this server.",
)


def _rest_after_failure(conversation_id: int, run: Run, details: StopDetails) -> None:
    """A fault of ours ends the turn in words, instead of leaving it running for ever; what its run had open
    is closed, and counted, since there may be no other run."""
    body = SessionErrorBody(
        type="unknown_error", code=details.code, message=details.message, hint=details.hint
    )
    idle = SessionStatusIdle(stop_reason=RetriesExhausted(), stop_details=details)
    told = [Entry.of(SessionError(error=body)), Entry.of(idle)]
    try:
        try:
            history = History(log.entries_after(conversation_id, 0))
            left = left_behind(history, partials.take_partials(conversation_id))
            log.append(conversation_id, [*left, *told], run=run)
        except LeaseLost:
            raise
        except Exception:
            # The fault may be in just that. A run that goes on brings it in order.
            logger.exception("what run %s left open stays so", run.pk)
            log.append(conversation_id, told, run=run)
    except LeaseLost:
        logger.warning("run %s failed (%s) after it had lost its claim", run.pk, details.code)

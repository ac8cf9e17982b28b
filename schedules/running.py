"""Begins what is due: due times become rows, rows become conversations, each at most once.

Any number of processes may look at the same time and as often as they like: a constraint lets each due time
be one row, and a row is begun under the lock of its order. What follows from a run's end is `ending`'s.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.db import InterfaceError, OperationalError, transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import User
from agents.models import Agent, AgentVersion, Environment
from conversations.actions.messages import stop
from conversations.actions.sharing import share_conversation
from conversations.broughtwords import bring_words
from conversations.kits import choose_provider
from conversations.models import Conversation, StoredFile
from conversations.provenance import TableProvenance
from conversations.writers import behind
from harness.errors import AgentError, Conflict, Forbidden, Invalid, NotFound, TooMany
from jobs.apart import each_apart
from jobs.dispatch import dispatch
from jobs.prepared import Prepared, PreparedUpdate
from programs.actions.sessions import begin_session
from vaults.models import Vault

from . import fingerprints, queueing, times
from .access import may_go_on
from .auditing import announce_run
from .copies import Copies, FilesFirst, brought_for, copied
from .drafts import messages_of, outcome_of
from .models import OrderRun, QueueItem, StandingOrder
from .pausing import pause_by_itself
from .pins import MOST_WORDS, Given, departure, given_in, pins_in
from .templates import filled, strangers_of

logger = logging.getLogger(__name__)

BEGIN = queueing.BEGIN
AT_A_TIME = 500
"""Orders, and runs, that one look takes; the next one goes on."""
MOST_QUEUED = 10
"""Runs of one order that wait for an earlier one; more are left out."""
MOST_BEGUN = 2_000
"""Runs that one look begins: what waits for the next one waits for seconds."""
MOST_REST = 0.01
"""Seconds after each that begins: a thousand that are due at once leave a part of the processor to others."""
PATIENCE = timedelta(hours=1)
"""How long a run is tried again to which the site says *too many*."""

CAME_BY_MAIL = "it came with a mail"

PAUSING = frozenset(
    {
        "agent_archived_error",
        "environment_archived_error",
        "environment_not_found_error",
        "vault_archived_error",
        "vault_not_found_error",
        "file_not_found_error",
        "self_hosted_resources_unsupported_error",
    }
)
"""Errors that no later try mends: the order is paused at once, as the public API has it."""
REJECTED = "session_creation_rejected_error"
RATE_LIMITED = "session_rate_limited_error"
UNKNOWN = "unknown_error"


class CannotBegin(Exception):
    """Why no conversation begins: an error type of the public API, and words for people."""

    def __init__(self, error: str, words: str) -> None:
        super().__init__(words)
        self.error, self.words = error, words


class Departed(CannotBegin):
    """Something it is pinned to is another thing by now. Saving the order again pins it anew."""

    def __init__(self, words: str) -> None:
        super().__init__(REJECTED, words)


# --- due times become rows ------------------------------------------------------------------------


def take_due(now: datetime | None = None) -> int:
    """Turn every due time that has come into a row; of how many orders. One query where none is."""
    now = now or timezone.now()
    due = list(StandingOrder.objects.due(now).values_list("pk", flat=True)[:AT_A_TIME])
    told = "what is due of schedule %s was not taken"
    return each_apart(partial(_take, now), due, told=told)


_TAKEN = Prepared(
    lambda given: (
        StandingOrder.objects.due(given.now)
        .filter(pk=given.order)
        .select_for_update(of=("self",), no_key=True, skip_locked=True)
        .select_related("owner", "agent_version")
    )
)
_HANDLED = PreparedUpdate(
    lambda given: StandingOrder.objects.filter(pk=given.order),
    lambda given: {
        "handled_at": given.handled,
        "next_due_at": given.due,
        "next_start_at": given.start,
    },
)
"""Asked for each order that is due, of which there may be a thousand in a minute."""


def _take(now: datetime, order_id: int) -> None:
    with transaction.atomic():
        order = _TAKEN.first(order=order_id, now=now)
        if order is None:
            return  # somebody else has it
        if not may_go_on(order):
            pause_by_itself(
                order,
                StandingOrder.Pause.RIGHTS,
                now=now,
                words=_("Its owner is no active member of the organisation."),
            )
            return
        found = times.look(order.timing, order.rule, handled=order.handled_at, now=now)
        due_now = found.run
        if order.works_queue:
            # One pass goes on until the queue is empty; where nothing is in it none begins.
            due_now = found.run[-1:] if queueing.has_work(order, now) else ()
        rows = [_row(order, OrderRun.Trigger.SCHEDULE, due_at=due) for due in due_now]
        if found.skipped_until is not None and not order.works_queue:
            rows.append(
                _row(
                    order,
                    OrderRun.Trigger.SCHEDULE,
                    due_at=found.skipped_until,
                    state=OrderRun.State.SKIPPED,
                    skip=OrderRun.Skip.MISSED,
                    skipped=found.skipped,
                    ended_at=now,
                )
            )
        # The constraint is the claim: a due time that has its row already is nobody's again.
        OrderRun.objects.bulk_create(rows, ignore_conflicts=True)
        order.handled_at = found.handled or order.handled_at
        order.foresee()
        _HANDLED.run(
            order=order.pk,
            handled=order.handled_at,
            due=order.next_due_at,
            start=order.next_start_at,
        )


def _row(order: StandingOrder, trigger: OrderRun.Trigger, **columns: object) -> OrderRun:
    return OrderRun(
        order=order, agent_version_id=order.agent_version_id, trigger=trigger, **columns
    )


def queue_run(
    order: StandingOrder,
    trigger: OrderRun.Trigger,
    *,
    key: str = "",
    payload: object = None,
    attachments: Sequence[tuple[str, str]] = (),
    depth: int = 0,
) -> OrderRun:
    """A row for what is to begin soon, in the caller's transaction; with a `key` that was given before
    the row that has it."""
    if key:
        known = OrderRun.objects.filter(order=order, trigger=trigger, key=key).first()
        if known is not None:
            return known
    pairs = [list(pair) for pair in attachments]
    run = _row(order, trigger, key=key, payload=payload, attachments=pairs, depth=depth)
    run.save()
    dispatch(BEGIN, run_id=run.pk)
    return run


# --- rows become conversations --------------------------------------------------------------------


def begin_queued(
    now: datetime | None = None,
    *,
    most: int = MOST_BEGUN,
    rest: Callable[[float], bool] | None = None,
) -> int:
    """Begin what waits to; how many rows that were. Of more than one look takes, chance says which, or those
    that may not begin for days would keep everybody else's waiting behind them. `rest` is told after each for
    how many seconds nothing more should begin, since others want to be answered meanwhile, and says whether
    to leave the others to the next look."""
    queued = OrderRun.objects.queued().order_by("?")
    waiting = sorted(queued.values_list("pk", flat=True)[:most])
    for run_id in waiting:
        began = time.monotonic()
        begin(run_id, now, wait=False)
        if rest is not None and rest(min(MOST_REST, time.monotonic() - began)):
            break
    return len(waiting)


_looking = threading.Lock()


def begin_queued_alone(*, rest: Callable[[float], bool]) -> int:
    """`begin_queued`, one look at a time in a process. A look at many may outlast the time between two of
    them: side by side they would hold thread after thread, and no rest would be one."""
    if not _looking.acquire(blocking=False):
        return 0
    try:
        return begin_queued(rest=rest)
    finally:
        _looking.release()


def begin(run_id: int, now: datetime | None = None, *, wait: bool = True) -> None:
    """Begin this run, or say in its row why it does not; nothing, if it is no longer queued or has to wait
    for an earlier one or for the database, and without `wait` also while somebody holds its order. Whatever
    happens to the process, there is one conversation at most."""
    now = now or timezone.now()
    try:
        blocking = _begin_with_files(run_id, now, wait=wait)
    except (OperationalError, InterfaceError):
        logger.exception("the run %s of a schedule did not begin; a later look begins it", run_id)
        return
    except Exception as failure:
        # An order that nobody can begin must not keep the others from beginning.
        logger.exception("the run %s of a schedule could not begin", run_id)
        with transaction.atomic():
            _fail_unbegun(run_id, now, CannotBegin(UNKNOWN, type(failure).__name__))
        return
    for conversation in blocking:
        try:
            stop(actor=conversation.owner, conversation=conversation)
        except (NotFound, Forbidden, Conflict) as refusal:
            logger.warning("an earlier run cannot be stopped: %s", refusal.code)


def _begin_with_files(run_id: int, now: datetime, *, wait: bool) -> list[Conversation]:
    """`_begin` in a transaction. Where its files were changed while they were copied, it waits for the next
    look."""
    try:
        with transaction.atomic():
            return _begin(run_id, now, wait=wait)
    except FilesFirst as found:
        order, run = found.order, found.run
    try:
        with copied(order, run) as copies, transaction.atomic():
            return _begin(run_id, now, wait=wait, copies=copies)
    except FilesFirst:
        return []


def _begin(
    run_id: int, now: datetime, *, wait: bool, copies: Copies | None = None
) -> list[Conversation]:
    """The conversations that have to be stopped before it may begin. Raises FilesFirst."""
    run = _held(run_id, wait=wait)
    if run is None:
        return []
    order = run.order
    if order.archived_at is not None or (
        order.paused_at is not None and run.trigger != OrderRun.Trigger.MANUAL
    ):
        _leave_out(run, OrderRun.Skip.PAUSED, now)
        return []
    if run.trigger != OrderRun.Trigger.MANUAL:
        earlier = OrderRun.objects.open().filter(order=order).exclude(conversation=None)
        busy = [one.conversation for one in _BUSY.all(order=order.pk)]
        if busy and order.overlap == StandingOrder.Overlap.SKIP:
            _leave_out(run, OrderRun.Skip.OVERLAP, now)
            return []
        if busy:
            ahead = OrderRun.objects.queued().filter(order=order, pk__gt=run.pk)
            newer = ahead.exists() or earlier.filter(pk__gt=run.pk).exists()
            if order.overlap == StandingOrder.Overlap.REPLACE and newer:
                _leave_out(run, OrderRun.Skip.OVERLAP, now)  # a later one replaces this one too
            elif ahead.count() >= MOST_QUEUED:
                _leave_out(run, OrderRun.Skip.OVERLAP, now)
            elif order.overlap == StandingOrder.Overlap.REPLACE:
                return [each for each in busy if each is not None]
            return []
    try:
        with transaction.atomic():
            item = queueing.take(run, now) if order.works_queue else None
            if order.works_queue and item is None:
                _leave_out(run, OrderRun.Skip.EMPTY, now)
                return []
            conversation, given = _conversation_for(order, run, now, item, copies)
            fingerprints.note(run, given)
    except TooMany as refusal:
        by_hand = run.trigger == OrderRun.Trigger.MANUAL
        if by_hand or timezone.now() - run.created_at > PATIENCE:
            _fail(run, now, CannotBegin(RATE_LIMITED, refusal.message))
        return []
    except CannotBegin as refusal:
        _fail(run, now, refusal)
        return []
    except AgentError as refusal:
        _fail(run, now, CannotBegin(REJECTED, refusal.message))
        return []
    _BEGUN.run(
        run=run.pk,
        now=now,
        conversation=conversation.pk,
        session=conversation.uid,
        fingerprint=json.dumps(run.fingerprint),
        drift=json.dumps(run.drift),
    )
    if run.trigger == OrderRun.Trigger.SCHEDULE:
        _RAN.run(order=order.pk, now=now)
    announce_run(run, "deployment_run.started", "deployment_run.succeeded")
    return []


def _order_of(run: Any, *, skip_locked: bool) -> QuerySet[StandingOrder]:
    return (
        StandingOrder.objects.select_for_update(of=("self",), no_key=True, skip_locked=skip_locked)
        .select_related("owner", "organisation", "agent_version__agent__current", "environment")
        .filter(runs=run)
    )


_HELD = Prepared(lambda given: _order_of(given.run, skip_locked=False))
_HELD_IF_FREE = Prepared(lambda given: _order_of(given.run, skip_locked=True))
_QUEUED = Prepared(
    lambda given: OrderRun.objects.queued().select_for_update(no_key=True).filter(pk=given.run)
)
_BUSY = Prepared(
    lambda given: (
        OrderRun.objects.open()
        .filter(order=given.order)
        .exclude(conversation=None)
        .select_related("conversation__owner")
    )
)
_BEGUN = PreparedUpdate(
    lambda given: OrderRun.objects.filter(pk=given.run),
    lambda given: {
        "state": OrderRun.State.STARTED,
        "started_at": given.now,
        "conversation": given.conversation,
        "session_uid": given.session,
        "fingerprint": given.fingerprint,
        "drift": given.drift,
    },
)
_RAN = PreparedUpdate(
    lambda given: StandingOrder.objects.filter(pk=given.order),
    lambda given: {"last_run_at": given.now},
)
_READERS = Prepared(
    lambda given: (
        StandingOrder.readers.through.objects.filter(standingorder=given.order)
        .order_by("user")
        .values_list("user__uid")
    )
)
_APPROVERS = Prepared(
    lambda given: (
        StandingOrder.approvers.through.objects.filter(standingorder=given.order)
        .order_by("user")
        .values_list("user__uid")
    )
)
_OFFERED = Prepared(
    lambda given: (
        Agent.objects.visible_to(given.user)
        .usable_in(given.organisation)
        .on_offer()
        .filter(pk=given.agent)
        .values_list("pk")
    )
)
_PLACE = Prepared(
    lambda given: (
        Environment.objects.visible_to(given.user)
        .usable_in(given.organisation)
        .filter(pk=given.environment)
        .values_list("pk")
    )
)
"""Asked for each run that begins, of which there may be a thousand in a minute."""


def _held(run_id: int, *, wait: bool = True) -> OrderRun | None:
    """The queued run under its order's lock, which is taken first by everybody."""
    order = (_HELD if wait else _HELD_IF_FREE).first(run=run_id)
    if order is None:
        return None  # whoever holds it may hold the run as well, for as long
    run = _QUEUED.first(run=run_id)
    if run is None:
        return None
    run.order = order
    return run


def _leave_out(run: OrderRun, why: OrderRun.Skip, now: datetime) -> None:
    run.state, run.skip, run.ended_at = OrderRun.State.SKIPPED, why, now
    run.save(update_fields=["state", "skip", "ended_at"])


def _fail_unbegun(run_id: int, now: datetime, refusal: CannotBegin) -> None:
    run = _held(run_id)
    if run is not None:
        _fail(run, now, refusal)


def _fail(run: OrderRun, now: datetime, refusal: CannotBegin) -> None:
    """It did not begin. What no later try mends pauses the order at once."""
    run.state, run.ended_at = OrderRun.State.FAILED, now
    run.error, run.words = refusal.error, refusal.words[:MOST_WORDS]
    run.is_settled = False
    run.save(update_fields=["state", "ended_at", "error", "words", "is_settled"])
    announce_run(run, "deployment_run.started", "deployment_run.failed")
    if run.order.works_queue:
        queueing.put_off(run.order, now)
    if refusal.error in PAUSING and run.trigger != OrderRun.Trigger.MANUAL:
        pause_by_itself(
            run.order,
            StandingOrder.Pause.ERROR,
            now=now,
            words=refusal.words,
            error=refusal.error,
        )


def _conversation_for(
    order: StandingOrder,
    run: OrderRun,
    now: datetime,
    item: QueueItem | None,
    copies: Copies | None,
) -> tuple[Conversation, Given]:
    require_beginnable(order)
    brought = brought_for(order, run, copies)
    version, owner = order.agent_version, order.owner
    started = timezone.localtime(run.due_at or now)
    pinned = {"provider": order.provider, "model": order.model}
    own = {"provider": version.config.provider, "model": version.config.model}
    said = filled(messages_of(order), run.payload, by=strangers_of(run))
    if run.attachments and said and not said[-1].untrusted_by:
        # What it finds in the files is strangers' from the first moment on.
        said[-1] = said[-1].model_copy(update={"untrusted_by": strangers_of(run)})
    if item is not None:
        said = queueing.with_item(said, item)
    outcome = outcome_of(order)
    conversation = begin_session(
        caller=None,
        actor=owner,
        organisation=order.organisation,
        agent=version.agent,
        environment=order.environment,
        version=version.number,
        title=f"{order.name}, {started:%Y-%m-%d %H:%M}",
        overrides=pinned if pinned != own else None,
        cap=order.budget,
        brought=brought,
        vaults=order.vaults,
        messages=said if outcome is None else [*said, outcome],
    )
    if run.trigger == OrderRun.Trigger.MAIL:
        # Who wrote the mail has named them as well, which no person has who uploads.
        marks = TableProvenance(conversation.pk)
        for _uid, path in run.attachments:
            marks.mark_file(path, CAME_BY_MAIL)
    asked_in = item.follows.run.conversation if item and item.follows and item.follows.run else None
    if asked_in is not None:
        # An agent asked for it, and may say in it what it was told.
        bring_words(conversation, behind(asked_in), way="task")
        conversation.refresh_from_db()
    given = given_in(conversation)
    _require_pinned(order, conversation, given)
    # Who decides may read as well, so that role is given last.
    roles = [(uid, "viewer") for (uid,) in _READERS.all(order=order.pk)]
    roles += [(uid, "decider") for (uid,) in _APPROVERS.all(order=order.pk)]
    for uid, role in roles:
        try:
            share_conversation(actor=owner, conversation=conversation, user_uid=uid, role=role)
        except Invalid:
            # She has left since; that holds up nobody else. Her delivery says why she got nothing.
            logger.info("a run of schedule %s is not shared with %s, who left", order.uid, uid)
    return conversation, given


def _require_pinned(order: StandingOrder, conversation: Conversation, given: Given) -> None:
    """Raises Departed, with which the conversation is gone as well, where it was given other skills, prompts
    or standing instructions than the order was saved with."""
    if words := departure(order.pins, pins_in(conversation, given)):
        raise Departed(words)


def _may_try(owner: User, draft: AgentVersion) -> bool:
    """Whoever sees an agent sees its versions, but for drafts."""
    return AgentVersion.objects.visible_to(owner).filter(pk=draft.pk).exists()


def require_beginnable(order: StandingOrder) -> None:
    """Raises CannotBegin where something it is pinned to is gone, or means something else by now: it
    falls back to nothing."""
    owner, version = order.owner, order.agent_version
    agent, environment = version.agent, order.environment
    if not may_go_on(order):
        raise CannotBegin(REJECTED, _("Its owner is no active member of the organisation."))
    if agent.archived_at is not None:
        raise CannotBegin(
            "agent_archived_error", _("The agent “%(name)s” is archived.") % {"name": agent.name}
        )
    place = {"user": owner.pk, "organisation": order.organisation_id}
    offered = _OFFERED.exists(agent=agent.pk, **place)
    if not (offered and (not version.draft or _may_try(owner, version))):
        raise CannotBegin(
            REJECTED,
            _("Version %(number)d of the agent “%(name)s” is not offered to its owner any more.")
            % {"number": version.number, "name": agent.name},
        )
    if environment.archived_at is not None:
        raise CannotBegin("environment_archived_error", _("The environment is archived."))
    if not _PLACE.exists(environment=environment.pk, **place):
        raise CannotBegin("environment_not_found_error", _("The environment is gone."))
    if order.files and environment.has_workers:
        raise CannotBegin(
            "self_hosted_resources_unsupported_error",
            _("An environment with workers takes no files."),
        )
    _require_things(order)
    choice = choose_provider(version.config, owner, order.organisation)
    if choice.problem is not None:
        raise CannotBegin(REJECTED, choice.problem.message)
    if (choice.provider, choice.model) != (order.provider, order.model):
        raise Departed(
            _(
                "It was saved for the model %(pinned)s; its agent would use %(now)s. Save it again to"
                " go on with that."
            )
            % {
                "pinned": f"{order.provider}/{order.model}",
                "now": f"{choice.provider}/{choice.model}",
            }
        )


def _require_things(order: StandingOrder) -> None:
    if order.files:
        files = {uid for uid, _path in order.files}
        mine = StoredFile.objects.visible_to(order.owner).filter(organisation=order.organisation)
        if mine.filter(uid__in=files).count() < len(files):
            raise CannotBegin("file_not_found_error", _("A file of it is gone."))
    if order.vaults:
        vaults = Vault.objects.visible_to(order.owner).filter(
            organisation=order.organisation, uid__in=order.vaults
        )
        if vaults.count() < len(order.vaults):
            raise CannotBegin("vault_not_found_error", _("A vault of it is gone."))
        if vaults.exclude(archived_at=None).exists():
            raise CannotBegin("vault_archived_error", _("A vault of it is archived."))

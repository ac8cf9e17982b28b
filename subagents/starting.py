"""Begins what a call asked for: the files, the conversation, its first message, what is held back for it.

Everything that others can see is one transaction, in which the tree's lock decides who has room; a process
that dies before leaves a row that the sweep finds. Locks are taken in the order tree, parent, child.
"""

from __future__ import annotations

import logging
from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Count
from django.utils import timezone

from conversations import removals
from conversations.actions.children import begin_child, tell_agent
from conversations.actions.own import own_conversation
from conversations.judging import history_of
from conversations.log import append
from conversations.models import Conversation, Event
from conversations.opencalls import open_call
from conversations.wakes import wake
from harness.agentconfig import Limits
from harness.content import as_blocks
from harness.errors import AgentError, Conflict, NotFound
from harness.events import (
    AgentToolResult,
    SessionThreadCreated,
    SessionUpdated,
    SubagentStarted,
)
from harness.events import Event as EventValue
from harness.history import Entry, History
from harness.ids import new_conversation_id
from jobs.apart import each_apart
from jobs.prepared import Prepared, PreparedUpdate

from . import limits
from .briefing import briefing
from .casting import ADVISOR_SHARE, Cast, cast_for, kind_of
from .files import NOTHING, Copied, copy_down, keep_base, refresh
from .inturn import in_turn
from .kinds import ADVISOR
from .models import Subagent, Tree

logger = logging.getLogger(__name__)

State = Subagent.State

NO_FILES = (
    "\n\n(The files of the agent above could not be copied for you: your workspace is empty.)"
)


def begin(pk: int) -> None:
    """Begin it, or answer its call with why not. In a thread that may take long; nothing where somebody
    else has done that."""
    row = _waiting(pk)
    if row is None:
        return
    try:
        limits.require_room(row)
        before = _asked_before(row)
        if before is not None:
            _ask_again(row, before)
        else:
            _begin_new(row)
    except AgentError as problem:
        _refuse(pk, problem)


def _begin_new(row: Subagent) -> None:
    uid = new_conversation_id()
    with removals.unless_begun(uid):
        copied = NOTHING if _gives_advice(row) else copy_down(row.parent, uid)
        with in_turn():
            held = _hold(row)
            if held is None:
                return
            cast = cast_for(held, held.parent)
            above = history_of(held.parent)
            own = _allowance(held, cast, above)
            child = begin_child(
                actor=held.parent.owner,
                parent=held.parent,
                agent=cast.agent,
                environment=held.parent.environment,
                text=_prompt(held, copied),
                features={**held.parent.features.model_dump(), **cast.held_back},
                title=held.description,
                version=cast.version,
                uid=uid,
                overrides=cast.overrides,
                as_child={"limits": own.model_dump(), "temperature": cast.temperature},
                quotes=_gives_advice(held),
                above=above,
            )
            copied.note(child, 0)
            held.base = copied.base
            asked = _ASKED.all(conversation=child.pk)[0]
            created = SessionThreadCreated(session_thread_id=child.uid, agent_name=held.kind)
            _note(held, child, asked[0], own.token_budget, created)
            removals.begun(uid)


def _ask_again(row: Subagent, child: Conversation) -> None:
    base = refresh(row.parent, child, _last_base(child))
    with in_turn():
        held = _hold(row)
        if held is None:
            return
        if Subagent.objects.live().filter(child=child).exists():
            raise Conflict("It is at work.", hint="Wait until it has ended, or ask another one.")
        again = own_conversation(held.parent.owner, child)
        if again.is_running or again.is_about_to_start or again.waits_for_person:
            raise Conflict(
                "A person is at work with it.", hint="Wait until it rests, or ask another one."
            )
        last = Subagent.objects.filter(child=child).order_by("-pk")[0]
        # Whatever the call says: it stays what it was, and may do no more than before.
        held.kind, held.files = last.kind, last.files
        held.given = {**held.given, "inline": last.inline}
        version = again.agent_version
        cast = Cast(
            version.agent,
            version.number,
            version.config.limits,
            again.config.limits.steps,
            share=ADVISOR_SHARE if _gives_advice(held) else 1,
        )
        above = history_of(held.parent)
        own = _allowance(held, cast, above)
        place = again.last_seq
        lent = SessionUpdated(overrides={"limits": own.model_dump()})
        append(again.pk, [Entry.of(lent)])
        asked = tell_agent(
            actor=held.parent.owner,
            sender=held.parent,
            receiver=again,
            text=_prompt(held, NOTHING),
            quotes=_gives_advice(held),
            heard=above,
        )
        keep_base(again, place, base)
        held.base = base
        held.save(update_fields=["kind", "files", "given"])
        _note(held, again, asked.uid, own.token_budget)


def _note(row: Subagent, child: Conversation, asked: str, tokens: int, *first: EventValue) -> None:
    """Write down that it has begun, where everybody looks for that."""
    _BEGUN.run(
        pk=row.pk,
        child=child.pk,
        asked=asked,
        tokens=tokens,
        now=timezone.now(),
        base=row.base,
    )
    started = SubagentStarted(
        tool_use_id=row.call_uid,
        subagent=child.uid,
        name=row.kind,
        description=row.description,
        background=row.background,
        tokens=tokens,
    )
    events = [*first, started]
    if row.background:
        words = (
            f"Started as {row.uid}. You are told when it ends, so do not wait for it: go on, or end your "
            "turn."
        )
        events.append(AgentToolResult(tool_use_id=row.call_uid, content=as_blocks(words)))
    append(row.parent_id, [Entry.of(event) for event in events])
    if row.background:
        go_on(row.parent_id)


def go_on(conversation_id: int) -> None:
    """Have the parent's run heed what its log has gained."""
    Conversation.objects.filter(pk=conversation_id).update(owes_run=True)
    wake(conversation_id)


_ASKED = Prepared(
    lambda given: Event.objects.filter(
        conversation=given.conversation, type="user.message"
    ).values_list("uid")
)
_BEGUN = PreparedUpdate(
    lambda given: Subagent.objects.filter(pk=given.pk),
    lambda given: {
        "child": given.child,
        "asked_event": given.asked,
        "tokens_reserved": given.tokens,
        "state": State.RUNNING,
        "started_at": given.now,
        "base": given.base,
    },
)
_TREE = Prepared(lambda given: Tree.objects.select_for_update().filter(root_id=given.root))
_ABOUT_TO_BEGIN = Prepared(
    lambda given: (
        Subagent.objects.filter(parent=given.parent, state=State.WAITING)
        .order_by()
        .values("parent")
        .annotate(count=Count("pk"))
        .values_list("count")
    )
)
_WAITING = Prepared(
    lambda given: Subagent.objects.filter(pk=given.pk, state=State.WAITING).select_related(
        "parent__owner",
        "parent__organisation",
        "parent__environment",
        "parent__agent_version__agent",
    )
)


def _waiting(pk: int) -> Subagent | None:
    return _WAITING.first(pk=pk)


def _hold(found: Subagent) -> Subagent | None:
    """The row as it is now, with its tree and its parent locked; None where it is not to begin any more."""
    if _TREE.first(root=found.root_id) is None:
        Tree.objects.get_or_create(root_id=found.root_id)
        _TREE.first(root=found.root_id)
    parent = own_conversation(found.parent.owner, found.parent)
    row = _waiting(found.pk)
    if row is None:
        return None
    call = open_call(parent.pk, row.call_uid)
    if call is None or row.stop_asked_at is not None:
        row.state, row.ended_at, row.told_at = State.STOPPED, timezone.now(), timezone.now()
        row.save(update_fields=["state", "ended_at", "told_at"])
        return None
    limits.require_room(row)
    return row


def _allowance(row: Subagent, cast: Cast, above: History) -> Limits:
    waiting = _ABOUT_TO_BEGIN.first(parent=row.parent_id) or (0,)
    left = limits.left_of(row.parent, above)
    sharing = max(waiting[0], cast.share - 1)
    return limits.allowance(cast.limits, left, sharing=sharing, steps=cast.steps)


def _gives_advice(row: Subagent) -> bool:
    return kind_of(row) is ADVISOR


def _prompt(row: Subagent, copied: Copied) -> str:
    if _gives_advice(row):
        seen = briefing(row.parent, leaving_out=row.call_uid)
        return f"{row.prompt}\n\n<conversation>\n{seen}\n</conversation>"
    lacks = copied.carried.problem and copied.carried.problem != "elsewhere"
    return row.prompt + NO_FILES if lacks else row.prompt


def _asked_before(row: Subagent) -> Conversation | None:
    """The conversation of the subagent that the call asks again; None: it asks a new one."""
    wanted = str(row.given.get("resume") or "").replace("\0", "")
    if not wanted:
        return None
    known = Subagent.objects.filter(parent=row.parent_id, uid=wanted).exclude(child=None)
    found = known.select_related("child").first()
    if found is None or found.child is None:
        raise NotFound(
            f"There is no subagent “{wanted[:60]}” in this conversation.",
            hint="Call subagents for those there are.",
        )
    return found.child


def _last_base(child: Conversation) -> str:
    last = Subagent.objects.filter(child=child).exclude(base="").order_by("-pk").first()
    return last.base if last is not None else ""


def _refuse(pk: int, problem: AgentError) -> None:
    """Answer the call with why nobody carries it out."""
    with transaction.atomic():
        found = _waiting(pk)
        if found is None:
            return
        Conversation.objects.select_for_update(no_key=True).get(pk=found.parent_id)
        row = _waiting(pk)
        if row is None:
            return
        now = timezone.now()
        row.state, row.detail = State.REFUSED, shortened(problem.message)
        row.ended_at = row.told_at = now
        row.save(update_fields=["state", "detail", "ended_at", "told_at"])
        if open_call(row.parent_id, row.call_uid) is None:
            return
        words = "\n".join(part for part in (problem.message, problem.hint) if part)
        answer = AgentToolResult(
            tool_use_id=row.call_uid, content=as_blocks(words), is_error=True, outcome="error"
        )
        append(row.parent_id, [Entry.of(answer)])
        go_on(row.parent_id)


def shortened(words: str) -> str:
    return words[:500]


def begin_left() -> None:
    """What processes that died left to begin."""
    late = timezone.now() - timedelta(seconds=settings.AGENTSITE_SWEEP_SECONDS)
    waiting = Subagent.objects.filter(state=State.WAITING, created_at__lt=late)
    found = waiting.order_by("pk").values_list("pk", flat=True)[:100]
    each_apart(begin, found, told="subagent %s could not begin")

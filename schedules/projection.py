"""Runs of orders as their conversations come to an end, in the transaction of the event that says so.

Only the run's own row is written here; what follows for its order is `ending`'s, after the commit.
"""

from __future__ import annotations

import re
from functools import partial

from django.db import transaction
from django.utils.translation import gettext as _

from conversations.branches import counting
from conversations.models import Conversation, Event
from harness.content import text_of
from harness.events import (
    AgentMessage,
    EndTurn,
    RequiresAction,
    SessionStatusIdle,
    SessionStatusTerminated,
    SpanOutcomeEvaluationEnd,
)
from harness.events import Event as EventValue
from harness.hooks import HELD_BACK
from jobs.dispatch import dispatch
from jobs.prepared import Prepared, PreparedUpdate

from .models import OrderRun

FOLLOWED = (SessionStatusIdle, SessionStatusTerminated)
END = "schedules.end"
STOPPED = "stopped"
"""Code of a run that a person stopped."""
NOT_MET = "outcome_not_met"
"""Of one whose work does not meet what its order is judged by."""
_HEADING = re.compile(r"^#{1,6} ")
_BOLD = re.compile(r"(?<![\w*])\*\*(?=[^\s*])([^*]+)(?<=\S)\*\*(?![\w*])")
_CODE = re.compile(r"`([^`]+)`")

_OPEN = Prepared(
    lambda given: (
        OrderRun.objects.open()
        .filter(conversation=given.conversation)
        .values_list("pk", "order__outcome")
    )
)


_ENDED = PreparedUpdate(
    lambda given: OrderRun.objects.open().filter(pk=given.run),
    lambda given: {
        "state": given.state,
        "error": given.error,
        "words": given.words,
        "ended_at": given.at,
        "is_settled": False,
    },
)
_SAID = Prepared(
    lambda given: Event.objects.filter(
        conversation=given.conversation, type="agent.message"
    ).order_by("-seq")[:1]
)


def project(conversation: Conversation, row: Event, event: EventValue) -> None:
    if conversation.parent_id is not None:
        return
    if isinstance(event, SessionStatusIdle) and isinstance(event.stop_reason, RequiresAction):
        return
    if _goes_on(conversation, event):
        return
    found = _OPEN.first(conversation=conversation.pk)
    if found is None:
        return
    state, code, words = _end(conversation, event, is_judged=found[1] is not None)
    _ENDED.run(
        run=found[0], state=state.value, error=code[:60], words=words[:500], at=row.created_at
    )
    transaction.on_commit(partial(dispatch, END, run_id=found[0]))


def _goes_on(conversation: Conversation, event: EventValue) -> bool:
    """A turn ended well, and the next of its first messages is taken now."""
    return (
        isinstance(event, SessionStatusIdle)
        and isinstance(event.stop_reason, EndTurn)
        and not event.interrupted
        and conversation.queued_count > 0
    )


def _end(
    conversation: Conversation, event: EventValue, *, is_judged: bool
) -> tuple[OrderRun.State, str, str]:
    """State, code and words of a run that ends so."""
    failed = OrderRun.State.FAILED
    if not isinstance(event, SessionStatusIdle):
        return failed, "terminated", _("Its conversation has ended.")
    if event.interrupted:
        return failed, STOPPED, _("It was stopped.")
    details = event.stop_details
    if details is not None and details.code == HELD_BACK:
        return failed, details.code, details.message
    if isinstance(event.stop_reason, EndTurn):
        if is_judged and (missing := _missing(conversation)):
            return failed, NOT_MET, missing
        return OrderRun.State.SUCCEEDED, "", first_lines(last_words(conversation))
    return (
        failed,
        (details.code if details else "") or event.stop_reason.type,
        (details.message if details else "") or event.stop_reason.type.replace("_", " "),
    )


def _missing(conversation: Conversation) -> str:
    """What the last judgement of its work found missing; empty where all is met, or nothing was judged."""
    judged = counting(conversation).filter(type="span.outcome_evaluation_end")
    row = judged.order_by("-seq").first()
    value = row.value if row is not None else None
    if not isinstance(value, SpanOutcomeEvaluationEnd) or value.result == "satisfied":
        return ""
    unmet = [each.criterion for each in value.criteria if not each.met]
    if not unmet:
        return _("The work could not be judged.")
    return _("Not met: %(criteria)s") % {"criteria": "; ".join(unmet)}


def last_words(conversation: Conversation) -> str:
    """What the agent has said last."""
    if conversation.rewound_seq is None:
        row = _SAID.first(conversation=conversation.pk)
    else:
        row = counting(conversation).filter(type="agent.message").order_by("-seq").first()
    value = row.value if row is not None else None
    return text_of(value.content) if isinstance(value, AgentMessage) else ""


def first_lines(text: str) -> str:
    """The first three lines that say anything, without the marks of Markdown that only a page would draw."""
    lines = [" ".join(line.split()) for line in text[:4_000].splitlines()]
    told = [line for line in lines if line.strip("#*-_=`")][:3]
    return "\n".join(_CODE.sub(r"\1", _BOLD.sub(r"\1", _HEADING.sub("", line))) for line in told)

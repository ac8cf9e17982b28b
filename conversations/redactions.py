"""Which events of a log go together when what one of them says is taken out of it.

Reads alone; `conversations.log.redact` writes them anew. Copies outside of the log are `forgetting`'s.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice

from harness.events import (
    TYPES,
    AgentMessage,
    AgentThreadContextCompacted,
    AppEvent,
    CompactionRequested,
    CompactionSkipped,
    ContentSetAside,
    Refusal,
    RetriesExhausted,
    SessionError,
    SessionStatusIdle,
    SpanOutcomeEvaluationEnd,
    StopDetails,
    UserDefineOutcome,
    types,
)
from harness.hooks import HELD_BACK

from .lostruns import INTERNAL, RUN_LOST
from .models import Event
from .models.event import EventQuerySet

AT_ONCE = 500
"""Ids that one query asks for: a program may have made thousands of calls."""

_BEHIND = ("agent.thinking", "x.mcp_elsewhere")
"""What went with an answer: thoughts, and what the model's service did by itself for it."""
_ERRORS = (
    "session.error",
    "session.status_idle",
    "span.outcome_evaluation_end",
    "x.compaction_skipped",
    "x.content_set_aside",
)
_OURS = frozenset({INTERNAL, RUN_LOST})
"""Codes of errors that this server words itself, always the same."""


def said_with(log: EventQuerySet, subject: str) -> list[Event]:
    """Everything about `subject`, the thoughts behind an answer and what the service did for it, what judges
    said of an outcome, what the calls brought that a call made, and what apps told of any of these calls."""
    about = list(log.about({subject}))
    found = [*about, *_thoughts(log, about), *_judged(log, about)]
    of_apps = log.filter(type__in=set(types()) - set(TYPES))
    calls = _calls_within(log, subject)
    for some in _chunks(calls):
        found += log.about(set(some))
    for some in _chunks([subject, *calls]):
        found += of_apps.filter(payload__tool_use_id__in=some)
    return found


def told_of(log: EventQuerySet, gone: Sequence[Event], titles: Collection[str]) -> Iterator[Event]:
    """Summaries that something of `gone` went into, titles that are one of these, and what services said in
    errors and others to the agent from there on."""
    if not gone:
        return
    first = min(row.seq for row in gone)
    of_apps = log.filter(type__in=set(types()) - set(TYPES), seq__gt=first)
    for row in of_apps.order_by("seq"):
        if isinstance(row.value, AppEvent) and row.value.may_quote():
            yield row
    yield from _summaries(log, first)
    yield from _summaries_as_asked(log, gone)
    for title in titles:
        yield from log.filter(type="session.updated", payload__title=title)
    yield from _said_by_services(log, first)


def _thoughts(log: EventQuerySet, about: Iterable[Event]) -> Iterator[Event]:
    values = [row.value for row in about]
    requests = {value.model_request_id for value in values if isinstance(value, AgentMessage)}
    for request in requests - {""}:
        yield from log.filter(type__in=_BEHIND, payload__model_request_id=request)


def _judged(log: EventQuerySet, about: Iterable[Event]) -> Iterator[Event]:
    values = [row.value for row in about]
    outcomes = {value.outcome_id for value in values if isinstance(value, UserDefineOutcome)}
    for outcome in outcomes:
        yield from log.filter(
            type__in=("span.outcome_evaluation_end", "x.outcome_check_ran"),
            payload__outcome_id=outcome,
        ).order_by("seq")


def _calls_within(log: EventQuerySet, call: str) -> list[str]:
    """Calls that this one made, and that those made."""
    nested = log.filter(type__in=["agent.tool_use", "agent.mcp_tool_use"])
    found: list[str] = []
    around = [call]
    while around:
        inner = [
            uid
            for some in _chunks(around)
            for uid in nested.filter(payload__within__in=some).values_list("uid", flat=True)
        ]
        found += inner
        around = inner
    return found


def _summaries(log: EventQuerySet, seq: int) -> list[Event]:
    """Those that the event with this number went into, by itself or by an earlier summary."""
    later = log.filter(seq__gt=seq, type="agent.thread_context_compacted").order_by("seq")
    summaries = [(row, row.value) for row in later]
    ends = {
        value.through for _row, value in summaries if isinstance(value, AgentThreadContextCompacted)
    }
    reached = dict(log.filter(uid__in=ends).values_list("uid", "seq"))
    return [
        row
        for row, value in summaries
        if isinstance(value, AgentThreadContextCompacted) and reached.get(value.through, 0) >= seq
    ]


def _summaries_as_asked(log: EventQuerySet, gone: Iterable[Event]) -> Iterator[Event]:
    """Those that were to dwell on what somebody said in asking for one, and all behind, made of these."""
    summaries = log.filter(type="agent.thread_context_compacted").order_by("seq")
    for row in gone:
        asked = row.value
        if not isinstance(asked, CompactionRequested) or not asked.focus:
            continue
        made = summaries.filter(seq__gt=row.seq, payload__focus=asked.focus).first()
        if made is not None:
            yield from summaries.filter(seq__gte=made.seq)


def _said_by_services(log: EventQuerySet, seq: int) -> Iterator[Event]:
    """Errors behind the event with this number, and what repeats them. Every request from there on had its
    words, or what a summary made of them; which of those an error quotes is known to its service alone."""
    for row in log.filter(type__in=_ERRORS, seq__gt=seq).order_by("seq"):
        match row.value:
            case SessionError(error=error) if error.code not in _OURS:
                yield row
            case SessionStatusIdle(
                stop_reason=RetriesExhausted() | Refusal(), stop_details=StopDetails(code=code)
            ) if code not in _OURS:
                yield row
            case SessionStatusIdle(stop_details=StopDetails(code=code)) if code == HELD_BACK:
                yield row
            case SpanOutcomeEvaluationEnd(result="failed"):
                yield row  # the judge could not be asked: its service says why
            case CompactionSkipped() | ContentSetAside():
                yield row
            case _:
                pass


def _chunks(uids: Iterable[str]) -> Iterator[list[str]]:
    rest = iter(uids)
    while some := list(islice(rest, AT_ONCE)):
        yield some

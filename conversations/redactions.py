"""Which events of a log go together when what one of them says is taken out of it.

Reads alone; `conversations.log.redact` writes them anew. Copies outside of the log are `forgetting`'s.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice

from harness.events import (
    AgentMessage,
    AgentThreadContextCompacted,
    SessionError,
    SessionStatusIdle,
    UserDefineOutcome,
)

from .models import Event
from .models.event import EventQuerySet

AT_ONCE = 500
"""Ids that one query asks for: a program may have made thousands of calls."""


def said_with(log: EventQuerySet, subject: str) -> list[Event]:
    """Everything about `subject`, the thoughts behind an answer, what judges said of an outcome, and what
    the calls brought that a call made."""
    about = list(log.about({subject}))
    found = [*about, *_thoughts(log, about), *_judged(log, about)]
    for some in _chunks(_calls_within(log, subject)):
        found += log.about(set(some))
    return found


def told_of(log: EventQuerySet, gone: Sequence[Event], titles: Collection[str]) -> Iterator[Event]:
    """Summaries that something of `gone` went into, titles that are one of these, and what a service said
    when it refused it."""
    if not gone:
        return
    yield from _summaries(log, min(row.seq for row in gone))
    for title in titles:
        yield from log.filter(type="session.updated", payload__title=title)
    yield from _refusals(log, {row.subject for row in gone} | {row.uid for row in gone})


def _thoughts(log: EventQuerySet, about: Iterable[Event]) -> Iterator[Event]:
    values = [row.value for row in about]
    requests = {value.model_request_id for value in values if isinstance(value, AgentMessage)}
    for request in requests - {""}:
        yield from log.filter(type="agent.thinking", payload__model_request_id=request)


def _judged(log: EventQuerySet, about: Iterable[Event]) -> Iterator[Event]:
    values = [row.value for row in about]
    outcomes = {value.outcome_id for value in values if isinstance(value, UserDefineOutcome)}
    for outcome in outcomes:
        yield from log.filter(
            type="span.outcome_evaluation_end", payload__outcome_id=outcome
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


def _refusals(log: EventQuerySet, uids: set[str]) -> Iterator[Event]:
    """Errors that name one of them, with the rest that repeats their words."""
    for row in log.filter(type="session.error").order_by("seq"):
        value = row.value
        if not isinstance(value, SessionError) or uids.isdisjoint(value.error.event_ids):
            continue
        yield row
        rest = log.filter(type="session.status_idle", seq__gt=row.seq).order_by("seq").first()
        said = rest.value if rest is not None else None
        if (
            rest is not None
            and isinstance(said, SessionStatusIdle)
            and said.stop_details is not None
            and said.stop_details.message == value.error.message
        ):
            yield rest


def _chunks(uids: Iterable[str]) -> Iterator[list[str]]:
    rest = iter(uids)
    while some := list(islice(rest, AT_ONCE)):
        yield some

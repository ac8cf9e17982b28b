"""The plans of a conversation's requests, read back from its log: for pages, the meter and `/api`.

How a window is shared out is `harness.contextplan`'s.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.utils.translation import gettext_lazy as _

from conversations.branches import counting
from conversations.models import Conversation, Event
from harness.contextplan import ContextPlan
from harness.events import ModelUsage, SpanModelRequestEnd, SpanModelRequestStart
from jobs.prepared import Prepared

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise

SHOWN = 30
"""Requests that are listed, the newest ones."""
WORDS: dict[str, _StrPromise] = {
    "system": _("Instructions"),
    "steering": _("Steering files"),
    "skills": _("Skills"),
    "tools": _("Tools"),
    "recall": _("Memory"),
    "documents": _("Documents"),
    "pinned": _("Pinned messages"),
    "history": _("Conversation"),
    "results": _("Results of calls"),
    "question": _("What was last said"),
    "reserve": _("Kept for the reply"),
}
_START = "span.model_request_start"
_NEWEST = Prepared(
    lambda given: Event.objects.filter(conversation=given.conversation, type=_START).order_by(
        "-seq"
    )[:3]
)


@dataclass(frozen=True, slots=True)
class Source:
    name: str
    words: str
    tokens: int
    percent: float
    """Of the window."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request of the dialogue."""

    uid: str
    seq: int
    step: int
    model: str
    plan: ContextPlan

    @property
    def sources(self) -> list[Source]:
        """The largest first, then what is kept for the reply."""
        by_size = sorted(self.plan.tokens.items(), key=lambda each: -each[1])
        return [self._source(*each) for each in (*by_size, ("reserve", self.plan.reserve))]

    @property
    def percent(self) -> int:
        return min(100, round(100 * self.plan.total / self.plan.window))

    def _source(self, name: str, tokens: int) -> Source:
        words = WORDS.get(name)
        percent = round(100 * tokens / self.plan.window, 1)
        return Source(name, str(words) if words else name, tokens, percent)


def newest_plan(conversation: Conversation) -> Request | None:
    """Of the last request of the dialogue; None before the first."""
    return next(_requests(_NEWEST.all(conversation=conversation.pk)), None)


def requests_of(conversation: Conversation) -> list[Request]:
    """The newest requests that count, the newest first."""
    rows = counting(conversation).filter(type=_START).order_by("-seq")
    return list(_requests(rows[: 2 * SHOWN]))[:SHOWN]


def request_about(event: Event) -> Request | None:
    """The request that it came of, or that it led to; None where there is none, or it had no plan."""
    rows = Event.objects.filter(conversation=event.conversation_id)
    of = event.payload.get("model_request_id")
    if of:
        return next(_requests(rows.filter(uid=of, type=_START)), None)
    starts = rows.filter(type=_START)
    if event.type == "user.message":
        return next(_requests(starts.filter(seq__gt=event.seq).order_by("seq")[:3]), None)
    return next(_requests(starts.filter(seq__lte=event.seq).order_by("-seq")[:3]), None)


def usage_of(conversation: Conversation, request: Request) -> ModelUsage | None:
    """What the service counted of it; None while it is under way."""
    end = Event.objects.filter(
        conversation=conversation, subject=request.uid, type="span.model_request_end"
    ).first()
    value = end.value if end is not None else None
    return value.model_usage if isinstance(value, SpanModelRequestEnd) else None


def _requests(rows: Iterable[Event]) -> Iterator[Request]:
    for row in rows:
        value = row.value
        if (
            isinstance(value, SpanModelRequestStart)
            and value.purpose == "main"
            and value.plan is not None
        ):
            yield Request(row.uid, row.seq, value.step, value.model, value.plan)

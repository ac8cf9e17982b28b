"""What the log of an agent and those of its subagents say twice: an answer and what the call for it brought,
and what an advisor was shown of the conversation above.

Where it stands is known by ids; which of it is a copy, by the words, since a copy says more besides. What an
agent wrote in a call for a subagent is no copy: it decided to (ADR 37).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from django.db.models import QuerySet

from conversations.branches import counting
from conversations.forgetting import Place, Removed, repeats
from conversations.models import Event
from harness.content import text_of
from harness.events import (
    AgentMcpToolResult,
    AgentMessage,
    AgentToolResult,
    AgentToolUse,
    BackgroundFinished,
    SessionError,
    SessionStatusIdle,
    UserMessage,
)
from harness.events import Event as EventValue

from .briefing import words_of
from .casting import kind_of
from .kinds import ADVISOR
from .models import Subagent
from .tools import LOOK

_SAID = (AgentMessage, SessionError, SessionStatusIdle)


def said_elsewhere(removed: Removed) -> Iterator[Place]:
    yield from _above(removed)
    yield from _answered(removed)
    yield from _shown(removed)


def _above(removed: Removed) -> Iterator[Place]:
    """Where the conversation above was told what is taken out of a subagent's."""
    said = [_words(event) for event in removed.of(*_SAID).values()]
    for row in Subagent.objects.filter(child=removed.conversation).select_related("parent"):
        for subject, text in _told(row):
            if repeats(text, said):
                yield row.parent, subject


def _answered(removed: Removed) -> Iterator[Place]:
    """Where subagents said what is taken out of what they were asked for."""
    for row, at, text in _taken_out(removed):
        for found in _sources(row, at):
            if row.child is not None and repeats(text, [_words(found.value)]):
                yield row.child, found.subject


def _taken_out(removed: Removed) -> Iterator[tuple[Subagent, datetime, str]]:
    """Subagents that something of it was told of, when and what."""
    asked = list(Subagent.objects.filter(parent=removed.conversation).select_related("child"))
    looked = _looked(removed) if asked else {}
    for entry in removed.entries if asked else ():
        event = entry.event
        uid: str | None = None
        call: str | None = None
        if isinstance(event, BackgroundFinished):
            uid, text = event.background_id, event.tail
        elif isinstance(event, AgentToolResult):
            uid, text = looked.get(event.tool_use_id), text_of(event.content)
            call = event.tool_use_id if uid is None else None
        else:
            continue
        for row in asked:
            if row.uid == uid or row.call_uid == call:
                yield row, datetime.fromtimestamp(entry.at, UTC), text


def _looked(removed: Removed) -> dict[str, str]:
    """Which subagent its agent looked at again, by the call's id."""
    calls = Event.objects.filter(
        conversation=removed.conversation, type="agent.tool_use", payload__name=LOOK
    )
    values = ((call.uid, call.value) for call in calls)
    return {uid: str(use.input.get("id")) for uid, use in values if isinstance(use, AgentToolUse)}


def _shown(removed: Removed) -> Iterator[Place]:
    """What advisors were asked with, where it shows what is taken out."""
    shown = removed.of(UserMessage, AgentMessage, AgentToolResult, AgentMcpToolResult)
    said = [words_of(event) for event in shown.values()]
    asked = Subagent.objects.filter(parent=removed.conversation, kind=ADVISOR.name)
    for row in asked.exclude(child=None).select_related("child"):
        if kind_of(row) is not ADVISOR or row.child is None:
            continue
        question = Event.objects.filter(conversation=row.child, uid=row.asked_event).first()
        value = question.value if question is not None else None
        if isinstance(value, UserMessage) and repeats(text_of(value.content), said):
            yield row.child, row.asked_event


def _told(row: Subagent) -> Iterator[tuple[str, str]]:
    """What the conversation above was told of its end, and whenever its agent looked at it again."""
    log = Event.objects.filter(conversation=row.parent_id)
    looked = log.filter(
        type="agent.tool_use", payload__name=LOOK, payload__input__id=row.uid
    ).values_list("uid", flat=True)
    for event in log.filter(type="agent.tool_result", subject__in=[row.call_uid, *looked]):
        if isinstance(value := event.value, AgentToolResult):
            yield event.subject, text_of(value.content)
    for event in log.filter(type="x.background_finished", payload__background_id=row.uid):
        if isinstance(value := event.value, BackgroundFinished):
            yield event.subject, value.tail


def _sources(row: Subagent, at: datetime) -> Iterator[Event]:
    """What its answer that was told `at` that time may have been made of: its last words, when it ended, then
    or by now, of what counts or of all, and its errors."""
    log = Event.objects.filter(conversation=row.child_id)
    by_then = log.filter(seq__lte=row.ended_seq)
    found: list[QuerySet[Event]] = [by_then, log.filter(created_at__lte=at), log]
    if row.child is not None:
        found.append(counting(row.child))
    for some in found:
        last = some.filter(type="agent.message").order_by("-seq").first()
        if last is not None:
            yield last
    asked = log.filter(uid=row.asked_event).values_list("seq", flat=True).first() or 0
    yield from by_then.filter(
        type__in=("session.error", "session.status_idle"), seq__gt=asked
    ).order_by("seq")


def _words(event: EventValue) -> str:
    match event:
        case AgentMessage(content=content):
            return text_of(content)
        case SessionError(error=error):
            return error.message
        case SessionStatusIdle(stop_details=details) if details is not None:
            return details.message
        case _:
            return ""

"""What an event says once its words were taken out of the log, at a person's wish.

Pure. Which events those are, and that they are stored so, is `conversations.log.redact`'s part; who may
wish it `conversations.actions.redacting`'s. Secrets are kept out of logs elsewhere (`harness.redaction`).
"""

from __future__ import annotations

from harness.content import Text
from harness.events import (
    AgentMessage,
    AgentThinking,
    AgentThreadContextCompacted,
    AgentToolResult,
    AppEvent,
    BackgroundFinished,
    CompactionRequested,
    CompactionSkipped,
    ContentSetAside,
    Event,
    FeedbackGiven,
    McpElsewhere,
    MessageEdited,
    OutcomeCheckRan,
    SessionError,
    SessionMemoryWritten,
    SessionStatusIdle,
    SessionUpdated,
    SpanOutcomeEvaluationEnd,
    ToolResult,
    UserCustomToolResult,
    UserDefineOutcome,
    UserMessage,
    UserToolConfirmation,
)
from harness.frontends import FrontEnd
from harness.history import Entry, untrusted_in_answer, untrusted_in_input

REMOVED = "(What stood here was removed by a person.)"
SUMMARY_REMOVED = (
    "(This summary was removed because something that it told of was. What it stood for can be read again"
    " with read_events.)"
)


def redacted(event: Event) -> Event:
    """The same event without what it said: its ids, its place and what followed from it stay. So does that
    others wrote it, as what the agent made of it may, and that somebody said what a summary was to dwell on.

    An event that says nothing of its own comes back as it is, one that was redacted before as well.
    """
    words = (Text(text=REMOVED),)
    match event:
        case UserMessage():
            told = {
                "content": words,
                "files": (),
                "front_end": _silent(event.front_end),
                "untrusted_by": untrusted_in_input(Entry("", event)),
            }
            return event.model_copy(update=told)
        case MessageEdited():
            return event.model_copy(update={"content": words})
        case AgentMessage(continues=str()):
            return event.model_copy(update={"content": ()})
        case AgentMessage():
            return event.model_copy(update={"content": words})
        case SessionUpdated():
            return event.model_copy(update={"title": event.title and ""})
        case AgentThinking():
            # Without its words a signature fits nothing, and no service takes it.
            silent = {"thinking": REMOVED, "signature": "", "redacted_data": ""}
            return event.model_copy(update=silent)
        case McpElsewhere():
            return event.model_copy(update={"block": {}})
        case UserDefineOutcome():
            return event.model_copy(
                update={"description": REMOVED, "rubric": REMOVED, "checks": ()}
            )
        case OutcomeCheckRan():
            return event.model_copy(update={"run": REMOVED, "output": "", "problem": ""})
        case SpanOutcomeEvaluationEnd():
            return event.model_copy(update={"explanation": REMOVED, "criteria": ()})
        case UserToolConfirmation():
            return event.model_copy(update={"deny_message": event.deny_message and REMOVED})
        case FeedbackGiven():
            return event.model_copy(update={"comment": ""})
        case ContentSetAside():
            return event.model_copy(update={"reason": ""})
        case BackgroundFinished():
            return event.model_copy(update={"tail": REMOVED, "detail": "", "network": None})
        case SessionMemoryWritten():
            return event.model_copy(update={"text": REMOVED})
        case SessionError():
            error = event.error.model_copy(update={"message": REMOVED, "hint": ""})
            return event.model_copy(update={"error": error})
        case SessionStatusIdle(stop_details=details) if details is not None:
            why = details.model_copy(update={"message": REMOVED, "hint": ""})
            return event.model_copy(update={"stop_details": why})
        case CompactionRequested():
            return event.model_copy(update={"focus": event.focus and REMOVED})
        case CompactionSkipped():
            return event.model_copy(update={"detail": ""})
        case AgentThreadContextCompacted():
            return event.model_copy(update={"summary": SUMMARY_REMOVED, "focus": "", "block": {}})
        case AppEvent():
            return event.silent()
        case _ if isinstance(event, ToolResult):
            gone: dict[str, object] = {"content": words, "display": None, "keeps": None}
            if source := untrusted_in_answer(event, "a tool"):
                gone["untrusted"] = True
                if isinstance(event, AgentToolResult) and not event.untrusted:
                    gone["untrusted_by"] = source
            if isinstance(event, UserCustomToolResult):
                gone["front_end"] = _silent(event.front_end)
            fields = type(event).model_fields
            return event.model_copy(
                update={name: value for name, value in gone.items() if name in fields}
            )
        case _:
            return event


def _silent(front_end: FrontEnd | None) -> FrontEnd | None:
    """What it shows goes with the words; the tools that it offers say nothing."""
    return front_end and front_end.model_copy(update={"context": (), "state": {}})

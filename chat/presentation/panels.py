"""The panels beside a transcript: status, task list, meter, the title, and how the switches stand.

All words come from the server and depend on what is stored only, never on the time of day.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import Literal

from django.template.loader import render_to_string
from django.utils.translation import gettext as _

from chat.links import address_of
from chat.modelpicker import model_words
from conversations.branches import counting
from conversations.models import BackgroundCommand, Conversation, Event
from harness.events import (
    OWES_RUN,
    WAITS_FOR_SUBAGENTS,
    SessionError,
    SessionStatusIdle,
    SessionStatusRescheduled,
    SessionUpdated,
    TodosUpdated,
)
from jobs.prepared import Prepared
from keeping.pinnedmessages import pinned_in
from reading.unseen import visible

from . import failures
from .content import Moment

Panel = Literal[
    "status",
    "todos",
    "background",
    "subagents",
    "meter",
    "waiting",
    "title",
    "features",
    "model",
    "queue",
    "team",
    "timers",
    "retention",
    "pinned",
    "asked",
    "budget",
]
Drawn = str | dict[str, bool]
"""Inner HTML; of `title` and `model` plain text; of `features` how each switch stands, by its name."""

COMMAND_CHARACTERS = PINNED_CHARACTERS = 200

_STATUS_TYPES = (
    "session.status_running",
    "session.status_idle",
    "session.status_rescheduled",
    "session.status_terminated",
    "session.error",
    "user.interrupt",
)
"""An error is told with the rest or the wait that it led to, which is stored right behind it."""

_ALSO_AFFECTS: dict[str, frozenset[Panel]] = {
    **dict.fromkeys(_STATUS_TYPES, frozenset({"status", "queue"})),
    "session.status_idle": frozenset({"status", "meter", "waiting", "queue"}),
    "session.status_terminated": frozenset({"status", "waiting", "queue"}),
    # Each may be the word that holds back what waits, or lets it go.
    **dict.fromkeys(
        ("x.queue_held", "x.queue_released", "x.retry_requested", "x.content_set_aside"),
        frozenset({"status", "queue"}),
    ),
    **dict.fromkeys(
        (
            "x.approval_requested",
            "x.approval_voted",
            "x.outcome_unknown",
            "user.tool_confirmation",
        ),
        frozenset({"waiting"}),
    ),
    "user.message": frozenset({"status", "queue"}),
    "user.define_outcome": frozenset({"status", "queue"}),
    "x.message_withdrawn": frozenset({"status", "queue"}),
    "x.input_taken": frozenset({"status", "queue"}),
    "session.usage": frozenset({"meter"}),
    "span.model_request_end": frozenset({"meter"}),
    "agent.thread_context_compacted": frozenset({"meter"}),
    "x.todos_updated": frozenset({"todos"}),
    "x.background_started": frozenset({"background"}),
    "x.background_finished": frozenset({"background"}),
    "x.subagent_started": frozenset({"subagents"}),
    "x.subagent_ended": frozenset({"subagents"}),
    "x.message_pinned": frozenset({"pinned"}),
    "x.content_redacted": frozenset({"pinned"}),
    "x.rewound": frozenset(
        {"status", "todos", "background", "meter", "waiting", "queue", "pinned"}
    ),
}
# A run that is owed takes what waits as well, whatever it is owed for.
_AFFECTS: dict[str, frozenset[Panel]] = dict(_ALSO_AFFECTS)
for _type in OWES_RUN:
    _AFFECTS[_type] = _AFFECTS.get(_type, frozenset()) | {"status", "queue"}

_NEWEST = Prepared(
    lambda given: Event.objects.filter(
        conversation=given.conversation, type__in=_STATUS_TYPES
    ).order_by("-seq")[:2]
)
_TODOS = Prepared(
    lambda given: Event.objects.filter(
        conversation=given.conversation, type="x.todos_updated"
    ).order_by("-seq")[:1]
)
_BACKGROUND = Prepared(
    lambda given: BackgroundCommand.objects.running().filter(conversation=given.conversation)
)


def every_panel() -> set[Panel]:
    """Those that a page begins with; who makes it knows the model."""
    return {
        "status",
        "todos",
        "background",
        "subagents",
        "meter",
        "waiting",
        "title",
        "features",
        "queue",
        "team",
        "timers",
        "retention",
        "pinned",
        "asked",
        "budget",
    }


def affected_panels(rows: Iterable[Event]) -> set[Panel]:
    """The panels that may look different because of `rows`."""
    affected: set[Panel] = set()
    for row in rows:
        affected |= _AFFECTS.get(row.type, frozenset())
        if row.payload.get("evaluated_permission") == "ask":
            affected.add("waiting")
        if row.type == "session.updated":
            value = row.value
            if not isinstance(value, SessionUpdated):
                continue
            if value.title is not None:
                affected.add("title")
                if value.made_of and row.actor_id is None:
                    affected.add("meter")  # a model gave it
            if value.features:
                affected.add("features")
            if value.overrides:
                affected.add("model")
    return affected


def panels_of(conversation: Conversation, wanted: Iterable[Panel]) -> dict[str, Drawn]:
    """What each wanted panel shows; nothing of one that nobody makes. At most one query a panel, and
    four for the meter, which shows the budgets and what the last request held."""
    return {name: _MAKERS[name](conversation) for name in sorted(wanted) if name in _MAKERS}


def make_with(
    panel: Panel, maker: Callable[[Conversation], Drawn], *, on: Iterable[str] = ()
) -> None:
    """Have an app make this panel from now on. It may look different after events of the types `on`."""
    _MAKERS[panel] = maker
    for kind in on:
        _AFFECTS[kind] = _AFFECTS.get(kind, frozenset()) | {panel}


# --- status ---------------------------------------------------------------------------------------


def _status(conversation: Conversation) -> str:
    if conversation.rewound_seq is None:
        newest = _NEWEST.all(conversation=conversation.pk)
    else:
        newest = list(counting(conversation).filter(type__in=_STATUS_TYPES).order_by("-seq")[:2])
    state, words = _status_words(conversation, newest)
    queued = conversation.queued_count
    if state == "starting":
        queued -= 1  # the one it starts with
    return render_to_string(
        "chat/panels/status.html",
        {
            "state": state,
            "words": words,
            "queued": queued,
            "may_stop": conversation.may_be_interrupted,
        },
    ).strip()


def _status_words(conversation: Conversation, newest: Sequence[Event]) -> tuple[str, str]:
    last = next((row for row in newest if row.type != "session.error"), None)
    match conversation.status:
        case Conversation.Status.RUNNING:
            if last is not None and last.type == "user.interrupt":
                return "running", _("Stopping…")
            return "running", _("Working…")
        case Conversation.Status.RESCHEDULING:
            return "rescheduling", _try_again_words(newest)
        case Conversation.Status.TERMINATED:
            return "terminated", _("Ended")
    if conversation.is_about_to_start:
        return "starting", _("Starting…")
    value = last.value if last is not None else None
    if isinstance(value, SessionStatusIdle) and value.interrupted:
        return "stopped", _("Stopped")
    match conversation.stop_reason:
        case "requires_action":
            return "waiting", _("Waiting for you")
        case "waits_for_worker":
            details = value.stop_details if isinstance(value, SessionStatusIdle) else None
            if details is not None and details.code == WAITS_FOR_SUBAGENTS:
                return "worker", _("Waiting for its subagents")
            return "worker", _("Waiting for a worker")
        case "retries_exhausted":
            return "failed", _("Failed")
        case "budget_reached":
            return "limit", _("Stopped at a limit")
        case "refusal":
            return "refused", _("The model declined")
    return "idle", _("Ready")


def _try_again_words(newest: Sequence[Event]) -> str:
    """When, and because of what: the error stands right before the wait it led to."""
    row, before = (*newest, None, None)[:2]
    put_off = row.value if row is not None else None
    if row is None or not isinstance(put_off, SessionStatusRescheduled):
        return _("Trying again soon…")
    due = Moment.of(row.created_at + timedelta(seconds=put_off.delay_seconds)).clock
    cause = before.value if before is not None else None
    if isinstance(cause, SessionError) and cause.error.retry_status == "retrying":
        return _("Trying again at %(time)s: %(reason)s") % {
            "time": due,
            "reason": failures.in_words(cause.error.message),
        }
    return _("Trying again at %(time)s") % {"time": due}


# --- task list ------------------------------------------------------------------------------------


def _todos(conversation: Conversation) -> str:
    if conversation.rewound_seq is None:
        row = _TODOS.first(conversation=conversation.pk)
    else:
        row = counting(conversation).filter(type="x.todos_updated").order_by("-seq").first()
    value = row.value if row is not None else None
    todos = value.todos if isinstance(value, TodosUpdated) else ()
    if not todos:
        return ""
    done = [todo for todo in todos if todo.status == "completed"]
    context = {
        "todos": todos,
        "done": len(done),
        "all": len(todos),
        "current": next((todo for todo in todos if todo.status == "in_progress"), None),
    }
    return render_to_string("chat/panels/todos.html", context).strip()


# --- pinned messages ------------------------------------------------------------------------------


def _pinned(conversation: Conversation) -> str:
    rows = [
        {
            "address": address_of(conversation, each.subject),
            "by_agent": each.by_agent,
            "text": visible(" ".join(each.text[:PINNED_CHARACTERS].split())),
        }
        for each in pinned_in(conversation)
    ]
    return render_to_string("chat/panels/pinned.html", {"rows": rows}).strip() if rows else ""


# --- background commands --------------------------------------------------------------------------


def _background(conversation: Conversation) -> str:
    running = _BACKGROUND.all(conversation=conversation.pk)
    rows = [
        {
            "uid": row.uid,
            "command": visible(" ".join(row.command.split()))[:COMMAND_CHARACTERS],
            "since": Moment.of(row.started_at),
            "ending": row.cancel_asked_at is not None,
            "output": row.output_path,
        }
        for row in running
    ]
    if not rows:
        return ""
    return render_to_string("chat/panels/background.html", {"rows": rows}).strip()


# --- from the conversation's row ------------------------------------------------------------------


def _title(conversation: Conversation) -> str:
    return conversation.title or _("Untitled")


def _queue(conversation: Conversation) -> str:
    """What to do with messages that are held back."""
    if not conversation.holds_queue:
        return ""
    number = conversation.queued_count
    return render_to_string("chat/panels/queue.html", {"number": number}).strip()


def _features(conversation: Conversation) -> dict[str, bool]:
    return conversation.features.model_dump()


_MAKERS: dict[Panel, Callable[[Conversation], Drawn]] = {
    "status": _status,
    "todos": _todos,
    "pinned": _pinned,
    "background": _background,
    "title": _title,
    "features": _features,
    "model": model_words,
    "queue": _queue,
}

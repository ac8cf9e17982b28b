"""A whole conversation as Markdown for reading and as JSON for programs, piece by piece.

Both are written from the log in pages, so that a long conversation never stands in memory. The JSON
is one object:

    format         "agentsite.conversation"
    version        1; a reader may ignore names it does not know
    conversation   id, title, status, stop_reason, created_at, active_at, features, parent (id or
                   null), organisation (id, name), owner (id, name),
                   agent (id, name, version, provider, model), environment (id, name)
    events         every event in order: id, seq, type, created_at, processed_at (null while it
                   waits), actor (user name, or null for what the agent did), payload (as stored;
                   `harness.events` names the fields of each type)
    usage          every model call: id (of its `span.model_request_start`), purpose, provider,
                   model, input_tokens, output_tokens, cache_creation_input_tokens,
                   cache_read_input_tokens, cost_usd (a decimal as text; null if the price was not
                   known), milliseconds, created_at
    totals         the sums of the token columns, cost_usd of the calls whose price was known, and
                   calls_without_price

Times are ISO 8601 with an offset.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Protocol

from django.db import connection
from django.utils.translation import gettext as _

from agents.overridden import sentences_of
from conversations.models import Conversation, Event
from harness.content import Block, Text
from harness.events import (
    WAITS_ELSEWHERE,
    AgentMcpToolUse,
    AgentMessage,
    AgentThinking,
    AgentThreadContextCompacted,
    DiffDisplay,
    FeedbackGiven,
    McpElsewhere,
    MessagePinned,
    SessionError,
    SessionStatusIdle,
    SessionUpdated,
    TodosUpdated,
    ToolUse,
    UserInterrupt,
    UserMessage,
    UserToolConfirmation,
    answered_call,
)
from harness.events import Event as EventValue
from harness.frontends import documents_of

PAGE = 500
"""Rows of one query."""


class Appendix(Protocol):
    """What an app adds behind the log, in both forms, piece by piece."""

    def as_json(self, conversation: Conversation) -> Iterator[str]:
        """Members of the one object, each beginning with its comma."""

    def as_markdown(self, conversation: Conversation) -> Iterator[str]:
        """Nothing where there is nothing to say."""


_appendices: list[Appendix] = []


def append_to_exports(appendix: Appendix) -> None:
    """From now on; once, however often it is said."""
    if appendix not in _appendices:
        _appendices.append(appendix)


# --- JSON -----------------------------------------------------------------------------------------


def as_json(conversation: Conversation) -> Iterator[str]:
    """The pieces of one JSON object, as the module describes it."""
    yield '{"format": "agentsite.conversation", "version": 1,\n"conversation": '
    yield _json(_head(conversation))
    yield ',\n"events": ['
    between = "\n"
    for stretch in _event_texts(conversation):
        yield between + stretch
        between = ",\n"
    yield "\n]"
    for appendix in _appendices:
        yield from appendix.as_json(conversation)
    yield "}\n"


def _head(conversation: Conversation) -> dict[str, Any]:
    version = conversation.agent_version
    return {
        "id": conversation.uid,
        "title": conversation.title,
        "status": conversation.status,
        "stop_reason": conversation.stop_reason,
        "created_at": _time(conversation.created_at),
        "active_at": _time(conversation.active_at),
        "features": conversation.features.model_dump(),
        "parent": conversation.parent.uid if conversation.parent else None,
        "organisation": {
            "id": conversation.organisation.uid,
            "name": conversation.organisation.name,
        },
        "owner": {"id": conversation.owner.uid, "name": conversation.owner.username},
        "agent": {
            "id": version.agent.uid,
            "name": version.agent.name,
            "version": version.number,
            "provider": version.config.provider,
            "model": version.config.model,
        },
        "environment": {"id": conversation.environment.uid, "name": conversation.environment.name},
    }


def _event_texts(conversation: Conversation) -> Iterator[str]:
    """The JSON of a page of events at a time, put together by the database out of what it holds:
    reading every row and writing it again would cost ten times as much."""
    asked = (
        f"SELECT seq, {_EVENT_TEXT[connection.vendor]} FROM conversations_event AS event"  # noqa: S608
        " LEFT JOIN accounts_user AS actor ON actor.id = event.actor_id"
        " WHERE conversation_id = %s AND seq > %s AND seq <= %s ORDER BY seq LIMIT %s"
    )
    seq = 0
    while seq < conversation.last_seq:
        with connection.cursor() as cursor:
            cursor.execute(asked, [conversation.pk, seq, conversation.last_seq, PAGE])
            page = cursor.fetchall()
        if not page:
            return
        yield ",\n".join(text for _seq, text in page)
        seq = page[-1][0]


def _utc(column: str) -> str:
    return f"""TO_CHAR({column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"+00:00"')"""


_EVENT = """'{"id": "' || event.uid || '", "seq": ' || event.seq || ', "type": "' || event.type
    || '", "created_at": "' || %(created)s || '", "processed_at": '
    || COALESCE('"' || %(processed)s || '"', 'null') || ', "actor": '
    || COALESCE(%(actor)s, 'null') || ', "payload": ' || %(payload)s || '}'"""

_EVENT_TEXT = {
    # SQLite keeps times as text, in UTC.
    "sqlite": _EVENT
    % {
        "created": "REPLACE(event.created_at, ' ', 'T') || '+00:00'",
        "processed": "REPLACE(event.processed_at, ' ', 'T') || '+00:00'",
        "actor": "CASE WHEN actor.id IS NOT NULL THEN JSON_QUOTE(actor.username) END",
        "payload": "event.payload",
    },
    "postgresql": _EVENT
    % {
        "created": _utc("event.created_at"),
        "processed": _utc("event.processed_at"),
        "actor": "TO_JSON(actor.username)::text",
        "payload": "event.payload::text",
    },
}
"""What one event looks like as JSON, by the kind of database."""


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


# --- Markdown -------------------------------------------------------------------------------------


def as_markdown(conversation: Conversation) -> Iterator[str]:
    """The pieces of one Markdown text: what was said, thought, called, decided and spent."""
    version = conversation.agent_version
    title = _line(conversation.title) or _("Untitled conversation")
    yield f"# {title}\n\n"
    facts = [
        (_("Agent"), f"{version.agent.name} v{version.number}"),
        (_("Environment"), conversation.environment.name),
        (_("Owner"), str(conversation.owner)),
        (_("Begun"), _time(conversation.created_at)),
        (_("Last activity"), _time(conversation.active_at)),
        ("Id", conversation.uid),
    ]
    for name, value in facts:
        yield f"- {name}: {_line(value)}\n"
    yield "\n"
    names: dict[str, str] = {}
    for row in _events(conversation):
        yield _passage(row, row.value, names)
    for appendix in _appendices:
        yield from appendix.as_markdown(conversation)


def _passage(row: Event, event: EventValue, names: dict[str, str]) -> str:
    """What one event says; empty for events that say nothing to a reader."""
    match event:
        case UserMessage():
            who = _line(str(row.actor or _("Program")))
            said = _blocks((*event.content, *documents_of(event.front_end)))
            attached = _("Attached file")
            files = "\n".join(f"- {attached}: {_line(file.path)}" for file in event.files)
            parts = (f"## {who} · {_time(row.created_at)}", said, files)
            return "".join(f"{part}\n\n" for part in parts if part)
        case AgentMessage():
            text = "".join(piece.text for piece in event.content)
            interrupted = _("(interrupted)")
            cut = f"\n\n*{interrupted}*" if event.interrupted else ""
            return f"## {_('Agent')} · {_time(row.created_at)}\n\n{text}{cut}\n\n"
        case AgentThinking() if event.thinking:
            return f"### {_('Thinking')}\n\n{_quoted(event.thinking)}\n\n"
        case McpElsewhere():
            title = _("Executed elsewhere: “%(server)s”, by the model’s service.")
            told = json.dumps(event.block, ensure_ascii=False, indent=2)
            return f"### {title % {'server': event.server}}\n\n{_fenced(told, 'json')}\n\n"
        case _ if isinstance(event, ToolUse):
            names[row.uid] = event.name
            server = f"{event.mcp_server_name}: " if isinstance(event, AgentMcpToolUse) else ""
            arguments = event.invalid_input or json.dumps(event.input, ensure_ascii=False, indent=2)
            asked = getattr(event, "evaluated_permission", "allow")
            permission = _("asked for permission")
            note = f" ({permission})" if asked == "ask" else ""
            if by := getattr(event, "within_tool", ""):
                caller = _("called by %(tool)s") % {"tool": _line(by)}
                note = f" ({caller}){note}"
            return f"### {_('Call')}: {_line(server + event.name)}{note}\n\n" + _fenced(
                arguments, "json"
            )
        case UserToolConfirmation():
            name = names.get(event.tool_use_id, event.tool_use_id)
            who = _line(str(row.actor or _("Program")))
            if event.expired:
                late = _("nobody answered in time about %(tool)s") % {"tool": _line(name)}
                return f"*{late} · {_time(row.created_at)}*\n\n"
            decided = _("allowed") if event.result == "allow" else _("denied")
            reason = f": {_line(event.deny_message)}" if event.deny_message else ""
            return f"*{who} {decided} {_line(name)}{reason} · {_time(row.created_at)}*\n\n"
        case _ if (call := answered_call(event)) is not None:
            return _result(event, names.get(call, call))
        case FeedbackGiven():
            ratings = {"up": _("good answer"), "down": _("bad answer"), "none": _("no rating")}
            said = f": {_line(event.comment)}" if event.comment else ""
            return f"*{_line(str(row.actor or _('Program')))}: {ratings[event.rating]}{said}*\n\n"
        case MessagePinned():
            what = _("pinned a message") if event.pinned else _("let go of a pinned message")
            return f"*{_line(str(row.actor or _('Program')))}: {what}*\n\n"
        case UserInterrupt():
            what = _("stopped the agent")
            return f"*{_line(str(row.actor or _('Program')))}: {what}*\n\n"
        case TodosUpdated():
            done = {"completed": "x", "in_progress": "-"}
            lines = [
                f"- [{done.get(todo.status, ' ')}] {_line(todo.content)}" for todo in event.todos
            ]
            heading = _("Task list")
            return f"### {heading}\n\n" + "\n".join(lines) + "\n\n"
        case AgentThreadContextCompacted():
            heading = _("Earlier messages were summarised")
            return f"### {heading}\n\n{_quoted(event.summary)}\n\n"
        case SessionUpdated() if event.features:
            turned = [
                f"{name}: {_('on') if enabled else _('off')}"
                for name, enabled in event.features.items()
            ]
            return f"*{', '.join(turned)}*\n\n"
        case SessionUpdated() if event.overrides:
            return f"*{_line(' '.join(sentences_of(event.overrides)))}*\n\n"
        case SessionError():
            heading = _("Error")
            return f"**{heading}:** {_line(event.error.message)}\n\n"
        case SessionStatusIdle(stop_details=details) if (
            details is not None and details.code not in WAITS_ELSEWHERE
        ):
            return f"*{_line(details.message)}*\n\n"
        case _:
            return ""


def _result(event: Any, name: str) -> str:
    outcome = getattr(event, "outcome", "error" if event.is_error else "ok")
    title = f"### {_('Result')}: {_line(name)} ({outcome})\n\n"
    display = getattr(event, "display", None)
    if isinstance(display, DiffDisplay) and display.diff:
        counts = f"{_line(display.path)} +{display.added} −{display.removed}\n\n"
        return title + counts + _fenced(display.diff, "diff")
    return title + _fenced(_blocks(event.content), "")


def _blocks(blocks: tuple[Block, ...]) -> str:
    return "\n\n".join(
        block.text if isinstance(block, Text) else f"[{block.type}]" for block in blocks
    )


def _fenced(text: str, language: str) -> str:
    """A code fence longer than any run of backticks inside it."""
    longest = max(map(len, re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}\n\n"


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}" for line in text.splitlines())


def _line(text: str) -> str:
    """On one line, so that no text of anybody's makes a heading of its own."""
    return " ".join(text.split())


# --- both -----------------------------------------------------------------------------------------


def _events(conversation: Conversation) -> Iterator[Event]:
    """The log up to now, a page at a time."""
    end = conversation.last_seq
    seq = 0
    while seq < end:
        rows = Event.objects.filter(conversation=conversation, seq__lte=end).after(seq)
        page = list(rows.select_related("actor")[:PAGE])
        if not page:
            return
        yield from page
        seq = page[-1].seq


def _time(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds")

"""What frames need beside the event they tell of, read from the tables. Synchronous; asks no rights.

One `TableFacts` serves one read of one conversation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from django.conf import settings

from accounts.models import User
from accounts.provider_keys import resolve
from conversations.models import Conversation, Event, ModelTrace
from harness.content import text_of
from harness.errors import NotConfigured, NotFound
from harness.events import (
    CALLS,
    AgentCustomToolUse,
    AgentMessage,
    ApprovalRequested,
    ApprovalVoted,
    InputTaken,
    OutcomeUnknown,
    SpanModelRequestEnd,
    SubagentEnded,
    UserToolConfirmation,
)
from harness.redaction import redacted
from jobs.prepared import Prepared
from teams_app.boards import Standing, board_of, standings
from teams_app.events import TYPES as TASK_EVENTS
from tools_app.touches import data_before
from tools_app.workspace import Workspace, workspace_for

from .incoming import Frame
from .projection import CallFacts, LoggedEvent
from .reserved import is_shown
from .subagentfacts import came_of
from .used import prompt_tokens, usage_of

ABOUT_QUESTIONS = (
    "user.tool_confirmation",
    "x.approval_requested",
    "x.approval_voted",
    "x.call_handed_out",
    "x.outcome_unknown",
)
FILES_IN_FRAME = 200
"""Files that a terminal frame lists; `GET /api/workspace/files` pages through all of them."""

_BEGINNINGS = Prepared(
    lambda given: Event.objects.filter(
        conversation=given.conversation,
        type__in=("x.input_taken", "x.retry_requested"),
        seq__lt=given.before,
    ).order_by("-seq")[:20]
)
_TRACE = Prepared(
    lambda given: ModelTrace.objects.filter(
        conversation=given.conversation, model_request_id=given.request
    )
)


def _task(standing: Standing) -> Frame:
    task = standing.task
    return {
        "id": task.number,
        "task_id": task.uid,
        "subject": task.subject,
        "description": task.description,
        "status": task.status,
        "activeForm": task.active_form,
        "owner": task.owner_name or None,
        "blockedBy": list(standing.blocked_by),
        "blocks": list(standing.blocks),
        "metadata": task.metadata,
    }


def effort_of(conversation: Conversation) -> str:
    """What frames of thinking call the effort: the chat protocol knows `high` and `max`."""
    return wire_effort(conversation.config.effort)


def wire_effort(effort: str) -> str:
    return "max" if effort in {"max", "xhigh"} else "high"


class TableFacts:
    """The `projection.Facts` of one conversation. `traced`: with what models were sent and answered, which
    holds its owner's memories and instructions, so that nobody else is told. `reader`: what calls act on is
    told as far as that one may see it; None: not at all."""

    def __init__(
        self, conversation: Conversation, *, traced: bool = False, reader: User | None = None
    ) -> None:
        self._conversation = conversation
        self._reader = reader
        self._traced = traced
        self._calls: dict[str, CallFacts] = {}
        self._files: Frame | None = None

    def calls(self, uids: Sequence[str]) -> Sequence[CallFacts]:
        missing = [uid for uid in uids if uid not in self._calls]
        if missing:
            rows = Event.objects.filter(conversation=self._conversation, uid__in=missing)
            for row in rows.filter(type__in=CALLS):
                self._calls[row.uid] = _call(row)
        return [self._calls[uid] for uid in uids if uid in self._calls]

    def asked(self, uids: Sequence[str], at: int) -> Sequence[CallFacts]:
        made: dict[str, CallFacts] = {}
        found: dict[str, CallFacts] = {}
        handed: set[str] = set()
        """With a worker of the environment, or a subagent: nobody is asked about them."""
        rows = self._before(at).filter(subject__in=uids, type__in=(*CALLS, *ABOUT_QUESTIONS))
        for row in rows.order_by("seq"):
            if row.type in CALLS:
                found[row.uid] = made[row.uid] = _call(row)
            elif row.subject in found:
                found[row.subject] = _asked_further(found[row.subject], row, made[row.subject])
                if row.type == "x.call_handed_out":
                    handed.add(row.subject)
                elif row.type in {"x.outcome_unknown", "x.approval_requested"}:
                    handed.discard(row.subject)
        calls = [found[uid] for uid in uids if uid in found and uid not in handed]
        return calls if self._reader is None else self._with_what_is_told(calls, self._reader)

    def usage(self, rest: LoggedEvent) -> Frame:
        return usage_of(self._conversation, self._turn_began(rest.seq), rest.seq)

    def files(self) -> Frame:
        if self._files is None:
            workspace = Workspace(workspace_for(self._conversation.uid))
            try:
                listing = workspace.entries(limit=FILES_IN_FRAME)
            except NotFound:
                return {"files": [], "files_complete": True}
            shown = [entry for entry in listing.entries if is_shown(entry.path)]
            self._files = {
                "files": [
                    {"name": entry.name, "path": entry.path, "size": entry.size} for entry in shown
                ],
                "files_complete": listing.complete,
            }
        return self._files

    def tasks(self, row: LoggedEvent) -> Sequence[Frame] | None:
        later = Event.objects.filter(conversation=self._conversation, type__in=TASK_EVENTS)
        if later.filter(seq__gt=row.seq).exists():
            return None
        board = board_of(self._conversation)
        return (
            [_task(each) for each in standings(board.tasks.order_by("number"))]
            if board.is_stored
            else []
        )

    def subagent(self, row: LoggedEvent, end: SubagentEnded) -> Frame:
        return came_of(self._conversation, row.seq, end)

    def redirected(self, rest: LoggedEvent) -> bool:
        interrupt = (
            self._before(rest.seq).filter(type="user.interrupt").order_by("-seq").values("seq")[:1]
        )
        return (
            Event.objects.filter(conversation=self._conversation, type="user.message")
            .filter(seq__in=[row["seq"] + 1 for row in interrupt])
            .exists()
        )

    def plan(self, rest: LoggedEvent) -> str:
        if not self._conversation.features.plan_mode:
            return ""
        began = self._turn_began(rest.seq)
        rows = Event.objects.filter(
            conversation=self._conversation,
            type="agent.message",
            seq__gt=began,
            seq__lt=rest.seq,
        ).order_by("seq")
        said = [
            text_of(v.content) for v in (row.value for row in rows) if isinstance(v, AgentMessage)
        ]
        return "\n\n".join(text for text in said if text.strip())

    def request(self, request_id: str) -> Frame | None:
        trace = self._trace(request_id)
        if trace is None:
            return None
        sent = redacted(trace.request, self._known_secrets())
        chosen = sent.get("settings", {})
        return {
            "type": "llm_request",
            "seq": self._seq_of(request_id),
            "model": sent.get("model", ""),
            "purpose": sent.get("purpose", ""),
            "system": sent.get("system", ""),
            "messages": sent.get("messages", []),
            "tools": sent.get("tools", []),
            "max_tokens": sent.get("max_output_tokens"),
            "temperature": chosen.get("temperature"),
            "message_count": len(sent.get("messages", [])),
            "tool_count": len(sent.get("tools", [])),
            "thinking_enabled": bool(chosen.get("thinking")),
            "thinking_effort": wire_effort(str(chosen.get("effort") or "")),
        }

    def response(self, request_id: str, end: SpanModelRequestEnd) -> Frame | None:
        trace = self._trace(request_id)
        if trace is None:
            return None
        came = redacted(trace.response or {}, self._known_secrets())
        parts = came.get("content", [])
        used = end.model_usage
        return {
            "type": "llm_response",
            "seq": self._seq_of(request_id),
            "content": "".join(part["text"] for part in parts if part.get("type") == "text"),
            "tool_calls": [
                {"id": part["id"], "name": part["name"], "input": part["input"]}
                for part in parts
                if part.get("type") == "tool_use"
            ],
            "done": not any(part.get("type") == "tool_use" for part in parts),
            "end": end.end,
            "is_error": end.is_error,
            "usage": {"input_tokens": prompt_tokens(used), "output_tokens": used.output_tokens},
        }

    def _with_what_is_told(self, calls: Sequence[CallFacts], reader: User) -> Sequence[CallFacts]:
        named = {call.uid: call.name for call in calls}
        told = data_before(reader, self._conversation.pk, named)
        return [replace(call, acts_on=told.get(call.uid, {})) for call in calls]

    # --- the tables -------------------------------------------------------------------------------

    def _before(self, seq: int) -> Any:
        return Event.objects.filter(conversation=self._conversation, seq__lt=seq)

    def _turn_began(self, seq: int) -> int:
        """The number of the event that began the turn which was under way at `seq`."""
        while rows := _BEGINNINGS.all(conversation=self._conversation.pk, before=seq):
            for row in rows:
                value, seq = row.value, row.seq
                if not (isinstance(value, InputTaken) and value.steered):
                    return int(seq)
        return 0

    def _seq_of(self, request_id: str) -> int:
        found = Event.objects.filter(uid=request_id).values_list("seq", flat=True).first()
        return int(found or 0)

    def _trace(self, request_id: str) -> ModelTrace | None:
        if not self._traced:
            return None
        return _TRACE.first(conversation=self._conversation.pk, request=request_id)

    def _known_secrets(self) -> list[str]:
        owner, organisation = self._conversation.owner, self._conversation.organisation
        found = [held.get("key", "") for held in settings.AGENTSITE_PROVIDER_KEYS.values()]
        for name in settings.AGENTSITE_PROVIDER_KEYS:
            try:
                key = resolve(owner, organisation, name)
            except NotConfigured:
                continue
            if key is not None:
                found.append(key.key)
        return [secret for secret in found if secret]


def _call(row: Event) -> CallFacts:
    use: Any = row.value
    asks = getattr(use, "evaluated_permission", "") == "ask"
    terms = getattr(use, "terms", None)
    return CallFacts(
        row.uid,
        use.name,
        use.input,
        custom=isinstance(use, AgentCustomToolUse),
        reason=getattr(use, "reason", ""),
        round=int(asks),
        host=getattr(use, "host", "") if terms is None else terms.host,
    )


def _asked_further(call: CallFacts, row: Event, made: CallFacts) -> CallFacts:
    """The call after one more event about the question that was put; `made`: as the model made it."""
    match row.value:
        case OutcomeUnknown():
            return replace(call, unknown=True, reason="", round=call.round + 1)
        case ApprovalRequested(reason=reason, terms=terms):
            return replace(call, reason=reason, round=call.round + 1, host=terms.host)
        case UserToolConfirmation(result="allow", edited_input=dict(edited)):
            return replace(call, input=edited)
        case ApprovalVoted(edited_input=edited):
            return replace(call, input=made.input if edited is None else edited)
        case _:
            return call

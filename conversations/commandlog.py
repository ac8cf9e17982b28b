"""The commands of a conversation, read from its log: the history behind `command_history`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from harness.content import text_of
from harness.events import (
    AgentToolResult,
    AgentToolUse,
    CommandDisplay,
    NetworkRecord,
    SpanToolStart,
    UserToolResult,
)
from tools_app.builtin.shell import PastCommand

from .branches import counting
from .models import Conversation, Event

TOOL = "bash"


class TableCommandLog:
    """See `tools_app.builtin.shell.CommandLog`."""

    def __init__(self, conversation_id: int) -> None:
        self._conversation_id = conversation_id

    def latest(self, number: int) -> Sequence[PastCommand]:
        calls = self._calls().order_by("-seq")[:number]
        return _past(list(calls), with_answer=False)

    def find(self, command_id: str) -> PastCommand | None:
        call = self._calls().filter(uid=command_id.replace("\0", "")).first()
        return _past([call], with_answer=True)[0] if call is not None else None

    def _calls(self) -> Any:
        log = counting(Conversation.objects.get(pk=self._conversation_id))
        return log.filter(type="agent.tool_use", payload__name=TOOL)


def _past(calls: Sequence[Event], *, with_answer: bool) -> list[PastCommand]:
    about: dict[str, list[Event]] = {call.uid: [] for call in calls}
    if calls:
        rows = Event.objects.filter(conversation_id=calls[0].conversation_id)
        for row in rows.about(set(about)):
            about[row.subject].append(row)
    return [_one(call, about[call.uid], with_answer=with_answer) for call in calls]


def _one(call: Event, about: Iterable[Event], *, with_answer: bool) -> PastCommand:
    use = call.value
    given = use.input if isinstance(use, AgentToolUse) else {}
    state, exit_code, seconds, answer, untrusted_by = "requested", None, None, "", ""
    network = NetworkRecord()
    for row in about:
        match row.value:
            case SpanToolStart():
                state = "running"
            case UserToolResult() as result:
                state = "error" if result.is_error else "ok"
                answer = text_of(result.content)
                untrusted_by = TOOL if result.untrusted else ""
            case AgentToolResult() as result:
                failed = result.outcome == "ok" and result.is_error
                state = "error" if failed else result.outcome
                answer = text_of(result.content)
                untrusted_by = result.untrusted_by or (TOOL if result.untrusted else "")
                if isinstance(result.display, CommandDisplay):
                    exit_code, seconds = result.display.exit_code, result.display.seconds
                    network = result.display.network or network
            case _:
                pass
    return PastCommand(
        id=call.uid,
        command=str(given.get("command", "")),
        state=state,
        exit_code=exit_code,
        seconds=seconds,
        answer=answer if with_answer else "",
        untrusted_by=untrusted_by,
        allowed=network.allowed,
        refused=network.refused,
    )

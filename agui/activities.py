"""What goes on beside the words of a run, as AG-UI's activities: subagents, teammates, tasks of the board.

Each is one message of the client's that every snapshot takes the place of. Pure; what a subagent does
and what came of it is read by `below`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ag_ui.core import ActivitySnapshotEvent, BaseEvent

from harness.events import Event as EventValue
from harness.events import SubagentEnded, SubagentStarted
from teams_app.events import TaskDeleted, TaskEvent, TeammateStatus

SUBAGENT, TEAMMATE, TASK = "agentsite.subagent", "agentsite.teammate", "agentsite.task"


def activity(
    value: EventValue,
    began: SubagentStarted | None = None,
    came: Mapping[str, Any] | None = None,
) -> list[BaseEvent]:
    """The snapshot that an event makes, none for one that is no activity. `began` and `came`: of one that
    has ended, and what came of it."""
    match value:
        case SubagentStarted():
            return [_subagent(value, state="running")]
        case SubagentEnded() if began is not None:
            ended = {"state": value.state, "tokens": value.tokens, "seconds": value.seconds}
            return [_subagent(began, **ended, **(came or {}))]
        case TeammateStatus():
            about = {"name": value.name, "status": value.status}
            content = {**about, "conversation_id": value.conversation_id}
            return [_snapshot(f"{TEAMMATE}:{value.conversation_id}", TEAMMATE, content)]
        case TaskEvent():
            task = value.task.model_dump(mode="json")
            gone = {"status": "deleted"} if isinstance(value, TaskDeleted) else {}
            return [_snapshot(f"{TASK}:{value.task.id}", TASK, {**task, **gone})]
    return []


def at_work(began: SubagentStarted, facts: Mapping[str, Any]) -> list[BaseEvent]:
    """What a subagent does now, in place of what was told of it before."""
    return [_subagent(began, state="running", **facts)]


def _subagent(began: SubagentStarted, **state: Any) -> BaseEvent:
    content = {
        "conversation_id": began.subagent,
        "tool_use_id": began.tool_use_id,
        "name": began.name,
        "description": began.description,
        "background": began.background,
        **state,
    }
    return _snapshot(f"{SUBAGENT}:{began.tool_use_id}", SUBAGENT, content)


def _snapshot(message_id: str, kind: str, content: dict[str, Any]) -> BaseEvent:
    return ActivitySnapshotEvent(
        message_id=message_id, activity_type=kind, content=content, replace=True
    )

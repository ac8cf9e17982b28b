"""The types of events that a list may be asked for: the public ones, and ours for who reads them."""

from __future__ import annotations

from harness.events import types

from .outgoing import OURS

PUBLIC = (
    "user.message",
    "user.interrupt",
    "user.tool_confirmation",
    "user.custom_tool_result",
    "user.tool_result",
    "user.define_outcome",
    "system.message",
    "agent.message",
    "agent.thinking",
    "agent.tool_use",
    "agent.tool_result",
    "agent.mcp_tool_use",
    "agent.mcp_tool_result",
    "agent.custom_tool_use",
    "agent.thread_context_compacted",
    "agent.thread_message_sent",
    "agent.thread_message_received",
    "session.status_running",
    "session.status_idle",
    "session.status_rescheduled",
    "session.status_terminated",
    "session.error",
    "session.updated",
    "session.usage",
    "session.thread_created",
    "session.thread_status_running",
    "session.thread_status_idle",
    "session.thread_status_rescheduled",
    "session.thread_status_terminated",
    "span.model_request_start",
    "span.model_request_end",
    "span.outcome_evaluation_start",
    "span.outcome_evaluation_ongoing",
    "span.outcome_evaluation_end",
    "workflow_run.created",
    "workflow_run.status_running",
    "workflow_run.status_idle",
    "workflow_run.status_ended",
    "workflow_run.phase_started",
    "workflow_run.phase_ended",
    "workflow_run.error",
)
"""Of the public API, `types[]` of `GET /v1/sessions/{id}/events`. Of some this server stores none."""


def known(*, ours: bool) -> tuple[str, ...]:
    if not ours:
        return PUBLIC
    return (*PUBLIC, *(name for name in types() if name.startswith(OURS)))

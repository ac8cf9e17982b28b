"""One conversation in which every type of event happens, each in a place where it makes sense."""

from __future__ import annotations

import json
from typing import Any

Logged = tuple[str, dict[str, Any]]


def text(words: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": words}]


def idle(reason: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "session.status_idle", "stop_reason": reason, **more}


def request(number: int) -> list[Logged]:
    return [
        (
            f"sevt_request{number}",
            {
                "type": "span.model_request_start",
                "provider": "anthropic",
                "model": "m",
                "step": number,
            },
        )
    ]


def reply_end(number: int, **more: Any) -> list[Logged]:
    return [
        (
            f"sevt_end{number}",
            {
                "type": "span.model_request_end",
                "model_request_start_id": f"sevt_request{number}",
                "model_usage": {"input_tokens": 100, "output_tokens": 20},
                **more,
            },
        )
    ]


def a_tool_call(uid: str, name: str, result: dict[str, Any], **use: Any) -> list[Logged]:
    return [
        (uid, {"type": "agent.tool_use", "name": name, "input": {"path": "a.py"}, **use}),
        (
            f"{uid}_start",
            {"type": "span.tool_start", "tool_use_id": uid, "effect": "write_workspace"},
        ),
        (f"{uid}_result", {"type": "agent.tool_result", "tool_use_id": uid, **result}),
        (f"{uid}_end", {"type": "span.tool_end", "tool_use_id": uid, "milliseconds": 12}),
    ]


DIFF = {
    "type": "diff",
    "path": "a.py",
    "diff": "@@ -1 +1 @@\n-old = 1\n+new = 2\n",
    "added": 1,
    "removed": 1,
}
TABLE = {"type": "table", "columns": ["name", "size"], "rows": [["a.py", "9"]]}
TODOS = [
    {"content": "Write a.py", "active_form": "Writing a.py", "status": "completed"},
    {"content": "Test a.py", "active_form": "Testing a.py", "status": "in_progress"},
]


def steps(salt: str = "") -> list[list[Logged]]:
    """The events of a whole log in portions; a reader may look between any two of them. `salt` keeps ids
    apart."""
    told = json.dumps(_steps()).replace("sevt_", f"sevt_{salt}")
    made = [[(uid, payload) for uid, payload in step] for step in json.loads(told)]
    logged = [entry for step in made for entry in step]
    number = {uid: seq for seq, (uid, _payload) in enumerate(logged, start=1)}
    for _uid, payload in logged:
        if payload["type"] == "x.rewound":
            payload["behind"] = number[payload["behind"]]
    return made


def _steps() -> list[list[Logged]]:
    return [
        [
            ("sevt_m1", {"type": "user.message", "content": text("Do it **all**")}),
            ("sevt_m2", {"type": "user.message", "content": text("Typed by mistake")}),
            ("sevt_m3", {"type": "user.message", "content": text("Wait for your trun")}),
        ],
        [
            ("sevt_w2", {"type": "x.message_withdrawn", "event_id": "sevt_m2"}),
            (
                "sevt_e3",
                {
                    "type": "x.message_edited",
                    "event_id": "sevt_m3",
                    "content": text("Wait for your turn"),
                },
            ),
        ],
        [
            ("sevt_t1", {"type": "session.updated", "title": "All of it", "features": {}}),
            ("sevt_t2", {"type": "session.updated", "features": {"plan_mode": True}}),
            ("sevt_run1", {"type": "session.status_running"}),
            ("sevt_taken1", {"type": "x.input_taken", "event_ids": ["sevt_m1"]}),
        ],
        request(1),
        [
            ("sevt_think1", {"type": "agent.thinking", "thinking": "What is *all*?"}),
            (
                "sevt_say1",
                {"type": "agent.message", "content": text("First `half` of it, ")},
            ),
        ],
        reply_end(1, end="max_tokens"),
        request(2),
        [
            (
                "sevt_say2",
                {
                    "type": "agent.message",
                    "content": text("then the other:\n\n```python\nprint(1)\n```\n"),
                    "continues": "sevt_say1",
                },
            )
        ],
        [
            (
                "sevt_there",
                {
                    "type": "x.mcp_elsewhere",
                    "kind": "use",
                    "server": "mail",
                    "block": {"type": "mcp_tool_use", "id": "m1", "name": "look", "input": {}},
                },
            ),
            (
                "sevt_there_r",
                {
                    "type": "x.mcp_elsewhere",
                    "kind": "result",
                    "server": "mail",
                    "tool_use_id": "sevt_there",
                    "block": {"type": "mcp_tool_result", "tool_use_id": "m1", "content": "Two."},
                },
            ),
        ],
        a_tool_call("sevt_c1", "edit_file", {"content": text("Changed."), "display": DIFF}),
        a_tool_call("sevt_c2", "list_files", {"content": text("a.py"), "display": TABLE}),
        a_tool_call(
            "sevt_c3",
            "read_file",
            {"content": text("No such file."), "is_error": True, "outcome": "error"},
        ),
        reply_end(2, end="tool_use"),
        [("sevt_todos", {"type": "x.todos_updated", "todos": TODOS})],
        request(3),
        [
            ("sevt_think2", {"type": "agent.thinking", "thinking": "Ask first."}),
            (
                "sevt_c4",
                {
                    "type": "agent.tool_use",
                    "name": "write_file",
                    "input": {"path": "b.py", "content": "b = 1\n"},
                    "evaluated_permission": "ask",
                    "reason": "writing asks",
                },
            ),
        ],
        reply_end(3, end="tool_use"),
        [
            (
                "sevt_idle1",
                idle({"type": "requires_action", "event_ids": ["sevt_c4"]}),
            )
        ],
        [
            (
                "sevt_asked4",
                {
                    "type": "x.approval_requested",
                    "tool_use_id": "sevt_c4",
                    "reason": "a rule wants two people",
                    "terms": {"two_people": True},
                },
            ),
            (
                "sevt_vote4",
                {
                    "type": "x.approval_voted",
                    "tool_use_id": "sevt_c4",
                    "allowed": 1,
                    "needed": 2,
                },
            ),
        ],
        [
            (
                "sevt_no4",
                {
                    "type": "user.tool_confirmation",
                    "tool_use_id": "sevt_c4",
                    "result": "deny",
                    "deny_message": "not there",
                },
            ),
            ("sevt_run2", {"type": "session.status_running"}),
            (
                "sevt_r4",
                {
                    "type": "agent.tool_result",
                    "tool_use_id": "sevt_c4",
                    "content": text("Denied: not there"),
                    "is_error": True,
                    "outcome": "denied",
                },
            ),
        ],
        [
            ("sevt_s3", {"type": "x.message_steered", "event_id": "sevt_m3"}),
            ("sevt_ordered", {"type": "x.queue_ordered", "event_ids": ["sevt_m3"]}),
            ("sevt_held", {"type": "x.queue_held"}),
            ("sevt_released", {"type": "x.queue_released"}),
            ("sevt_a1", {"type": "x.content_set_aside", "event_id": "sevt_m1", "reason": "No."}),
            ("sevt_a2", {"type": "x.content_redacted", "event_id": "sevt_m1"}),
        ],
        [
            (
                "sevt_taken2",
                {"type": "x.input_taken", "event_ids": ["sevt_m3"], "steered": True},
            )
        ],
        request(4),
        [
            (
                "sevt_mcp",
                {
                    "type": "agent.mcp_tool_use",
                    "name": "search",
                    "mcp_server_name": "library",
                    "input": {"q": "all"},
                    "evaluated_permission": "allow",
                },
            ),
            (
                "sevt_mcp_r",
                {
                    "type": "agent.mcp_tool_result",
                    "mcp_tool_use_id": "sevt_mcp",
                    "content": text("two books"),
                },
            ),
            (
                "sevt_custom",
                {"type": "agent.custom_tool_use", "name": "lookup", "input": {"id": 7}},
            ),
            (
                "sevt_custom_r",
                {
                    "type": "user.custom_tool_result",
                    "custom_tool_use_id": "sevt_custom",
                    "content": text("seven"),
                },
            ),
        ],
        [
            (
                "sevt_handed",
                {"type": "agent.tool_use", "name": "bash", "input": {"command": "ls"}},
            ),
            (
                "sevt_handed_out",
                {
                    "type": "x.call_handed_out",
                    "tool_use_id": "sevt_handed",
                    "effect": "outside",
                    "name": "bash",
                    "input": {"command": "ls"},
                },
            ),
            (
                "sevt_subagent",
                {
                    "type": "x.subagent_started",
                    "tool_use_id": "sevt_handed",
                    "subagent": "sesn_child",
                    "name": "explore",
                    "description": "Look around",
                },
            ),
            (
                "sevt_subagent_end",
                {
                    "type": "x.subagent_ended",
                    "tool_use_id": "sevt_handed",
                    "subagent": "sesn_child",
                    "state": "completed",
                },
            ),
        ],
        [
            (
                "sevt_handed_r",
                {
                    "type": "user.tool_result",
                    "tool_use_id": "sevt_handed",
                    "content": text("a.py"),
                },
            ),
        ],
        [
            (
                "sevt_ask",
                {
                    "type": "agent.custom_tool_use",
                    "name": "ask_user",
                    "input": {
                        "questions": [
                            {
                                "question": "Red or blue?",
                                "options": [{"label": "Red"}, {"label": "Blue"}],
                            },
                            {"question": "Why?"},
                        ]
                    },
                },
            ),
        ],
        [
            (
                "sevt_ask_r",
                {
                    "type": "user.custom_tool_result",
                    "custom_tool_use_id": "sevt_ask",
                    "content": text("Red or blue?\n→ Red\n\nWhy?\n→ (left open)"),
                },
            ),
        ],
        [
            (
                "sevt_c5",
                {"type": "agent.tool_use", "name": "send_mail", "input": {"to": "bob"}},
            ),
            (
                "sevt_c5_start",
                {"type": "span.tool_start", "tool_use_id": "sevt_c5", "effect": "external"},
            ),
            (
                "sevt_c5_unknown",
                {"type": "x.outcome_unknown", "tool_use_id": "sevt_c5", "effect": "external"},
            ),
        ],
        [
            (
                "sevt_c5_r",
                {
                    "type": "agent.tool_result",
                    "tool_use_id": "sevt_c5",
                    "content": text("Nobody knows whether it was sent."),
                    "is_error": True,
                    "outcome": "unknown",
                },
            )
        ],
        reply_end(4, end="tool_use"),
        [
            ("sevt_shorten", {"type": "x.compaction_requested", "focus": "the prices"}),
            (
                "sevt_kept",
                {
                    "type": "x.session_memory_written",
                    "part": "state",
                    "version": 1,
                    "text": "Half done.",
                },
            ),
            ("sevt_skipped", {"type": "x.compaction_skipped", "reason": "too_short"}),
            (
                "sevt_compacted",
                {
                    "type": "agent.thread_context_compacted",
                    "summary": "They did *all* of it.",
                    "through": "sevt_c5_r",
                    "messages": 9,
                },
            ),
            (
                "sevt_thread",
                {
                    "type": "session.thread_created",
                    "session_thread_id": "sesn_child",
                    "agent_name": "Helper",
                },
            ),
            (
                "sevt_outcome",
                {
                    "type": "user.define_outcome",
                    "outcome_id": "outc_1",
                    "description": "All is done",
                    "rubric": "- nothing is missing",
                },
            ),
            (
                "sevt_judging",
                {"type": "span.outcome_evaluation_start", "outcome_id": "outc_1"},
            ),
            (
                "sevt_checked",
                {
                    "type": "x.outcome_check_ran",
                    "outcome_evaluation_start_id": "sevt_judging",
                    "outcome_id": "outc_1",
                    "run": "test -s report.md",
                    "criterion": 1,
                    "exit_code": 0,
                },
            ),
            (
                "sevt_judged",
                {
                    "type": "span.outcome_evaluation_end",
                    "outcome_evaluation_start_id": "sevt_judging",
                    "outcome_id": "outc_1",
                    "result": "satisfied",
                    "explanation": "Nothing is.",
                    "criteria": [{"criterion": "nothing is missing", "met": True}],
                },
            ),
        ],
        [
            (
                "sevt_error1",
                {
                    "type": "session.error",
                    "error": {
                        "type": "model_overloaded_error",
                        "code": "overloaded",
                        "message": "The model service is busy.",
                        "retry_status": "retrying",
                    },
                },
            ),
            ("sevt_again", {"type": "session.status_rescheduled", "delay_seconds": 2}),
        ],
        [("sevt_run3", {"type": "session.status_running"})],
        [
            (
                "sevt_error2",
                {
                    "type": "session.error",
                    "error": {
                        "type": "unknown_error",
                        "code": "broken_stream",
                        "message": "The reply broke off.",
                        "hint": "Try again.",
                    },
                },
            ),
            ("sevt_idle2", idle({"type": "retries_exhausted"})),
        ],
        [
            ("sevt_retry", {"type": "x.retry_requested"}),
            ("sevt_run4", {"type": "session.status_running"}),
        ],
        [
            (
                "sevt_idle3",
                idle(
                    {"type": "budget_reached"},
                    stop_details={"code": "token_budget", "message": "Spent.", "hint": "Raise it."},
                ),
            )
        ],
        [
            ("sevt_m4", {"type": "user.message", "content": text("Go on, then stop")}),
            ("sevt_run5", {"type": "session.status_running"}),
            ("sevt_taken4", {"type": "x.input_taken", "event_ids": ["sevt_m4"]}),
        ],
        [("sevt_stop", {"type": "user.interrupt"})],
        [
            (
                "sevt_cut",
                {"type": "agent.message", "content": text("I was just ab"), "interrupted": True},
            ),
            ("sevt_usage", {"type": "session.usage", "input_tokens": 400, "output_tokens": 80}),
            ("sevt_idle4", idle({"type": "end_turn"}, interrupted=True)),
        ],
        [
            (
                "sevt_sleep",
                {
                    "type": "x.wake_requested",
                    "delay_seconds": 60,
                    "reason": "the build needs a minute",
                },
            ),
            ("sevt_due", {"type": "x.wake_due", "reason": "the build needs a minute"}),
        ],
        [
            (
                "sevt_bgstart",
                {"type": "x.background_started", "background_id": "bg_1", "command": "make test"},
            ),
            (
                "sevt_bgend",
                {
                    "type": "x.background_finished",
                    "background_id": "bg_1",
                    "command": "make test",
                    "state": "failed",
                    "exit_code": 2,
                    "seconds": 41.5,
                    "output_path": "background/bg_1.log",
                    "tail": "1 failed",
                },
            ),
        ],
        [
            ("sevt_m5", {"type": "user.message", "content": text("Something bad")}),
            ("sevt_run6", {"type": "session.status_running"}),
            ("sevt_taken5", {"type": "x.input_taken", "event_ids": ["sevt_m5"]}),
            ("sevt_idle5", idle({"type": "refusal"})),
        ],
        [
            (
                "sevt_rated",
                {
                    "type": "x.feedback_given",
                    "event_id": "sevt_cut",
                    "rating": "down",
                    "comment": "It was cut off.",
                },
            ),
            ("sevt_pinned", {"type": "x.message_pinned", "event_id": "sevt_cut"}),
        ],
        # What is behind is named by its id here, and by its number in what `steps` makes of it.
        [("sevt_back", {"type": "x.rewound", "behind": "sevt_sleep", "why": "rewind"})],
        # At once: of a conversation that is not over, a message that waits begins a run.
        [
            ("sevt_m6", {"type": "user.message", "content": text("Still waiting")}),
            ("sevt_over", {"type": "session.status_terminated"}),
        ],
    ]

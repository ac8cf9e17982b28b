"""What a receipt states beside the log: who worked by which words and rules, who allowed what, what came of
it, and what it cost. Read from tables; texts that are long stand as digests.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from accounts.models import User
from approvals.models import Approval
from conversations.judging import history_of, telling_kit
from conversations.kits import plan_kit
from conversations.models import Conversation, Event
from harness.events import (
    SpanToolStart,
    ToolResult,
    ToolUse,
    UserMessage,
    answered_call,
    dump,
)
from harness.history import Entry
from prompts.using import told
from skillsets.models import UsedSkill
from spending.models import Usage
from tools_app.workspace import Workspace, workspace_for

from .verifying import canonical

FILE_LIMIT = 100_000_000
"""Bytes of a file of which a digest is made; of larger ones only their size stands there."""
PIECE = 1 << 20


def statements_of(
    conversation: Conversation, entries: list[Entry], rows: Mapping[str, Event]
) -> dict[str, Any]:
    """By name, as JSON values. `rows` are the events by their ids."""
    version = conversation.agent_version
    config = conversation.config
    stored = config.model_dump(mode="json")
    kit = telling_kit(conversation)
    plan = plan_kit(conversation)
    return {
        "agent": {
            "id": version.agent.uid,
            "name": version.agent.name,
            "version": version.number,
            "config_sha256": _digest(stored),
            "overrides": conversation.overrides,
            "provider": config.provider,
            "model": config.model,
            "parameters": {
                name: stored[name] for name in ("temperature", "top_p", "thinking", "effort")
            },
            "limits": stored["limits"],
        },
        "prompt": {
            "instructions_sha256": _sha256(config.instructions),
            "system_sha256_when_made": _sha256(plan.system),
        },
        "tools": [
            {
                "name": spec.name,
                "sha256": _digest([spec.name, spec.description, dict(spec.input_schema)]),
            }
            for spec in kit.offered(history_of(conversation))
        ],
        "rules": {
            "agents_sha256": _digest(stored["tools"]),
            "others_sha256": _digest([repr(rule) for rule in plan.rules]),
        },
        "prompts": [
            {
                "name": used.version.prompt.name,
                "version": used.version.number,
                "sha256": used.version.digest,
                "told_sha256": _sha256(used.text),
            }
            for used in told(conversation)
        ],
        "skills": [
            {"name": used.skill.name, "version": used.version.label, "sha256": used.version.digest}
            for used in UsedSkill.objects.of(conversation)
        ],
        "environment": {
            "id": conversation.environment.uid,
            "name": conversation.environment.name,
            "policy_sha256": _sha256(conversation.environment.policy),
        },
        "inputs": [
            {
                "event": entry.uid,
                "by": _person(rows[entry.uid].actor),
                "sha256": _digest(dump(entry.event)),
            }
            for entry in entries
            if isinstance(entry.event, UserMessage)
        ],
        "approvals": _approvals(conversation),
        "effects": _effects(entries),
        "files": _files(conversation),
        "usage": _usage(conversation),
    }


def _approvals(conversation: Conversation) -> list[dict[str, Any]]:
    found = Approval.objects.filter(conversation=conversation).order_by("id")
    return [
        {
            "id": approval.uid,
            "call": approval.call_uid,
            "tool": approval.tool,
            "state": approval.state,
            "asked_at": approval.asked_at.isoformat(),
            "input_sha256": approval.input_sha256,
            "allowed_input_sha256": approval.effective_sha256,
            "decisions": [
                {
                    "verdict": decision.verdict,
                    "scope": decision.scope,
                    "by": _person(decision.by),
                    "round": decision.round,
                }
                for decision in approval.decisions.select_related("by").order_by("id")
            ],
        }
        for approval in found
    ]


def _effects(entries: list[Entry]) -> list[dict[str, Any]]:
    """Calls that were begun and do more than read, by the ids under which the log keeps them."""
    calls: dict[str, Entry] = {}
    begun: dict[str, dict[str, Any]] = {}
    for entry in entries:
        event = entry.event
        if isinstance(event, ToolUse):
            calls[entry.uid] = entry
        elif isinstance(event, SpanToolStart) and event.effect != "read":
            call = calls.get(event.tool_use_id)
            begun[event.tool_use_id] = {
                "call": event.tool_use_id,
                "tool": call.event.name if call and isinstance(call.event, ToolUse) else "",
                "effect": event.effect,
                "started": entry.uid,
                "result": None,
                "outcome": None,
            }
        elif isinstance(event, ToolResult):
            effect = begun.get(str(answered_call(event)))
            if effect is not None:
                effect["result"] = entry.uid
                effect["outcome"] = getattr(event, "outcome", "ok")
    return list(begun.values())


def _files(conversation: Conversation) -> list[dict[str, Any]]:
    """Those of the workspace as they are when the receipt is made. A worker's are elsewhere."""
    if conversation.environment.has_workers:
        return []
    workspace = Workspace(workspace_for(conversation.uid))
    found = []
    for entry in sorted(workspace.walk(), key=lambda each: each.path):
        if entry.kind != "file":
            continue
        file: dict[str, Any] = {"path": entry.path, "size": entry.size, "sha256": None}
        if entry.size <= FILE_LIMIT:
            digest = hashlib.sha256()
            with workspace.open_for_read(entry.path) as source:
                while piece := source.read(PIECE):
                    digest.update(piece)
            file["sha256"] = digest.hexdigest()
        found.append(file)
    return found


def _usage(conversation: Conversation) -> list[dict[str, Any]]:
    rows = Usage.objects.filter(conversation=conversation).order_by("id")
    return [
        {
            "request": row.model_request_id,
            "purpose": row.purpose,
            "provider": row.provider,
            "model": row.model,
            **{name: getattr(row, name) for name in Usage.TOKENS},
            "cost": None if row.cost is None else f"{row.cost:f}",
        }
        for row in rows
    ]


def _person(user: User | None) -> dict[str, str] | None:
    return None if user is None else {"id": user.uid, "name": user.username}


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _digest(value: Any) -> str:
    return hashlib.sha256(canonical(value)).hexdigest()

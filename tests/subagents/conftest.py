"""What tests of subagents use: agents that play scripts, the lead's conversation with subagents on, and its
children found by what they were asked."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from accounts.models import User
from conversations.actions.messages import post_message
from conversations.models import Conversation
from harness.events import AgentToolResult
from harness.messages import ModelRequest
from providers.scripted import call
from subagents.models import Subagent
from tests.conversations.conftest import (
    Converse,
    converse,
    environment,
    make_agent,
    rested,
    until,
)
from tools_app.workspace import Workspace, workspace_for

__all__ = ["converse", "environment", "make_agent"]

Lead = Callable[..., Conversation]


def words_of(request: ModelRequest) -> str:
    """All that the request says to the model, whoever said it."""
    return str(request.messages)


def named_in(request: ModelRequest) -> str:
    """The id of the first subagent that the dialogue names."""
    found = re.search(r"sub_[0-9a-z]{26}", words_of(request))
    assert found is not None
    return found.group()


def asked(request: ModelRequest) -> str:
    """The first words of the dialogue: of a child, what it was asked."""
    return str(request.messages[0])


def scenes(lead: list[Any], **children: list[Any] | Any) -> Callable[[ModelRequest], Any]:
    """A script for a lead and its children, which all play the same agent: each child is known by a word of
    what it was asked."""
    left = {name: list(script) for name, script in children.items() if isinstance(script, list)}
    own = list(lead)

    def play(request: ModelRequest) -> Any:
        said = asked(request)
        for name, script in children.items():
            if name in said:
                answer = left[name].pop(0) if name in left else script
                break
        else:
            answer = own.pop(0)
        return answer(request) if callable(answer) else answer

    return play


def ask(prompt: str, **more: Any) -> Any:
    return call("subagent", description=f"Do {prompt}", prompt=prompt, **more)


@pytest.fixture
def lead(alice: User, converse: Converse) -> Lead:
    def begin(script: Any, *, files: dict[str, str] | None = None, **config: Any) -> Conversation:
        features = {"teams": True, **config.pop("features", {})}
        conversation, _ = converse(script, features=features, **config)
        for path, text in (files or {}).items():
            Workspace(workspace_for(conversation.uid)).write_bytes(path, text.encode())
        post_message(actor=alice, conversation=conversation, text="Begin.")
        return conversation

    return begin


def done(conversation: Conversation) -> Conversation:
    """Wait until its turn has come to its end: not until it rests for others."""
    until(lambda: _is_over(conversation))
    conversation.refresh_from_db()
    return conversation


def _is_over(conversation: Conversation) -> bool:
    conversation.refresh_from_db()
    return (
        conversation.status == "idle"
        and conversation.stop_reason not in {"", "waits_for_worker", "requires_action"}
        and not conversation.owes_run
        and not conversation.runs.filter(state="running").exists()
    )


def told(conversation: Conversation) -> list[Subagent]:
    """Its subagents, once each of them has been told of."""
    rows = Subagent.objects.filter(parent=conversation).select_related("child")
    until(lambda: rows.exists() and not rows.filter(told_at=None).exists())
    return list(rows)


def child_of(row: Subagent) -> Conversation:
    assert row.child is not None
    return row.child


def answers(conversation: Conversation) -> list[str]:
    """What the calls of a conversation were answered, in the order of the answers."""
    rows = conversation.events.filter(type="agent.tool_result").order_by("seq")
    values = (row.value for row in rows)
    return [str(value.content) for value in values if isinstance(value, AgentToolResult)]


def read(conversation: Conversation, path: str) -> str:
    return Workspace(workspace_for(conversation.uid)).read_bytes(path).decode()


__all__ += [
    "Lead",
    "answers",
    "ask",
    "child_of",
    "done",
    "lead",
    "named_in",
    "read",
    "rested",
    "scenes",
    "told",
    "until",
]

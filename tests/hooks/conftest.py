"""An organisation's hooks for tests: packages that bring them, and what came of asking."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from conversations.models import Conversation
from hooks import installed
from hooks.actions.hooks import save_hook
from hooks.models import Hook
from tests.conversations.conftest import converse, environment, make_agent

__all__ = ["converse", "environment", "make_agent"]

Install = Callable[..., None]
MakeHook = Callable[..., Hook]


class _EntryPoint:
    """Stands for one of an installed package."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.name = name
        self._function = function

    def load(self) -> Callable[..., Any]:
        return self._function


@pytest.fixture
def install(monkeypatch) -> Install:
    """Have a package installed that brings these hooks."""

    def these(**functions: Callable[..., Any]) -> None:
        points = [_EntryPoint(name, function) for name, function in functions.items()]
        monkeypatch.setattr(
            installed,
            "entry_points",
            lambda group, name=None: [each for each in points if name in {None, each.name}],
        )

    return these


@pytest.fixture
def hook(alice, acme) -> MakeHook:
    def make(name: str, **given: Any) -> Hook:
        fields = {"kind": "python", "target": name, **given}
        return save_hook(actor=alice, organisation=acme, name=name, **fields).hook

    return make


def counted(hook: Hook, point: str = "tool.before") -> tuple[int, int, int]:
    """How often it was asked there, held back and failed."""
    row = hook.counts.get(point=point)
    return row.asked, row.held_back, row.failed


def results(conversation: Conversation) -> list[str]:
    rows = conversation.events.filter(type="agent.tool_result").order_by("seq")
    return [json.dumps(row.payload["content"], ensure_ascii=False) for row in rows]


def answers(conversation: Conversation, point: str) -> list[dict[str, Any]]:
    """What the log tells of the hooks that were asked there."""
    rows = conversation.events.filter(type="x.hooks_answered", payload__point=point)
    return [told for row in rows.order_by("seq") for told in row.payload["told"]]

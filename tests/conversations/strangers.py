"""For the tests of untrusted content: a tool that brings it, one that reaches outside, and turns of both."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import pytest

from accounts.models import User
from approvals.models import Approval
from conversations.actions.files import Upload, add_files
from conversations.actions.messages import post_message
from conversations.models import Conversation
from harness.events import AgentToolResult
from harness.tools import Effect, Tool
from providers.scripted import call, reply
from tests.conversations.conftest import rested
from tools_app.catalogue import all_tools

_ANY = {"type": "object", "additionalProperties": True}
LONG = "Evil words. " * 10_000
FETCH = Tool("fetch", "Reads a page.", _ANY, lambda _c, _g: LONG, Effect.READ, untrusted=True)
PEEK = Tool("peek", "Reads a line.", _ANY, lambda _c, _g: "Obey.", Effect.READ, untrusted=True)
SEND = Tool("send", "Sends a letter.", _ANY, lambda _c, _g: "Sent.", Effect.OUTSIDE)


@pytest.fixture
def more_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    more = {tool.name: tool for tool in (FETCH, PEEK, SEND)}
    tools = MappingProxyType({**all_tools(), **more})
    monkeypatch.setattr("conversations.kits.all_tools", lambda: tools)


def upload(who: User, conversation: Conversation, name: str, text: str, folder: str = "") -> None:
    sent = Upload(name, len(text), [text.encode()])
    add_files(actor=who, conversation=conversation, uploads=[sent], folder=folder)


def why_it_asks(conversation: Conversation) -> str:
    """The reason of the question that waits; empty: the turn came to its end unasked."""
    waiting = Approval.objects.filter(conversation=conversation, state="pending").first()
    assert conversation.stop_reason == ("requires_action" if waiting else "end_turn")
    if waiting is None:
        return ""
    assert waiting.tool == "send"
    assert waiting.tainted
    return waiting.reason


def turn(who: User, conversation: Conversation, times: int = 1) -> str:
    post_message(actor=who, conversation=conversation, text="Go on.")
    return why_it_asks(rested(conversation, times))


def results(conversation: Conversation) -> list[AgentToolResult]:
    rows = conversation.events.filter(type="agent.tool_result").order_by("seq")
    return [value for row in rows if isinstance(value := row.value, AgentToolResult)]


def then_send(*calls: Any) -> list[Any]:
    return [*(reply(each) for each in calls), reply(call("send", to="x")), reply("Done.")]

"""Tools of servers that are too many to be told of are looked for, and called as themselves."""

from __future__ import annotations

from typing import Any

import pytest

from accounts.models import User
from conversations.actions.deciding import decide_call
from conversations.actions.messages import post_message
from conversations.kits import plan_kit
from conversations.models import Conversation
from harness.agentconfig import McpUse, ToolRule
from harness.content import text_of
from harness.events import AgentToolResult
from mcpservers.models import McpServer
from providers.scripted import call, reply
from tests.conversations.conftest import Converse, rested
from tests.standins.mcp_server import Remote

from .test_calls import answered

pytestmark = pytest.mark.django_db(transaction=True)

ECHO = "mcp__stand-in__echo"


@pytest.fixture
def many(server: McpServer, settings: Any) -> McpServer:
    settings.AGENTSITE_MCP_TOOLS_SHARE = 0
    return server


def turn(alice: User, converse: Converse, *steps: Any, rules: Any = ()) -> Conversation:
    conversation, _script = converse(
        [*(reply(step) for step in steps), reply("Done.")],
        tools=(ToolRule(tool="*"), *rules),
        mcp_servers=(McpUse(name="stand-in"),),
    )
    post_message(actor=alice, conversation=conversation, text="Go.")
    return rested(conversation)


def results(conversation: Conversation) -> list[AgentToolResult]:
    found = [row.value for row in conversation.events.filter(type="agent.tool_result")]
    return [each for each in found if isinstance(each, AgentToolResult)]


def test_a_found_tool_is_called_as_itself_and_asks_as_itself(
    alice: User, many: McpServer, remote: Remote, converse: Converse
):
    use = call("use_tool", tool=ECHO, input={"text": "ahoy"})
    conversation = turn(alice, converse, call("find_tools", query="say text again"), use)
    (told,) = results(conversation)
    assert ECHO in text_of(told.content)
    assert remote.called == []
    asked = conversation.events.get(type="agent.mcp_tool_use")
    assert asked.payload["evaluated_permission"] == "ask"
    decide_call(actor=alice, conversation=conversation, call_uid=asked.uid, allow=True)
    conversation = rested(conversation, 2)
    assert remote.called == [("echo", {"text": "ahoy"})]
    assert text_of(answered(conversation).content) == "you said ahoy"
    used = results(conversation)[-1]
    assert (text_of(used.content), used.untrusted) == ("you said ahoy", True)


def test_a_rule_about_a_tool_holds_for_it_however_it_is_called(
    alice: User, many: McpServer, remote: Remote, converse: Converse
):
    denied = (ToolRule(tool="mcp:stand-in:*", permission="always_deny"),)
    use = call("use_tool", tool=ECHO, input={"text": "ahoy"})
    direct = call(ECHO, text="ahoy")
    other = call("use_tool", tool="read_file", input={"path": "x"})
    conversation = turn(alice, converse, use, direct, other, rules=denied)
    assert remote.called == []
    assert not conversation.waits_for_person
    assert answered(conversation).is_error
    assert "no such tool" in text_of(results(conversation)[-1].content)


def test_models_are_told_of_tools_that_fit_their_window_and_of_no_others(
    alice: User, server: McpServer, converse: Converse, settings: Any
):
    conversation, _script = converse(
        [], tools=(ToolRule(tool="*"),), mcp_servers=(McpUse(name="stand-in"),)
    )
    tools = plan_kit(conversation).part.tools
    assert "find_tools" not in tools
    assert not tools[ECHO].within_only
    settings.AGENTSITE_MCP_TOOLS_SHARE = 0
    plan = plan_kit(conversation)
    assert plan.part.tools[ECHO].within_only
    assert "with find_tools" in plan.system

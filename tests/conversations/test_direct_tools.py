"""Tools that answer without a model and without a key, for those they are meant for."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from accounts.models import User
from conversations.actions.direct import direct_tools, use_tool
from harness.agentconfig import ToolRule
from harness.content import text_of
from harness.errors import Forbidden, Invalid, NotFound
from harness.events import TableDisplay
from harness.tools import Effect
from terminal.local import find_person
from tests.conversations.conftest import Converse
from tools_app.workspace import Workspace, workspace_for

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def conversation(converse: Converse):
    conversation, _ = converse([])
    workspace = Workspace(workspace_for(conversation.uid))
    workspace.write_bytes("src/a.py", b"one\ntwo\n")
    workspace.write_bytes("src/b.py", b"three")
    workspace.write_bytes("notes.md", b"# Hi\n")
    workspace.write_bytes("blob.bin", b"\0\1\2\3")
    return conversation


def run(*args: str) -> str:
    out = StringIO()
    call_command("tool", *args, stdout=out)
    return out.getvalue().strip()


def test_the_calculator_answers_without_a_model_or_a_key(alice: User):
    outcome = use_tool(actor=alice, name="calculator", arguments={"expression": "0.1 + 0.2"})
    assert text_of(outcome.content) == "0.1 + 0.2 = 0.3"
    outcome = use_tool(actor=alice, name="calculator", arguments={"expression": "10 / 3"})
    assert text_of(outcome.content) == "10 / 3 ≈ 3.333333333333333333333333333"


def test_a_huge_power_is_refused_in_words(alice: User):
    outcome = use_tool(actor=alice, name="calculator", arguments={"expression": "9**9**9**9"})
    assert outcome.is_error
    assert "more than 1,233 digits" in text_of(outcome.content)


def test_the_metrics_are_those_of_the_conversations_files(alice: User, conversation):
    outcome = use_tool(
        actor=alice, name="workspace_metrics", arguments={}, conversation=conversation
    )
    assert isinstance(outcome.display, TableDisplay)
    assert outcome.display.columns == ("Kind", "Files", "Lines", "Bytes")
    assert outcome.display.rows == (
        (".py", "2", "3", "13"),
        (".md", "1", "1", "5"),
        (".bin", "1", "0", "4"),
        ("all", "4", "4", "22"),
    )
    below = use_tool(
        actor=alice,
        name="workspace_metrics",
        arguments={"path": "src"},
        conversation=conversation,
    )
    assert below.display.rows[-1] == ("all", "2", "3", "13")


def test_metrics_without_a_conversation_are_those_of_nothing(alice: User):
    outcome = use_tool(actor=alice, name="workspace_metrics", arguments={})
    assert outcome.display.rows == (("all", "0", "0", "0"),)


def test_somebody_elses_files_are_not_counted(conversation, bob: User, mallory: User):
    for stranger in (bob, mallory):
        with pytest.raises(NotFound):
            use_tool(
                actor=stranger,
                name="workspace_metrics",
                arguments={},
                conversation=conversation,
            )


def test_only_tools_that_read_can_be_called_so(alice: User, conversation):
    assert {tool.name for tool in direct_tools()} == {"calculator", "workspace_metrics"}
    assert {tool.effect for tool in direct_tools()} == {Effect.READ}
    for name in ("bash", "write_file", "web_fetch", "read_file", "ask_user", "nothing"):
        with pytest.raises(NotFound):
            use_tool(actor=alice, name=name, arguments={}, conversation=conversation)


def test_wrong_input_is_refused_by_its_field(alice: User):
    for wrong in ({}, {"expression": 7}, {"expression": "1", "more": 1}):
        with pytest.raises(Invalid) as refused:
            use_tool(actor=alice, name="calculator", arguments=wrong)
        assert refused.value.field == "arguments"


def test_a_rule_of_the_conversations_agent_holds_for_people_too(alice: User, converse: Converse):
    """Judged where it is executed, for every caller."""
    rules = (ToolRule(tool="*"), ToolRule(tool="workspace_*", permission="always_deny"))
    denied, _ = converse([], tools=rules)
    with pytest.raises(Forbidden):
        use_tool(actor=alice, name="workspace_metrics", arguments={}, conversation=denied)


def test_the_command_line_calls_them(alice: User, conversation):
    assert run("calculator", "2 ** 10") == "2 ** 10 = 1024"
    assert run("calculator", '{"expression": "1/8"}') == "1/8 = 0.125"
    assert "all | 4 | 4 | 22" in run("workspace_metrics", "--conversation", conversation.uid)
    assert "calculator: Work out" in run()


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("calculator", "1/0"), "divides by zero"),
        (("calculator", "{"), "not JSON"),
        (("calculator", "{}"), "expression"),
        (("bash", "ls"), "not JSON|no tool"),
        (("workspace_metrics", "[1]"), "one JSON object"),
        (("workspace_metrics", "{}", "--conversation", "sesn_none"), "no such conversation"),
        (("calculator", "1", "--user", "nobody"), "no active person"),
    ],
)
def test_the_command_line_refuses_in_words(alice: User, args: tuple[str, ...], words: str):
    with pytest.raises(CommandError, match=words):
        run(*args)


def test_an_address_names_whose_it_is_whatever_others_call_themselves(alice, bob):
    bob.username = alice.email
    bob.save()
    assert find_person(alice.email) == alice
    assert find_person(bob.email) == bob

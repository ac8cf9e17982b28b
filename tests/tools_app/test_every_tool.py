"""What holds for every tool of the catalogue, whoever brings it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.agentconfig import Features, ToolRule
from harness.content import text_of
from harness.policy import Policy, Verdict
from harness.tools import Effect, ToolContext, perform
from tools_app.catalogue import all_tools

NAMES = sorted(all_tools())
WRONG: tuple[dict[str, Any], ...] = (
    {},
    {"nothing": "of the sort"},
    {"path": "../../etc/passwd"},
    {"path": "\0", "content": "\0"},
    {"path": 7, "command": None, "url": [], "questions": {}, "expression": {}},
    {"command": "", "url": "", "expression": "", "query": ""},
)


def names_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("arguments", WRONG, ids=range(len(WRONG)))
async def test_no_input_makes_a_call_raise(name: str, arguments: dict[str, Any], tmp_path: Path):
    """Whatever is asked, there is an answer, and a wrong one says what is wrong."""
    outcome = await perform(all_tools()[name], ToolContext("sevt_1", tmp_path), arguments)
    assert text_of(outcome.content).strip()
    assert names_in(tmp_path) == []


SAFE = (
    *("think", "read_file", "list_files", "glob", "grep", "outline", "find_references"),
    *("calculator", "workspace_metrics", "ask_user"),
)


def test_safe_tools_run_at_once_and_all_others_ask():
    """With approvals switched on."""
    policy = Policy((ToolRule(tool="*"),))
    features = Features(approval=True, teams=True)
    verdicts = {
        name: policy.judge(tool, name, features).verdict
        for name, tool in all_tools().items()
        if tool.feature != "plan_mode"
    }
    for name in SAFE:
        assert verdicts[name] is Verdict.ALLOW, name
    for name, verdict in verdicts.items():
        if all_tools()[name].effect is not Effect.READ:
            assert verdict is Verdict.ASK, name


def test_a_tool_that_destroys_or_reaches_outside_does_not_call_itself_read_only():
    for tool in all_tools().values():
        if tool.destructive or tool.untrusted:
            assert tool.effect is not Effect.READ, tool.name
        if tool.direct:
            assert tool.effect is Effect.READ, tool.name


@pytest.mark.parametrize("name", NAMES)
def test_a_card_survives_any_input(name: str):
    """The line on a card is made of what the model sent, before anybody checked it."""
    tool = all_tools()[name]
    for arguments in WRONG:
        try:
            line = tool.intent(arguments)
        except (KeyError, IndexError, TypeError, AttributeError):
            continue  # whoever draws a card is guarded against these
        assert isinstance(line, str)

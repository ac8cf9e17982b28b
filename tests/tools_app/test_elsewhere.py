"""The tools of environments with workers: our names and arguments, told in the workers' own."""

from __future__ import annotations

import jsonschema
import pytest
from anthropic.types import beta as types
from pydantic import BaseModel

from harness.tools import Effect
from tools_app.catalogue import all_tools
from tools_app.elsewhere import TOOLS, edition_of, tools_elsewhere

GIVEN = {
    "bash": {"command": "ls", "timeout": 2.5},
    "read_file": {"path": "a.txt", "start_line": 3},
    "write_file": {"path": "a.txt", "content": "x"},
    "edit_file": {"path": "a.txt", "old_text": "x", "new_text": "y"},
    "glob": {"pattern": "*.md"},
    "grep": {"pattern": "x", "path": "src"},
}
TOLD = {
    "bash": ("bash", {"command": "ls", "timeout_ms": 2500}),
    "read_file": ("read", {"file_path": "a.txt", "view_range": [3, -1]}),
    "write_file": ("write", {"file_path": "a.txt", "content": "x"}),
    "edit_file": ("edit", {"file_path": "a.txt", "old_string": "x", "new_string": "y"}),
    "glob": ("glob", {"pattern": "*.md"}),
    "grep": ("grep", {"pattern": "x", "path": "src"}),
}


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_a_call_is_told_in_the_words_that_the_public_protocol_has_for_it(tool):
    jsonschema.validate(GIVEN[tool.name], tool.input_schema)
    assert tool.handed_out is not None
    name, told = tool.handed_out(GIVEN[tool.name])
    assert (name, told) == TOLD[tool.name]
    shape: type[BaseModel] = getattr(
        types, f"BetaManagedAgentsAgentToolset20260401{name.title()}Input"
    )
    assert set(told) <= set(shape.model_fields)
    shape.model_validate(told)


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_a_rule_about_a_tool_here_means_the_same_argument_elsewhere(tool):
    here = all_tools()[tool.name].input_schema["properties"]
    assert set(tool.input_schema["properties"]) <= set(here)


def test_nothing_that_works_on_this_servers_disk_is_left():
    left = tools_elsewhere(all_tools())
    for name, tool in left.items():
        if tool.handed_out is None:
            assert tool.effect is not Effect.WORKSPACE, name
            assert "path" not in tool.input_schema.get("properties", {}), name
    assert {"think", "ask_user", "web_fetch"} <= set(left)
    assert not {"background_run", "list_files", "shared_files", "command_history"} & set(left)
    assert left["bash"] is edition_of("bash")
    assert left["bash"].effect is Effect.OUTSIDE

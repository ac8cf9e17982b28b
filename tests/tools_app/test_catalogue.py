"""The catalogue holds every app's tools once, each fit to be offered to a model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jsonschema
import pytest
from django.core.exceptions import ImproperlyConfigured

from harness.errors import InvalidToolInput
from harness.tools import Effect, Tool, check_input
from tools_app.builtin.think import TOOLS as THINK
from tools_app.catalogue import all_tools, collected, find

NAMES = {
    "read_file", "write_file", "edit_file", "list_files", "grep", "glob", "outline",
    "find_references", "think", "todo_write", "todo_add", "todo_complete", "todo_list",
    "present_plan",
}  # fmt: skip

EXAMPLES: dict[str, dict[str, Any]] = {
    "read_file": {"path": "a"},
    "write_file": {"path": "a", "content": ""},
    "edit_file": {"path": "a", "old_text": "a", "new_text": ""},
    "list_files": {},
    "grep": {"pattern": "a"},
    "glob": {"pattern": "a"},
    "outline": {"path": "a"},
    "find_references": {"symbol": "a"},
    "think": {"thought": "a"},
    "todo_write": {"todos": []},
    "todo_add": {"content": "a", "active_form": "b"},
    "todo_complete": {"content": "a"},
    "todo_list": {},
    "present_plan": {"plan": "# First\nthen"},
}


def test_the_built_in_tools_are_there():
    assert set(all_tools()) >= NAMES


def test_only_the_tools_that_write_files_are_more_than_reading():
    writing = {name for name in NAMES if all_tools()[name].effect is not Effect.READ}
    assert writing == {"write_file", "edit_file"}
    assert all(all_tools()[name].effect is Effect.WORKSPACE for name in writing)


def test_an_unknown_tool_is_none():
    assert find("no_such_tool") is None


def test_a_doubled_name_stops_the_start_and_names_both_owners():
    with pytest.raises(ImproperlyConfigured) as caught:
        collected([("first.agent_tools", THINK), ("second.agent_tools", THINK)])
    for word in ("think", "first.agent_tools", "second.agent_tools"):
        assert word in str(caught.value)


@pytest.mark.parametrize("name", ["", "two words", "a.b", "x" * 65, "é"])
def test_a_name_that_no_model_service_takes_stops_the_start(name):
    with pytest.raises(ImproperlyConfigured):
        collected([("app.agent_tools", [replace(THINK[0], name=name)])])


def test_a_schema_that_is_none_stops_the_start():
    with pytest.raises(ImproperlyConfigured):
        collected([("app.agent_tools", [replace(THINK[0], input_schema={"type": "nothing"})])])


def built_in() -> list[Tool]:
    return [all_tools()[name] for name in sorted(NAMES)]


@pytest.mark.parametrize("tool", built_in(), ids=lambda tool: tool.name)
def test_a_built_in_tool_takes_its_example_and_refuses_what_it_does_not_know(tool):
    jsonschema.Draft202012Validator.check_schema(tool.input_schema)
    check_input(tool, EXAMPLES[tool.name])
    with pytest.raises(InvalidToolInput):
        check_input(tool, {**EXAMPLES[tool.name], "surprise": 1})
    for required in tool.input_schema.get("required", []):
        partial = {name: value for name, value in EXAMPLES[tool.name].items() if name != required}
        with pytest.raises(InvalidToolInput):
            check_input(tool, partial)


@pytest.mark.parametrize("tool", built_in(), ids=lambda tool: tool.name)
def test_a_card_can_say_what_any_valid_call_is_about(tool):
    assert isinstance(tool.intent(EXAMPLES[tool.name]), str)
    assert "\n" not in tool.intent(EXAMPLES[tool.name])

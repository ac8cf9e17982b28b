"""Schemas that strangers wrote are refused with words, or checked in bounded time, off the event loop."""

from __future__ import annotations

import asyncio
import re
import time
from typing import Any

import pytest
from pydantic import ValidationError

from harness.agentconfig import STORED, AgentConfig, CustomTool
from harness.content import text_of
from harness.errors import InvalidToolInput
from harness.events import AgentCustomToolUse, AgentToolResult
from harness.schemachecks import Checker, TooCostly
from harness.schemas import Unsound, require_sound
from harness.tools import Effect, Tool, check_input_aside
from providers.scripted import call, reply
from tests.harness.bench import Bench, said, scripted
from tests.heartbeat import MOST_SECONDS, longest_stall
from tests.hostile import DEAR_SCHEMAS, DEAR_VALUES, OBJECT, UNSOUND_SCHEMAS

A_WHILE = 8.0
"""Seconds of this thread's own work; unbounded, the cases take minutes to centuries."""


def tool_with(schema: dict[str, Any]) -> Tool:
    return Tool("given", "d", schema, lambda _context, _given: "ran", Effect.READ)


@pytest.mark.parametrize("name", UNSOUND_SCHEMAS)
def test_an_unsound_schema_is_refused_naming_the_place_and_a_remedy(name: str) -> None:
    began = time.thread_time()
    with pytest.raises(ValidationError) as refused:
        CustomTool(name="given", description="d", input_schema=UNSOUND_SCHEMAS[name])
    assert time.thread_time() - began < 1
    (fault,) = refused.value.errors()
    assert fault["loc"] == ("input_schema",)
    assert re.search("#|levels deep", fault["msg"])
    assert re.search(r"[;,] [a-z]", fault["msg"]), "what to do about it"


@pytest.mark.parametrize("name", UNSOUND_SCHEMAS)
async def test_an_unsound_schema_that_was_stored_before_does_no_harm(name: str) -> None:
    stored = AgentConfig.model_validate(
        {
            "custom_tools": [
                {"name": "given", "description": "d", "input_schema": UNSOUND_SCHEMAS[name]}
            ]
        },
        context=STORED,
    )
    tool = tool_with(stored.custom_tools[0].input_schema)

    async def ask() -> None:
        for value in DEAR_VALUES.values():
            try:
                await check_input_aside(tool, value, asyncio.to_thread)
            except InvalidToolInput as refusal:
                assert refusal.message  # noqa: PT017

    began = time.process_time()
    assert await longest_stall(ask) <= MOST_SECONDS
    assert time.process_time() - began < A_WHILE * len(DEAR_VALUES)


@pytest.mark.parametrize("name", DEAR_SCHEMAS)
async def test_no_sound_schema_stops_the_loop_whatever_it_is_asked_about(name: str) -> None:
    require_sound(DEAR_SCHEMAS[name])
    for value in DEAR_VALUES.values():
        tool = tool_with(DEAR_SCHEMAS[name])

        async def ask(tool: Tool = tool, value: dict[str, Any] = value) -> None:
            try:
                await check_input_aside(tool, value, asyncio.to_thread)
            except InvalidToolInput as refusal:
                assert refusal.message  # noqa: PT017

        began = time.process_time()
        assert await longest_stall(ask) <= MOST_SECONDS
        assert time.process_time() - began < A_WHILE


@pytest.mark.parametrize(
    ("schema", "value", "fault"),
    [
        ({"properties": {"a": {"pattern": "^(a+)+$"}}}, {"a": "aaa!"}, "a: "),
        ({"properties": {"a": {"pattern": "^(a+)+$"}}}, {"a": "aaa"}, ""),
        ({"properties": {"a": {"pattern": r"^\u00e9$"}}}, {"a": "é"}, ""),
        ({"properties": {"a": {"pattern": r"^\u00e9$"}}}, {"a": "e"}, "a: "),
        ({"properties": {"a": {"pattern": r"\\u0041"}}}, {"a": r"\u0041"}, ""),
        ({"patternProperties": {"^x-": {"type": "string"}}}, {"x-a": 1}, "x-a: "),
        ({"patternProperties": {"^x-": {}}, "additionalProperties": False}, {"x-a": 1}, ""),
        ({"patternProperties": {"^x-": {}}, "additionalProperties": False}, {"y": 1}, "input: "),
        ({"additionalProperties": {"type": "string"}}, {"y": 1}, "y: "),
        ({"properties": {"a": {"multipleOf": 0.1}}}, {"a": 10**4_000}, "a: "),
        ({"properties": {"a": {"multipleOf": 0.5}}}, {"a": 10**4_000}, ""),
        ({"properties": {"a": {"multipleOf": 10**400}}}, {"a": 0.5}, "a: "),
        ({"properties": {"a": {"multipleOf": 3}}}, {"a": True}, ""),
        ({"properties": {"a": {"uniqueItems": True}}}, {"a": [1, "1", True, [1]]}, ""),
        ({"properties": {"a": {"uniqueItems": True}}}, {"a": [1, 1.0]}, "a: "),
        ({"properties": {"a": {"uniqueItems": True}}}, {"a": [{"x": 1}, {"x": 1}]}, "a: "),
        ({"properties": {"a": {"enum": [[1], {"b": 2}]}}}, {"a": {"b": 2}}, ""),
        ({"properties": {"a": {"const": 1}}}, {"a": 2}, "a: "),
        ({"properties": {"a": {}}, "unevaluatedProperties": False}, {"a": 1}, ""),
        ({"properties": {"a": {}}, "unevaluatedProperties": False}, {"b": 1}, "input: "),
        ({"$defs": {"n": {"properties": {"n": {"$ref": "#/$defs/n"}}, "required": ["v"]}},
          "properties": {"n": {"$ref": "#/$defs/n"}}}, {"n": {"v": 1, "n": {}}}, "n.n: "),
        ({"properties": {"a/b~c": {"type": "integer"}, "d": {"$ref": "#/properties/a~1b~0c"}}},
         {"d": "x"}, "d: "),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "required": ["a"]}, {}, "input: "),
        ({"properties": {"$schema": {"type": "string"}}}, {"$schema": 5}, "$schema: "),
        ({"properties": {"a": {"const": {"$schema": "x"}}}}, {"a": {"$schema": "x"}}, ""),
    ],
)  # fmt: skip
def test_what_a_schema_says_holds(schema: dict[str, Any], value: dict[str, Any], fault: str):
    schema = {**OBJECT, **schema}
    require_sound(schema)
    found = Checker(schema).faults(value)
    assert bool(found) is bool(fault), found
    assert not fault or found[0].startswith(fault)


def test_a_filter_that_refers_to_itself_below_is_taken() -> None:
    nodes = [
        {
            **OBJECT,
            "properties": {
                "op": {"const": op},
                "of": {"items": {"$ref": "#/$defs/f"}},
            },
        }
        for op in ("and", "or")
    ]
    schema = {**OBJECT, "$defs": {"f": {"oneOf": [*nodes, {"type": "string"}]}},
              "properties": {"f": {"$ref": "#/$defs/f"}}}  # fmt: skip
    require_sound(schema)
    value: Any = "x"
    for op in ("and", "or", "and", "or", "and"):
        value = {"op": op, "of": [value, "y"]}
    assert Checker(schema).faults({"f": value}) == []
    assert Checker(schema).faults({"f": {"op": "xor", "of": [1]}})


def test_a_message_shows_no_more_than_a_beginning_of_what_was_sent() -> None:
    (fault,) = Checker({"properties": {"a": {"type": "integer"}}}).faults({"a": "x" * 500_000})
    assert len(fault) < 1_100


def test_what_costs_more_than_is_granted_is_told_as_such() -> None:
    with pytest.raises(TooCostly):
        Checker({"items": {"type": "integer"}}).faults([1] * 1_000, steps=100)


def test_a_stored_schema_that_was_none_is_told_as_such() -> None:
    with pytest.raises(Unsound):
        Checker({"properties": 5}).faults({"a": 1})


async def test_a_model_is_told_why_its_call_of_a_tool_with_an_unsound_schema_reaches_nobody():
    schema = UNSOUND_SCHEMAS["itself"]
    stored = CustomTool.model_validate(
        {"name": "given", "description": "d", "input_schema": schema}, context=STORED
    )
    bench = Bench(
        scripted(reply(call("given", a=1)), reply("Then not.")), config={"custom_tools": (stored,)}
    )
    await bench.run(said("Go"))
    (refused,) = bench.events(AgentToolResult)
    assert refused.is_error
    assert "refers back to itself" in text_of(refused.content)
    assert bench.events(AgentCustomToolUse) != []

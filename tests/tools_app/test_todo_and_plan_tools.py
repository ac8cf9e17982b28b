"""The todo list lives in the log, and presenting a plan ends plan mode."""

from __future__ import annotations

from typing import Any

import pytest

from harness.content import text_of
from harness.events import AgentToolResult, SessionUpdated, Todo, TodosUpdated, dump, load
from harness.tools import Effect, Tool
from providers.scripted import call as asked
from providers.scripted import reply
from tests.harness.bench import Bench, scripted
from tests.harness.bench import said as said_by_a_person
from tools_app.builtin.todos import TOOLS as TODO_TOOLS
from tools_app.catalogue import find


def said(outcome) -> str:
    return text_of(outcome.content)


def todo(content: str, status: str = "pending") -> dict[str, Any]:
    return {"content": content, "active_form": f"{content}ing", "status": status}


def todos_of(outcome) -> tuple[Todo, ...]:
    (event,) = outcome.events
    assert isinstance(event, TodosUpdated)
    return event.todos


async def test_a_list_is_written_and_told_with_its_progress(call):
    outcome = await call(
        "todo_write",
        todos=[todo("Read", "completed"), todo("Test", "in_progress"), todo("Build")],
    )
    assert said(outcome) == "[x] Read\n[>] Test (Testing)\n[ ] Build\n(1/3 done)"
    assert [entry.status for entry in todos_of(outcome)] == ["completed", "in_progress", "pending"]


async def test_a_list_survives_as_an_event_of_the_log(call):
    """A list kept by the connection would be gone after a reconnect."""
    outcome = await call("todo_write", todos=[todo("Read")])
    (stored,) = [load(dump(event)) for event in outcome.events]
    assert isinstance(stored, TodosUpdated)
    assert said(await call("todo_list", current=stored.todos)) == "[ ] Read\n(0/1 done)"


async def test_a_list_holds_twenty_entries_and_not_one_more(call):
    full = [todo(str(n)) for n in range(20)]
    assert len(todos_of(await call("todo_write", todos=full))) == 20
    assert (await call("todo_write", todos=[*full, todo("one more")])).is_error
    twenty = tuple(Todo.model_validate(entry) for entry in full)
    last = await call("todo_add", current=twenty[:19], content="Last", active_form="Lasting")
    assert len(todos_of(last)) == 20
    over = await call("todo_add", current=twenty, content="Over", active_form="Overing")
    assert over.is_error
    assert over.events == ()


async def test_at_most_one_entry_is_in_progress(call):
    two = [todo("a", "in_progress"), todo("b", "in_progress")]
    outcome = await call("todo_write", todos=two)
    assert outcome.is_error
    assert "one todo may be in progress" in said(outcome)
    assert outcome.events == ()


@pytest.mark.parametrize(
    "entry",
    [
        {"content": "a", "status": "pending"},
        {"content": "", "active_form": "b", "status": "pending"},
        {"content": "  ", "active_form": "b", "status": "pending"},
        {"content": "a", "active_form": "b", "status": "done"},
        {"content": "a", "active_form": "b", "status": "pending", "extra": 1},
    ],
)
async def test_an_incomplete_entry_is_refused(call, entry):
    outcome = await call("todo_write", todos=[entry])
    assert outcome.is_error
    assert outcome.events == ()


async def test_the_first_open_entry_of_a_content_is_completed(call):
    todos = tuple(
        Todo(content="Test", active_form="Testing", status=status)
        for status in ("completed", "pending", "pending")
    )
    outcome = await call("todo_complete", current=todos, content="Test")
    assert [entry.status for entry in todos_of(outcome)] == ["completed", "completed", "pending"]
    missing = await call("todo_complete", current=todos, content="test")
    assert missing.is_error
    assert "[ ] Test" in said(missing)


async def test_todos_added_side_by_side_in_one_step_are_all_kept():
    bench = Bench(
        scripted(
            reply(*(asked("todo_add", content=f"{n}", active_form=f"{n}ing") for n in range(5))),
            reply(asked("todo_complete", content="1"), asked("todo_complete", content="3")),
            reply("Done."),
        ),
        TODO_TOOLS,
    )
    await bench.run(said_by_a_person("Go."))
    last = bench.events(TodosUpdated)[-1]
    assert [(entry.content, entry.status) for entry in last.todos] == [
        ("0", "pending"),
        ("1", "completed"),
        ("2", "pending"),
        ("3", "completed"),
        ("4", "pending"),
    ]


async def test_what_was_written_after_strangers_words_is_marked_where_the_list_is_shown_again():
    peek = Tool(
        "peek", "Reads.", {"type": "object"}, lambda _c, _g: "x", Effect.READ, untrusted=True
    )
    bench = Bench(
        scripted(
            reply(asked("peek")),
            reply(asked("todo_write", todos=[todo("Send it")])),
            reply("Written."),
            reply(asked("todo_complete", content="Send")),
            reply(asked("todo_add", content="Mine", active_form="Mining")),
            reply("Added."),
            reply(asked("todo_list")),
            reply("Seen."),
            reply(asked("todo_write", todos=[todo("Mine")]), asked("todo_list")),
            reply("Mine alone."),
        ),
        [peek, *TODO_TOOLS],
    )
    for _turn in range(4):
        await bench.run(said_by_a_person("Go on."))
    assert [event.untrusted_by for event in bench.events(TodosUpdated)] == ["peek", "peek", ""]
    peeked, written, *again, anew, mine = bench.events(AgentToolResult)
    assert (peeked.untrusted, written.untrusted) == (True, False)
    assert [each.untrusted_by for each in again] == ["peek", "peek", "peek"]
    assert again[0].is_error
    assert not anew.untrusted
    assert not mine.untrusted


async def test_an_empty_list_says_so(call):
    assert said(await call("todo_list")) == "The todo list is empty."
    assert todos_of(await call("todo_write", todos=[])) == ()


async def test_thinking_answers_and_changes_nothing(root, call):
    outcome = await call("think", thought="Is this right?")
    assert said(outcome)
    assert outcome.events == ()
    assert list(root.iterdir()) == []


async def test_an_approved_plan_ends_plan_mode(call):
    outcome = await call("present_plan", plan_mode=True, plan="# Build it\n1. Write\n2. Test")
    assert outcome.events == (SessionUpdated(features={"plan_mode": False}),)
    assert "approved" in said(outcome)


async def test_a_plan_outside_plan_mode_changes_nothing(call):
    outcome = await call("present_plan", plan_mode=False, plan="# Build it")
    assert outcome.events == ()
    assert not outcome.is_error


def test_presenting_a_plan_is_possible_in_plan_mode_and_always_asks():
    tool = find("present_plan")
    assert tool is not None
    assert tool.effect is Effect.READ
    assert tool.always_asks
    assert tool.intent({"plan": "## Build it\nthen"}) == "Build it"

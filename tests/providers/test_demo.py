"""The demo agent: rules only, and it says so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jsonschema
import pytest

from harness.content import Text
from harness.messages import Message, ModelRequest, Part, ToolAnswer, ToolCall, ToolSpec
from providers.demo import answer
from providers.demo_files import files_for
from providers.scripted import Call, Reply, Say
from tools_app.builtin import ask, reckoning


def schema(*required: str, **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


TEXT = {"type": "string", "minLength": 1}
TODO = schema(
    "content",
    "active_form",
    "status",
    content=TEXT,
    active_form=TEXT,
    status={"enum": ["pending", "in_progress", "completed"]},
)
TOOLS = tuple(
    ToolSpec(name, name, given)
    for name, given in {
        "todo_write": schema("todos", todos={"type": "array", "items": TODO}),
        "write_file": schema("path", "content", path=TEXT, content={"type": "string"}),
        "edit_file": schema(
            "path", "old_text", "new_text", path=TEXT, old_text=TEXT, new_text={"type": "string"}
        ),
        "list_files": schema(path=TEXT),
        "read_file": schema("path", path=TEXT),
        "grep": schema("pattern", pattern=TEXT, literal={"type": "boolean"}),
    }.items()
)

WITH_QUESTIONS = (
    *TOOLS,
    *(
        ToolSpec(tool.name, tool.description, tool.input_schema)
        for tool in (*ask.TOOLS, *reckoning.TOOLS)
    ),
)

Answering = Callable[[Call], tuple[str, bool]]


def asking(words: str, tools: tuple[ToolSpec, ...] = TOOLS) -> ModelRequest:
    return ModelRequest("demo", "", (Message("user", (Text(text=words),)),), tools)


def said(given: Reply) -> str:
    return "".join(part.text for part in given.parts if isinstance(part, Say))


def worked(call: Call) -> tuple[str, bool]:
    return f"{call.name} done", False


def carry_on(request: ModelRequest, answering: Answering = worked) -> tuple[list[Call], str]:
    """Do what the agent asks for until it asks no more: its calls, and its last words."""
    specs = {tool.name: tool.input_schema for tool in request.tools}
    calls: list[Call] = []
    for _ in range(12):
        given = answer(request)
        now = [part for part in given.parts if isinstance(part, Call)]
        if not now:
            return calls, said(given)
        parts: list[Part] = []
        answers: list[Part] = []
        for call in now:
            jsonschema.validate(dict(call.input), dict(specs[call.name]))
            calls.append(call)
            number = f"call_{len(calls)}"
            parts.append(ToolCall(number, call.name, call.input))
            text, is_error = answering(call)
            answers.append(ToolAnswer(number, (Text(text=text),), is_error))
        more = (Message("assistant", tuple(parts)), Message("user", tuple(answers)))
        request = replace(request, messages=request.messages + more)
    raise AssertionError("the agent never comes to an end")


@pytest.mark.parametrize("words", ["Hello", "help", "What can you do?", "Sing a song"])
def test_it_says_that_it_is_no_language_model_and_how_to_add_a_key(words):
    text = said(answer(asking(words)))
    assert "not a language model" in text
    assert "Settings → Provider keys" in text
    assert "ANTHROPIC_API_KEY" in text


def test_it_plans_writes_two_files_changes_one_and_sums_up():
    calls, last = carry_on(asking("Plan and write two files for a reading list"))
    assert [call.name for call in calls] == [
        "todo_write",
        "write_file",
        "write_file",
        "edit_file",
        "todo_write",
        "todo_write",
    ]
    main, second = calls[1].input, calls[2].input
    assert (main["path"], second["path"]) == ("reading_list.py", "test_reading_list.py")
    assert main["content"].count(calls[3].input["old_text"]) == 1
    assert {todo["status"] for todo in calls[-1].input["todos"]} == {"completed"}
    assert "| `reading_list.py` |" in last
    assert "```python" in last
    assert "$" in last


@pytest.mark.parametrize(
    "words",
    [
        "Plan and write two files for a reading list",
        "write files about 3d printing",
        "create notes.md and data.json for my garden",
        "write two files",
        "make src/app.py",
        "write class.py and test_class.py on import",
        "write files about none",
    ],
)
def test_the_files_it_writes_are_sound_before_and_after_the_change(words, tmp_path):
    files = files_for(words)
    assert len({file.path for file in files}) == 2
    for file in files:
        assert file.content.count(file.old) == 1
        if file.path.endswith(".py"):
            compile(file.content, file.path, "exec")
            compile(file.edited, file.path, "exec")


def test_the_module_and_its_test_fit_together(tmp_path, monkeypatch):
    main, second = files_for("two files for a book club")
    (tmp_path / main.path).write_text(main.edited)
    monkeypatch.syspath_prepend(tmp_path)
    scope: dict[str, Any] = {}
    exec(compile(second.edited, second.path, "exec"), scope)
    scope["test_amounts_of_one_entry_add_up"]()


def test_a_denied_call_ends_its_work_and_is_named():
    def denying(call: Call) -> tuple[str, bool]:
        return ("A person said no.", True) if call.name == "write_file" else worked(call)

    calls, last = carry_on(asking("Plan and write two files"), denying)
    assert [call.name for call in calls] == ["todo_write", "write_file", "write_file"]
    assert "A person said no." in last


def test_a_broken_todo_list_does_not_stop_the_work():
    def failing(call: Call) -> tuple[str, bool]:
        return ("no list", True) if call.name == "todo_write" else worked(call)

    calls, last = carry_on(asking("Plan and write two files"), failing)
    assert "edit_file" in [call.name for call in calls]
    assert "Both files are written." in last


@pytest.mark.parametrize("missing", [{"todo_write"}, {"edit_file"}, {"write_file"}, {"grep"}])
def test_it_calls_only_what_the_request_offers(missing):
    tools = tuple(tool for tool in TOOLS if tool.name not in missing)
    for words in ("Plan and write two files", "search for x", "list files", "read a.md"):
        calls, last = carry_on(asking(words, tools))
        assert not missing & {call.name for call in calls}
        assert last


def test_with_tools_forbidden_it_only_talks():
    for words in ("Plan and write two files", "list files", "read a.md", "search for x"):
        given = answer(replace(asking(words), tool_choice="none"))
        assert not any(isinstance(part, Call) for part in given.parts)
        assert said(given)


@pytest.mark.parametrize(
    ("words", "name", "arguments"),
    [
        ("list files", "list_files", {}),
        ("Show me the files, please", "list_files", {}),
        ("read src/a.py", "read_file", {"path": "src/a.py"}),
        ("Please read `notes.md`.", "read_file", {"path": "notes.md"}),
        ("search for def main(", "grep", {"pattern": "def main(", "literal": True}),
    ],
)
def test_simple_wishes_are_one_call(words, name, arguments):
    calls, last = carry_on(asking(words), lambda call: ("some ``` text", False))
    assert [(call.name, dict(call.input)) for call in calls] == [(name, arguments)]
    assert "````\nsome ``` text\n````" in last


@pytest.mark.parametrize(
    ("words", "expression"),
    [
        ("Calculate 2 ** 10 / 3", "2 ** 10 / 3"),
        ("what is 17 * 3?", "17 * 3"),
        ("How much is (1 + 2) * 3 =", "(1 + 2) * 3"),
    ],
)
def test_sums_are_left_to_the_calculator(words: str, expression: str):
    calls, last = carry_on(asking(words, WITH_QUESTIONS), lambda call: ("what it said", False))
    assert [(call.name, dict(call.input)) for call in calls] == [
        ("calculator", {"expression": expression})
    ]
    assert "what it said" in last


def test_asked_to_ask_it_puts_its_questions_and_shows_the_answers():
    calls, last = carry_on(asking("Ask me something", WITH_QUESTIONS), lambda call: ("Tea", False))
    assert [call.name for call in calls] == ["ask_user"]
    assert "Tea" in last
    assert "can only show" in last


def test_counting_and_long_answers_are_long_enough_to_stop():
    assert said(answer(asking("count to 300"))).count("\n") == 299
    assert len(said(answer(asking("Give me a long answer")))) > 5_000


def test_a_hint_beside_answers_is_no_new_question_but_a_wish_is():
    request = asking("list files")
    call = ToolCall("call_1", "list_files", {})
    answers: tuple[Part, ...] = (ToolAnswer("call_1", (Text(text="a.py"),)),)
    for words, expected in (("Only 2 more model steps are left.", "a.py"), ("count to 3", "3.")):
        more = (
            Message("assistant", (call,)),
            Message("user", (*answers, Text(text=words))),
        )
        assert expected in said(answer(replace(request, messages=request.messages + more)))


def test_the_same_request_gives_the_same_reply_with_its_usage_estimated():
    request = asking("Hello")
    assert answer(request) == answer(request)
    assert answer(request).usage.output_tokens == len(said(answer(request))) // 4

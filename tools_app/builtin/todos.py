"""The agent's list of what it means to do in this conversation.

The list lives in the log: each change returns it whole as an event. Work that several agents share
is on the task board instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.errors import ToolError
from harness.events import Todo, TodosUpdated
from harness.tools import Effect, Tool, ToolContext, ToolOutput

MOST = 20
"""Entries of one list."""

_MARKS = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]"}


def todo_write(context: ToolContext, arguments: dict[str, Any]) -> ToolOutput:
    todos = [
        Todo(
            content=_said(given, "content"),
            active_form=_said(given, "active_form"),
            status=given["status"],
        )
        for given in arguments["todos"]
    ]
    return _updated(todos, context.tainted_by)


def todo_add(context: ToolContext, arguments: dict[str, Any]) -> ToolOutput:
    added = Todo(content=_said(arguments, "content"), active_form=_said(arguments, "active_form"))
    return _updated([*context.todos, added], context.tainted_by, context.todos_untrusted_by)


def todo_complete(context: ToolContext, arguments: dict[str, Any]) -> ToolOutput:
    wanted = _said(arguments, "content")
    todos = list(context.todos)
    same = [index for index, todo in enumerate(todos) if todo.content == wanted]
    if not same:
        raise ToolError(
            f"There is no todo “{wanted}”.",
            hint="Its content must match:\n" + rendered(todos),
            untrusted_by=context.todos_untrusted_by,
        )
    index = next((index for index in same if todos[index].status != "completed"), same[0])
    todos[index] = todos[index].model_copy(update={"status": "completed"})
    return _updated(todos, "", context.todos_untrusted_by)


def todo_list(context: ToolContext, _arguments: dict[str, Any]) -> ToolOutput:
    source = context.todos_untrusted_by
    return ToolOutput(rendered(context.todos), untrusted=bool(source), untrusted_by=source)


def rendered(todos: Sequence[Todo]) -> str:
    """The list in words, with how much of it is done."""
    if not todos:
        return "The todo list is empty."
    lines = [
        f"{_MARKS[todo.status]} "
        + (todo.content if todo.status != "in_progress" else f"{todo.content} ({todo.active_form})")
        for todo in todos
    ]
    done = sum(todo.status == "completed" for todo in todos)
    return "\n".join([*lines, f"({done}/{len(todos)} done)"])


def _said(given: Mapping[str, Any], name: str) -> str:
    text = str(given[name]).strip()
    if not text:
        raise ToolError(f"The {name} of a todo must say something.")
    return text


def _updated(todos: Sequence[Todo], tainted_by: str, before: str = "") -> ToolOutput:
    """`tainted_by`: of the call's context; `before`: what strangers may have said of what it repeats."""
    if len(todos) > MOST:
        raise ToolError(
            f"A todo list holds at most {MOST} entries.",
            hint="Rewrite it with todo_write: drop what is done, or join small steps.",
        )
    if sum(todo.status == "in_progress" for todo in todos) > 1:
        raise ToolError(
            "At most one todo may be in progress.",
            hint="Complete the current one, or set it back to pending.",
        )
    updated = TodosUpdated(todos=tuple(todos), untrusted_by=tainted_by or before)
    return ToolOutput(
        rendered(todos), events=(updated,), untrusted=bool(before), untrusted_by=before
    )


_CONTENT = {
    "type": "string",
    "minLength": 1,
    "maxLength": 300,
    "description": "What is to be done: “Write the tests”.",
}
_ACTIVE_FORM = {
    "type": "string",
    "minLength": 1,
    "maxLength": 300,
    "description": "The same while it is being done: “Writing the tests”.",
}


def _current_of(arguments: Mapping[str, Any]) -> str:
    """What is being done now; else how far the list is."""
    todos = arguments["todos"]
    done = sum(todo["status"] == "completed" for todo in todos)
    current = [todo["active_form"] for todo in todos if todo["status"] == "in_progress"]
    return str(current[0]) if current else f"{done}/{len(todos)}"


def _content_of(arguments: Mapping[str, Any]) -> str:
    return str(arguments.get("content", ""))


TOOLS = (
    Tool(
        name="todo_write",
        description=(
            "Replace the todo list, which people watch to follow the work. Use it for work of "
            "several steps: set one entry to in_progress before starting it, to completed as soon "
            f"as it is done. At most {MOST} entries, at most one in progress."
        ),
        input_schema={
            "type": "object",
            "properties": {
                "todos": {
                    "type": "array",
                    "maxItems": MOST,
                    "items": {
                        "type": "object",
                        "properties": {
                            "content": _CONTENT,
                            "active_form": _ACTIVE_FORM,
                            "status": {"enum": ["pending", "in_progress", "completed"]},
                        },
                        "required": ["content", "active_form", "status"],
                        "additionalProperties": False,
                    },
                }
            },
            "required": ["todos"],
            "additionalProperties": False,
        },
        handler=todo_write,
        effect=Effect.READ,
        apart=True,
        in_order=True,
        idempotent=True,
        intent=_current_of,
    ),
    Tool(
        name="todo_add",
        description="Add one pending entry to the end of the todo list.",
        input_schema={
            "type": "object",
            "properties": {"content": _CONTENT, "active_form": _ACTIVE_FORM},
            "required": ["content", "active_form"],
            "additionalProperties": False,
        },
        handler=todo_add,
        effect=Effect.READ,
        apart=True,
        in_order=True,
        intent=_content_of,
    ),
    Tool(
        name="todo_complete",
        description="Mark the todo with exactly this content as completed.",
        input_schema={
            "type": "object",
            "properties": {"content": _CONTENT},
            "required": ["content"],
            "additionalProperties": False,
        },
        handler=todo_complete,
        effect=Effect.READ,
        apart=True,
        in_order=True,
        intent=_content_of,
    ),
    Tool(
        name="todo_list",
        description="Show the todo list as it is now.",
        input_schema={"type": "object", "properties": {}, "additionalProperties": False},
        handler=todo_list,
        effect=Effect.READ,
        apart=True,
        in_order=True,
        idempotent=True,
    ),
)

"""What an agent does at the task board of its conversation or its team: make, read, change and take tasks.

The board is the conversation's own, so that these reach no further than its log; what a task says may have
been written by an agent that had read untrusted content, which comes along with it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from conversations.models import Conversation
from harness.tools import Effect, Tool, ToolContext, ToolOutput
from teams_app.actions.tasks import (
    Changes,
    change_task,
    claim_task,
    create_task,
    delete_task,
    link_task,
    numbered,
)
from teams_app.boards import Standing, standings
from teams_app.models import Task
from teams_app.models.board import DESCRIPTION_LIMIT, SUBJECT_LIMIT
from teams_app.owners import Owner

from .place import board_here, conversation_of, owner_named, text_in, told_to_the_model

LISTED = 200
"""Tasks that one call lists; finished ones are left out first."""
DELETED = "deleted"

_MARKS = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]", "cancelled": "[-]"}


def task_create(context: ToolContext, arguments: dict[str, Any]) -> ToolOutput:
    here = conversation_of(context)
    with told_to_the_model():
        task = create_task(
            actor=here.owner,
            board=board_here(here),
            subject=arguments["subject"],
            description=arguments.get("description", ""),
            active_form=arguments.get("active_form", ""),
            owner=owner_named(here, arguments.get("owner", "")),
            blocked_by=arguments.get("blocked_by", ()),
            blocks=arguments.get("blocks", ()),
            metadata=arguments.get("metadata"),
            by=here,
            key=context.call_id,
            untrusted_by=_handed_on(context),
        )
    return _output(f"Made {_line(_standing(task), here)}", [task], here)


def task_list(context: ToolContext, arguments: dict[str, Any]) -> ToolOutput:
    here = conversation_of(context)
    board = board_here(here)
    tasks = board.tasks.all() if board.is_stored else Task.objects.none()
    wanted = arguments.get("status")
    if wanted:
        tasks = tasks.filter(status=wanted)
    if arguments.get("mine"):
        tasks = tasks.filter(owner_conversation=here)
    if arguments.get("claimable"):
        tasks = tasks.claimable()
    shown = _most_wanted(list(tasks.order_by("number")))
    if not shown:
        return ToolOutput("There are no such tasks.")
    lines = [_line(each, here) for each in standings(shown)]
    done = sum(task.status == Task.Status.COMPLETED for task in shown)
    lines.append(f"({done}/{len(shown)} done)")
    return _output("\n".join(lines), shown, here)


def task_get(context: ToolContext, arguments: dict[str, Any]) -> ToolOutput:
    here = conversation_of(context)
    with told_to_the_model():
        task = numbered(board_here(here), arguments["id"])
    return _output(_whole(_standing(task), here), [task], here)


def task_update(context: ToolContext, arguments: dict[str, Any]) -> ToolOutput:
    here = conversation_of(context)
    with told_to_the_model():
        task = numbered(board_here(here), arguments["id"])
        if arguments.get("status") == DELETED:
            delete_task(actor=here.owner, task=task, by=here)
            return ToolOutput(f"Task #{task.number} is deleted.")
        owner = text_in(arguments, "owner")
        task = change_task(
            actor=here.owner,
            task=task,
            changes=Changes(
                subject=text_in(arguments, "subject"),
                description=text_in(arguments, "description"),
                active_form=text_in(arguments, "active_form"),
                status=text_in(arguments, "status"),
                owner=None if owner is None else owner_named(here, owner),
                blocked_by=arguments.get("add_blocked_by", ()),
                blocks=arguments.get("add_blocks", ()),
                unblocked_by=arguments.get("remove_blocked_by", ()),
                metadata=arguments.get("metadata", {}),
            ),
            by=here,
            untrusted_by=_handed_on(context),
        )
        for path in arguments.get("files", ()):
            link_task(
                actor=here.owner,
                task=task,
                kind="file",
                conversation=here,
                target=path,
                by=here,
                untrusted_by=_handed_on(context),
            )
    return _output(_line(_standing(task), here), [task], here)


def task_claim(context: ToolContext, arguments: dict[str, Any]) -> ToolOutput:
    here = conversation_of(context)
    with told_to_the_model():
        task = claim_task(
            actor=here.owner,
            board=board_here(here),
            number=arguments.get("id"),
            claimant=Owner(conversation=here),
            by=here,
        )
    return _output(f"It is yours:\n{_whole(_standing(task), here)}", [task], here)


# --- in words -------------------------------------------------------------------------------------


def _most_wanted(tasks: Sequence[Task]) -> list[Task]:
    """In their order; of too many the finished ones go first, the oldest before others."""
    over = len(tasks) - LISTED
    if over <= 0:
        return list(tasks)
    finished = [task.pk for task in tasks if not task.is_open][:over]
    return [task for task in tasks if task.pk not in finished][:LISTED]


def _standing(task: Task) -> Standing:
    return standings([task])[0]


def _line(standing: Standing, here: Conversation) -> str:
    task = standing.task
    parts = [f"{_MARKS[task.status]} #{task.number}: {task.subject}"]
    if standing.blocked_by:
        parts.append(f"(waits for {_hashed(standing.blocked_by)})")
    if task.is_owned:
        parts.append(f"— {_owner(task, here)}")
    if task.status == Task.Status.IN_PROGRESS and task.active_form:
        parts.append(f"({task.active_form})")
    return " ".join(parts)


def _whole(standing: Standing, here: Conversation) -> str:
    task = standing.task
    lines = [
        _line(standing, here),
        *([task.description] if task.description else []),
        *([f"Others wait for it: {_hashed(standing.blocks)}"] if standing.blocks else []),
        *(f"File: {link.target}" for link in task.links.filter(kind="file", conversation=here)),
    ]
    if task.metadata:
        lines.append(f"Metadata: {json.dumps(task.metadata, ensure_ascii=False)}")
    return "\n".join(lines)


def _owner(task: Task, here: Conversation) -> str:
    if task.owner_conversation_id == here.pk:
        return "you"
    return f"@{task.owner_name}" if task.owner_user_id else task.owner_name


def _hashed(numbers: Iterable[int]) -> str:
    return ", ".join(f"#{number}" for number in numbers)


# --- where words come from ----------------------------------------------------------------------


def _handed_on(context: ToolContext) -> str:
    # Of an agent below all it ever read counts: a word that a person said to it was not said to the others.
    below = conversation_of(context).parent_id is not None
    source = context.read_anywhere if below else context.tainted_by
    return f"{source}, by way of the task board" if source else ""


def _output(text: str, tasks: Sequence[Task], here: Conversation) -> ToolOutput:
    owner = here.owner_id
    source = next((found for task in tasks if (found := task.strangers_for(owner))), "")
    return ToolOutput(text, untrusted=bool(source), untrusted_by=source)


def _number_of(arguments: Mapping[str, Any]) -> str:
    number = arguments.get("id")
    return f"#{number}" if number else ""


def _subject_of(arguments: Mapping[str, Any]) -> str:
    return str(arguments.get("subject", ""))


def _line_field(description: str) -> dict[str, Any]:
    return {
        "type": "string",
        "minLength": 1,
        "maxLength": SUBJECT_LIMIT,
        "description": description,
    }


_ID = {"type": "integer", "minimum": 1, "description": "The number of the task, without the #."}
_NUMBERS = {"type": "array", "maxItems": 50, "items": {"type": "integer", "minimum": 1}}
_OWNER = {
    "type": "string",
    "maxLength": 200,
    "description": (
        "Who does it: “me”, “nobody” (whoever claims it), a teammate, or a person's user name behind an @, "
        "who then finds it among what waits for her."
    ),
}
_WORDS = {
    "description": {
        "type": "string",
        "maxLength": DESCRIPTION_LIMIT,
        "description": "All that whoever does it has to know.",
    },
    "active_form": _line_field("The same while it is being done: “Writing the tests”."),
    "owner": _OWNER,
    "metadata": {
        "type": "object",
        "maxProperties": 50,
        "description": "Names and values noted with the task; null takes a name away.",
    },
}


def _tool(
    name: str,
    handler: Any,
    description: str,
    properties: Mapping[str, Any],
    required: Sequence[str] = (),
    intent: Any = _number_of,
) -> Tool:
    return Tool(
        name=name,
        description=description,
        input_schema={
            "type": "object",
            "properties": dict(properties),
            "required": list(required),
            "additionalProperties": False,
        },
        handler=handler,
        # The board is the conversation's own, and a call that is made twice does it once.
        effect=Effect.READ,
        in_order=True,
        idempotent=True,
        owner="teams_app",
        intent=intent,
    )


TOOLS = (
    _tool(
        "task_create",
        task_create,
        "Put a task on the board, which people and other agents of this conversation see and work from. "
        "For what you do yourself, step by step, use the todo list.",
        {
            "subject": _line_field("What is to be done, in a line."),
            **_WORDS,
            "blocked_by": {**_NUMBERS, "description": "Numbers of tasks to be finished before."},
            "blocks": {**_NUMBERS, "description": "Numbers of tasks that wait for this one."},
        },
        ["subject"],
        _subject_of,
    ),
    _tool(
        "task_list",
        task_list,
        "List the tasks of the board, with who does each and what it waits for.",
        {
            "status": {"enum": list(Task.Status.values)},
            "mine": {"type": "boolean", "description": "Only those that are yours."},
            "claimable": {"type": "boolean", "description": "Only those that you could claim."},
        },
        intent=lambda arguments: str(arguments.get("status", "")),
    ),
    _tool("task_get", task_get, "Read one task whole.", {"id": _ID}, ["id"]),
    _tool(
        "task_update",
        task_update,
        "Change a task: say that it is in progress, completed or cancelled, give it to somebody, say what "
        "it waits for, name the files that came of it. Whatever waited for a finished task may begin then.",
        {
            "id": _ID,
            "status": {"enum": [*Task.Status.values, DELETED]},
            "subject": _line_field("What is to be done, in a line."),
            **_WORDS,
            "add_blocked_by": {**_NUMBERS, "description": "It waits for these, too."},
            "add_blocks": {**_NUMBERS, "description": "These wait for it, too."},
            "remove_blocked_by": {**_NUMBERS, "description": "It waits for these no more."},
            "files": {
                "type": "array",
                "maxItems": 20,
                "items": {"type": "string", "minLength": 1, "maxLength": 1_024},
                "description": "Paths of files that belong to it.",
            },
        },
        ["id"],
    ),
    _tool(
        "task_claim",
        task_claim,
        "Take a task that nobody has and that waits for nothing, and begin it. Without an id, the first "
        "such task.",
        {"id": _ID},
    ),
)

"""What agents write into the stores that their conversation was given, path by path, without a command."""

from __future__ import annotations

from typing import Any

from conversations.models import Conversation
from harness.errors import AgentError, ToolError
from harness.tools import Effect, Tool, ToolContext
from memory.models import Memory

from .changes import change_in, create_in
from .models import Access, AttachedStore
from .mounted import attached_to, follow_changes, shown_in
from .strangers import has_strangers_words
from .tools import EXTRA

WAITS = "Others are told of it once the person has confirmed it, because strangers' words were read here."


def write(context: ToolContext, arguments: dict[str, Any]) -> str:
    conversation, attached = _attached(context, arguments["store"])
    path, content = arguments["path"], arguments["content"]
    memory, expected = _at(conversation, attached, path), arguments.get("expected_sha256")
    if memory is not None and expected is None:
        raise ToolError(
            f"{memory.path} is there already; its content_sha256 is {memory.sha256}.",
            hint="Read it, then give that as expected_sha256, or use edit_memory.",
        )
    untrusted = has_strangers_words(conversation)
    try:
        if memory is None:
            call = context.call_id
            memory = create_in(
                conversation, attached, path, content, untrusted=untrusted, call=call
            )
        else:
            memory = change_in(
                conversation,
                attached,
                memory,
                content,
                untrusted=untrusted,
                expected_sha256=expected,
            )
    except AgentError as problem:
        raise ToolError(problem.message, hint=problem.hint) from problem
    return _kept(conversation, attached, path, memory)


def edit(context: ToolContext, arguments: dict[str, Any]) -> str:
    conversation, attached = _attached(context, arguments["store"])
    memory = _at(conversation, attached, arguments["path"])
    if memory is None:
        raise ToolError(f"There is nothing at {arguments['path']}.", hint="write_memory makes it.")
    old, new = arguments["old"], arguments["new"]
    if memory.content.count(old) != 1:
        raise ToolError(
            f"The old text stands there {memory.content.count(old)} times.",
            hint="Give as much of it as stands there once.",
        )
    content = memory.content.replace(old, new)
    try:
        memory = change_in(
            conversation,
            attached,
            memory,
            content,
            untrusted=has_strangers_words(conversation),
            expected_sha256=memory.sha256,
        )
    except AgentError as problem:
        raise ToolError(problem.message, hint=problem.hint) from problem
    return _kept(conversation, attached, arguments["path"], memory)


def _attached(context: ToolContext, uid: str) -> tuple[Conversation, AttachedStore]:
    rows = Conversation.objects.select_related("owner", "organisation", "agent_version__agent")
    conversation = rows.get(pk=context.extras[EXTRA])
    for attached in attached_to(conversation):
        if attached.store.uid == uid and attached.access == Access.READ_WRITE:
            follow_changes(conversation, attached)
            return conversation, attached
    raise ToolError(f"There is no store {uid[:60]} to write to.", hint="The prompt names them.")


def _at(conversation: Conversation, attached: AttachedStore, path: str) -> Memory | None:
    shown = shown_in(conversation, attached.store, path)
    return next(iter(shown), None)


def _kept(conversation: Conversation, attached: AttachedStore, path: str, memory: Memory) -> str:
    follow_changes(conversation, attached)
    told = f"{path} is kept; its content_sha256 is {memory.sha256}."
    return f"{told} {WAITS}" if memory.waits else told


_PLACE = {
    "store": {"type": "string", "minLength": 1, "maxLength": 60},
    "path": {"type": "string", "minLength": 1, "maxLength": 1_024},
}
WRITING = (
    Tool(
        name="write_memory",
        description=(
            "Write a text into a memory store of this conversation. Over one that is there only with the "
            "content_sha256 of what you read."
        ),
        input_schema={
            "type": "object",
            "properties": {
                **_PLACE,
                "content": {"type": "string", "maxLength": 102_400},
                "expected_sha256": {"type": "string", "maxLength": 64},
            },
            "required": ["store", "path", "content"],
            "additionalProperties": False,
        },
        handler=write,
        effect=Effect.WORKSPACE,
        apart=True,
        granted=True,
        in_order=True,
        intent=lambda arguments: str(arguments.get("path", "")),
        owner="recall",
    ),
    Tool(
        name="edit_memory",
        description="Replace a part of a text in a memory store of this conversation.",
        input_schema={
            "type": "object",
            "properties": {
                **_PLACE,
                "old": {"type": "string", "minLength": 1, "maxLength": 102_400},
                "new": {"type": "string", "maxLength": 102_400},
            },
            "required": ["store", "path", "old", "new"],
            "additionalProperties": False,
        },
        handler=edit,
        effect=Effect.WORKSPACE,
        apart=True,
        granted=True,
        in_order=True,
        intent=lambda arguments: str(arguments.get("path", "")),
        owner="recall",
    ),
)

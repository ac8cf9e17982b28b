"""What agents write into the stores that their conversation was given, path by path, without a command."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from conversations.models import Conversation
from harness.errors import AgentError, ToolError
from harness.tools import Effect, Tool, ToolContext
from memory.access import Author
from memory.actions.memories import change_memory, create_memory
from memory.models import AuthorKind, Memory, MemoryStore

from .models import Access
from .mounted import attached_to, follow_changes
from .strangers import has_strangers_words, mark_as_strangers
from .tools import EXTRA


def write(context: ToolContext, arguments: dict[str, Any]) -> str:
    conversation, store = _store(context, arguments["store"])
    memory = Memory.objects.filter(store=store, path=arguments["path"]).first()
    try:
        # In one transaction with its mark: no agent finds it meanwhile.
        with transaction.atomic():
            memory = _written(context, conversation, store, memory, arguments)
            mark_written(conversation, memory)
    except AgentError as problem:
        raise ToolError(problem.message, hint=problem.hint) from problem
    return _kept(conversation, memory)


def _written(
    context: ToolContext,
    conversation: Conversation,
    store: MemoryStore,
    memory: Memory | None,
    arguments: dict[str, Any],
) -> Memory:
    if memory is None:
        return create_memory(
            actor=conversation.owner,
            store=store,
            path=arguments["path"],
            content=arguments["content"],
            author=Author(AuthorKind.SESSION, conversation.uid),
            source_conversation=conversation.uid,
            source_event=context.call_id,
            source_agent=conversation.agent_version.agent.uid,
        )
    expected = arguments.get("expected_sha256")
    if expected is None:
        raise ToolError(
            f"{memory.path} is there already; its content_sha256 is {memory.sha256}.",
            hint="Read it, then give that as expected_sha256, or use edit_memory.",
        )
    return change_memory(
        actor=conversation.owner,
        memory=memory,
        content=arguments["content"],
        expected_sha256=expected,
        author=Author(AuthorKind.SESSION, conversation.uid),
    )


def edit(context: ToolContext, arguments: dict[str, Any]) -> str:
    conversation, store = _store(context, arguments["store"])
    memory = Memory.objects.filter(store=store, path=arguments["path"]).first()
    if memory is None:
        raise ToolError(f"There is nothing at {arguments['path']}.", hint="write_memory makes it.")
    old, new = arguments["old"], arguments["new"]
    if memory.content.count(old) != 1:
        raise ToolError(
            f"The old text stands there {memory.content.count(old)} times.",
            hint="Give as much of it as stands there once.",
        )
    try:
        with transaction.atomic():
            memory = change_memory(
                actor=conversation.owner,
                memory=memory,
                content=memory.content.replace(old, new),
                expected_sha256=memory.sha256,
                author=Author(AuthorKind.SESSION, conversation.uid),
            )
            mark_written(conversation, memory)
    except AgentError as problem:
        raise ToolError(problem.message, hint=problem.hint) from problem
    return _kept(conversation, memory)


def _store(context: ToolContext, uid: str) -> tuple[Conversation, MemoryStore]:
    rows = Conversation.objects.select_related("owner", "organisation", "agent_version__agent")
    conversation = rows.get(pk=context.extras[EXTRA])
    for attached in attached_to(conversation):
        if attached.store.uid == uid and attached.access == Access.READ_WRITE:
            follow_changes(conversation, attached)
            return conversation, attached.store
    raise ToolError(f"There is no store {uid[:60]} to write to.", hint="The prompt names them.")


def _kept(conversation: Conversation, memory: Memory) -> str:
    for attached in attached_to(conversation):
        if attached.store_id == memory.store_id:
            follow_changes(conversation, attached)
    return f"{memory.path} is kept; its content_sha256 is {memory.sha256}."


def mark_written(conversation: Conversation, *memories: Memory) -> None:
    """Where strangers' words were read, they wait for a person."""
    if has_strangers_words(conversation):
        marked = Memory.objects.filter(pk__in=[memory.pk for memory in memories])
        marked.update(untrusted=True, confirmed_at=None, source_conversation=conversation.uid)
        places = {attached.store_id: attached for attached in attached_to(conversation)}
        for memory in memories:
            if (attached := places.get(memory.store_id)) is not None:
                mark_as_strangers(conversation, attached, memory.path)


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
        granted=True,
        in_order=True,
        intent=lambda arguments: str(arguments.get("path", "")),
        owner="recall",
    ),
)

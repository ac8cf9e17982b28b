"""`subscriptions/listen`: a client hears of what is its person's, and of nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from asgiref.sync import sync_to_async
from django.db import connections
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCMessage, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from accounts.actions.tokens import create_token, revoke_token
from accounts.api.authentication import Caller, caller_with
from accounts.models import Organisation, TokenScope, User
from conversations.actions.messages import post_message
from conversations.models import Conversation
from mcpdoor.listening import MOST_STREAMS
from mcpdoor.serving import server_for
from mcpdoor.tools import ADDRESS, Principal
from prompts.actions.prompts import create_prompt
from providers.scripted import reply
from tests.conversations.conftest import Converse, rested
from tests.mcpdoor.posting import META, envelope
from tests.patience import PATIENCE

pytestmark = pytest.mark.django_db(transaction=True)

TASKS = envelope(extensions={f"{META}tasks": {}})


class Line:
    """A client's line to the server, as messages."""

    def __init__(self, outgoing: Any, incoming: Any) -> None:
        self._outgoing, self._incoming = outgoing, incoming

    async def listen(self, number: int, **wanted: Any) -> None:
        params = {"notifications": wanted, "_meta": TASKS}
        made = JSONRPCRequest(
            jsonrpc="2.0", id=number, method="subscriptions/listen", params=params
        )
        await self._outgoing.send(SessionMessage(made))

    async def heard(self) -> JSONRPCMessage:
        with anyio.fail_after(PATIENCE):
            message: JSONRPCMessage = (await self._incoming.receive()).message
        return message

    async def told(self, method: str) -> dict[str, Any]:
        """The next notice, which is of this kind."""
        message = await self.heard()
        assert isinstance(message, JSONRPCNotification), message
        assert message.method == f"notifications/{method}"
        return message.params or {}


@asynccontextmanager
async def line_of(
    who: User, where: Organisation, caller: Caller | None = None
) -> AsyncIterator[Line]:
    server = server_for(Principal(who, where, caller))
    to_server, at_server = anyio.create_memory_object_stream[Any](50)
    from_server, at_client = anyio.create_memory_object_stream[Any](50)
    options = server.create_initialization_options()
    running = asyncio.create_task(server.run(at_server, from_server, options))
    try:
        yield Line(to_server, at_client)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await sync_to_async(connections.close_all)()


def uri_of(conversation: Conversation) -> str:
    return f"{ADDRESS}{conversation.uid}"


def message_in(conversation: Conversation) -> str:
    return conversation.events.filter(type="user.message").latest("seq").uid


def test_a_client_hears_that_a_conversation_grew_and_how_a_task_stands(
    alice: User, mallory: User, acme: Organisation, elsewhere: Organisation, converse: Converse
):
    conversation, _script = converse([reply("Done."), reply("Once more.")])
    post_message(actor=alice, conversation=conversation, text="Go.")
    rested(conversation)
    task, uri = message_in(conversation), uri_of(conversation)
    wanted: dict[str, Any] = {
        "resourceSubscriptions": [uri, f"{ADDRESS}another", "test://x"],
        "taskIds": [task, "another"],
    }
    again: Callable[..., Any] = sync_to_async(post_message)

    async def hers() -> None:
        async with line_of(alice, acme) as line:
            await line.listen(1, **wanted)
            agreed = await line.told("subscriptions/acknowledged")
            assert agreed["notifications"] == {"resourceSubscriptions": [uri], "taskIds": [task]}
            assert agreed["_meta"][f"{META}subscriptionId"] == 1
            stands = await line.told("tasks")
            assert (stands["taskId"], stands["status"]) == (task, "completed")
            assert "ttlMs" in stands
            assert "Done." in str(stands["result"])
            await again(actor=alice, conversation=conversation, text="Again.")
            updated = await line.told("resources/updated")
            assert updated["uri"] == uri
            assert updated["_meta"][f"{META}subscriptionId"] == 1

    async def mallorys() -> None:
        async with line_of(mallory, elsewhere) as line:
            await line.listen(1, **wanted)
            assert (await line.told("subscriptions/acknowledged"))["notifications"] == {}

    asyncio.run(mallorys())
    asyncio.run(hers())
    rested(conversation)


def test_a_stream_ends_with_the_token_that_began_it(
    alice: User, acme: Organisation, converse: Converse
):
    conversation, _script = converse([reply("Done."), reply("Once more.")])
    post_message(actor=alice, conversation=conversation, text="Go.")
    rested(conversation)
    scopes = (TokenScope.CONVERSATIONS_READ,)
    issued = create_token(actor=alice, organisation=acme, name="t", scopes=scopes)
    caller = caller_with(issued.secret)
    assert caller is not None
    task = message_in(conversation)

    async def use() -> None:
        async with line_of(caller.user, acme, caller) as line:
            await line.listen(1, taskIds=[task], resourceSubscriptions=[uri_of(conversation)])
            await line.told("subscriptions/acknowledged")
            await line.told("tasks")
            await sync_to_async(revoke_token)(actor=alice, token=issued.token)
            await sync_to_async(post_message)(actor=alice, conversation=conversation, text="Again.")
            over = await line.heard()
            assert isinstance(over, JSONRPCResponse), over
            assert over.id == 1

    asyncio.run(use())
    rested(conversation)


def test_a_client_hears_of_lists_and_has_few_streams(
    alice: User, acme: Organisation, converse: Converse
):
    conversation, _script = converse([reply("Done.")])
    uri = uri_of(conversation)

    async def use() -> None:
        async with line_of(alice, acme) as line:
            for number in range(MOST_STREAMS):
                await line.listen(number, promptsListChanged=True, resourceSubscriptions=[uri])
                agreed = (await line.told("subscriptions/acknowledged"))["notifications"]
                assert agreed == {"promptsListChanged": True, "resourceSubscriptions": [uri]}
            await line.listen(99, promptsListChanged=True)
            refused: Any = await line.heard()
            assert (refused.id, refused.error.message) == (99, "Subscription limit reached")
            await sync_to_async(create_prompt)(
                actor=alice, organisation=acme, name="new", text="New."
            )
            # When something is told, lists are looked at.
            await sync_to_async(post_message)(actor=alice, conversation=conversation, text="Go.")
            waiting = set(range(MOST_STREAMS))
            while waiting:
                message: Any = await line.heard()
                if message.method == "notifications/prompts/list_changed":
                    waiting.remove(message.params["_meta"][f"{META}subscriptionId"])

    asyncio.run(use())
    rested(conversation)

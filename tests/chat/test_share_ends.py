"""Whoever follows a conversation that is no longer shared with her is sent nothing more, at every door."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from channels.testing import WebsocketCommunicator
from django.test import AsyncClient

from accounts.actions.members import remove_member
from accounts.actions.tokens import create_token
from accounts.models import Membership, Organisation, TokenScope, User
from agentsite.asgi import application
from api import incoming
from conversations.actions.conversations import create_conversation
from conversations.actions.sharing import share_conversation, unshare_conversation
from conversations.models import Conversation
from harness.errors import NotFound
from terminal.local import LocalDoor
from tests.chat.sockets import Browser
from tests.conversations.conftest import Converse
from tests.patience import PATIENCE
from wire.ids import thread_id

pytestmark = pytest.mark.django_db(transaction=True)


async def next_of(stream: AsyncIterator[bytes]) -> bytes:
    async with asyncio.timeout(PATIENCE):
        return await anext(stream, b"")


@pytest.mark.parametrize("end", ["share", "membership"])
async def test_open_sockets_and_streams_end_with_the_share(
    end: str,
    alice: User,
    bob: User,
    acme: Organisation,
    converse: Converse,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Not what heals a lost nudge: the end itself is told.
    for module in ("conversations.following", "v1.stream"):
        monkeypatch.setattr(f"{module}.RECHECK_SECONDS", 10 * PATIENCE)
    conversation, _script = await sync_to_async(converse)()
    share = await sync_to_async(share_conversation)(
        actor=alice, conversation=conversation, user_uid=bob.uid, role="viewer"
    )
    issued = await sync_to_async(create_token)(
        actor=bob, organisation=acme, name="Tests", scopes=[TokenScope.CONVERSATIONS_READ]
    )
    program = WebsocketCommunicator(
        application,
        f"/api/chat/{conversation.uid}/ws",
        headers=[(b"authorization", f"Bearer {issued.secret}".encode())],
    )
    terminal = LocalDoor(bob, acme)
    looks = terminal._looks(conversation, conversation.uid, 0, {}, lambda _seconds: None)
    answer: Any = await AsyncClient().get(
        f"/v1/sessions/{conversation.uid}/events/stream", headers={"x-api-key": issued.secret}
    )
    stream = aiter(answer.streaming_content)
    assert b"ping" in await next_of(stream)
    reading = asyncio.ensure_future(next_of(stream))
    async with Browser(bob, conversation.uid) as browser:
        await browser.hear_a("changes")
        assert (await program.connect(timeout=PATIENCE))[0]
        assert b"ready" in (await program.receive_output(timeout=PATIENCE))["text"].encode()
        await asyncio.sleep(0.2)
        assert not reading.done()

        if end == "share":
            act: Callable[[], object] = partial(
                unshare_conversation,
                actor=alice,
                conversation=conversation,
                share_uid=share.uid,
            )
        else:
            row = await Membership.objects.aget(user=bob, organisation=acme)
            act = partial(remove_member, actor=alice, membership=row)
        await sync_to_async(act)()

        said = await browser.hear()
        assert (said["type"], said["code"]) == ("error", "not_found")
        assert await browser.hear() == {"type": "close", "code": 4404}
    while (heard := await program.receive_output(timeout=PATIENCE))["type"] != "websocket.close":
        pass
    assert heard["code"] in {incoming.CLOSED_NOT_FOUND, incoming.CLOSED_UNAUTHORISED}
    over = await reading
    assert b"session.deleted" in over or b"authentication_error" in over
    assert await next_of(stream) == b""

    def look() -> None:
        with pytest.raises(NotFound):
            next(looks)

    await sync_to_async(look)()
    assert not await Conversation.objects.visible_to(bob).aexists()


@pytest.mark.parametrize("end", ["share", "membership"])
async def test_an_open_stream_of_what_an_agent_began_there_ends_as_well(
    end: str,
    alice: User,
    bob: User,
    acme: Organisation,
    converse: Converse,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("v1.stream.RECHECK_SECONDS", 10 * PATIENCE)
    conversation, _script = await sync_to_async(converse)()
    share = await sync_to_async(share_conversation)(
        actor=alice, conversation=conversation, user_uid=bob.uid, role="viewer"
    )

    def below() -> str:
        above = Conversation.objects.select_related("agent_version__agent", "environment").get()
        for _generation in range(2):
            above = create_conversation(
                actor=alice,
                organisation=acme,
                agent=conversation.agent_version.agent,
                environment=conversation.environment,
                parent=above,
            )
        return thread_id(above.uid)

    thread = await sync_to_async(below)()
    issued = await sync_to_async(create_token)(
        actor=bob, organisation=acme, name="Tests", scopes=[TokenScope.CONVERSATIONS_READ]
    )
    answer: Any = await AsyncClient().get(
        f"/v1/sessions/{conversation.uid}/threads/{thread}/stream",
        headers={"x-api-key": issued.secret},
    )
    assert answer.status_code == 200
    stream = aiter(answer.streaming_content)
    assert b"ping" in await next_of(stream)
    reading = asyncio.ensure_future(next_of(stream))
    await asyncio.sleep(0.2)
    assert not reading.done()

    if end == "share":
        act: Callable[[], object] = partial(
            unshare_conversation, actor=alice, conversation=conversation, share_uid=share.uid
        )
    else:
        row = await Membership.objects.aget(user=bob, organisation=acme)
        act = partial(remove_member, actor=alice, membership=row)
    await sync_to_async(act)()

    over = await reading
    assert b"session.deleted" in over or b"authentication_error" in over

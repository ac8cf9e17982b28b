"""Drawing what one person's agents write keeps nobody else's sockets waiting."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from asgiref.sync import sync_to_async
from django.conf import settings

from accounts.models import User
from chat.consumers import MAX_UNDRAWN, ConversationConsumer
from chat.presentation.arriving import Arriving
from conversations import following
from conversations.actions.stored_files import store_file
from conversations.models import Conversation
from jobs.shares import Shares
from live.arriving import Snapshot
from live.hub import Delta, hub
from live.outbox import Outbox
from tests.chat.sockets import Browser
from tests.hostile import CODE, SLOW_TO_COLOUR
from v1 import stream
from v1.stream import News

pytestmark = pytest.mark.django_db(transaction=True)

SOCKETS = 6
"""More than there are threads for them."""


def dear(number: int) -> str:
    """A block of code that takes as long to colour as any may."""
    language, text = CODE[SLOW_TO_COLOUR[0]]
    return f"```{language}\n# {number}\n{text}\n```\n"


async def test_others_are_answered_while_one_persons_texts_are_drawn(
    alice, bob, acme, make_agent, environment
):
    def conversation_of(person) -> Conversation:
        return Conversation.objects.create(
            organisation=acme,
            owner=person,
            agent_version=make_agent().current,
            environment=environment,
        )

    make = sync_to_async(conversation_of)
    hers, his = [await make(alice) for _n in range(SOCKETS)], await make(bob)
    async with AsyncExitStack() as stack:
        alices = [await stack.enter_async_context(Browser(alice, one.uid)) for one in hers]
        bobs = await stack.enter_async_context(Browser(bob, his.uid))
        for browser in (*alices, bobs):
            await browser.hear_a("changes")
        for number, one in enumerate(hers):
            hub.open(one.uid, "block", "text")
            hub.extend(one.uid, "block", dear(number))
        for browser in alices:
            await browser.hear_a("delta")
        await bobs.say(type="stop", key="1")
        await bobs.hear_a("accepted")
        first = [asyncio.ensure_future(browser.hear_a("rendered")) for browser in alices]
        done, _waiting = await asyncio.wait(first, timeout=0)
        assert not done
        await asyncio.gather(*first)
        for one in hers:
            hub.close(one.uid, "block")


async def test_others_are_answered_while_one_persons_files_are_copied(
    alice, bob, acme, make_agent, environment
):
    def conversation_of(person) -> Conversation:
        return Conversation.objects.create(
            organisation=acme,
            owner=person,
            agent_version=make_agent().current,
            environment=environment,
        )

    def a_file_that_takes_for_ever() -> tuple[str, Path]:
        kept = store_file(
            actor=alice,
            organisation=acme,
            filename="a.bin",
            mime_type="",
            chunks=[b"x"],
        )
        (path,) = Path(settings.AGENTSITE_FILES_DIR).rglob(kept.uid)
        path.unlink()
        os.mkfifo(path)
        return kept.uid, path

    make = sync_to_async(conversation_of)
    hers, his = [await make(alice) for _n in range(SOCKETS)], await make(bob)
    uid, path = await sync_to_async(a_file_that_takes_for_ever)()
    async with AsyncExitStack() as stack:
        alices = [await stack.enter_async_context(Browser(alice, one.uid)) for one in hers]
        bobs = await stack.enter_async_context(Browser(bob, his.uid))
        for browser in (*alices, bobs):
            await browser.hear_a("changes")
        for browser in alices:
            await browser.say(type="message", content="See", key="1", files=[uid])
        try:
            await bobs.say(type="stop", key="1")
            await bobs.hear_a("accepted")
        finally:
            writer = os.open(path, os.O_RDWR)
            path.unlink()
            path.write_bytes(b"x")
            os.close(writer)


async def test_what_a_client_does_not_read_is_not_drawn_for_it():
    taken = asyncio.Event()

    async def write(_item: object) -> None:
        await taken.wait()

    async def nothing() -> Snapshot:
        return Snapshot([])

    consumer = ConversationConsumer()
    consumer._language, consumer._place = "en", 1
    consumer._arriving, consumer._finished, consumer._draws = Arriving(), [], False
    consumer._outbox = Outbox(write, nothing)
    consumer._tasks = tasks = [asyncio.create_task(consumer._outbox.run())]
    length = 0
    for number in range(5 * MAX_UNDRAWN):
        text = f"{number}\n\n"
        consumer.arrived(Delta("block", "text", length, text, None))
        length += len(text)
        await asyncio.sleep(0.005)
    assert len(consumer._finished) == MAX_UNDRAWN
    assert len(consumer._outbox._waiting) <= 1
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def held(shares: Shares, person: User, places: int) -> AsyncIterator[None]:
    """So many places of hers are taken meanwhile."""
    gate = threading.Event()
    work = [
        asyncio.ensure_future(shares.run(person.pk, asyncio.to_thread, gate.wait))
        for _place in range(places)
    ]
    await asyncio.sleep(0)
    try:
        yield
    finally:
        gate.set()
        await asyncio.gather(*work)


async def test_what_one_person_s_programs_say_and_read_keeps_nobody_else_s_waiting(
    alice, bob, acme, make_agent, environment
):
    def line(person) -> Browser:
        uid = Conversation.objects.create(
            organisation=acme,
            owner=person,
            agent_version=make_agent().current,
            environment=environment,
        ).uid
        browser = Browser(person, uid)
        browser.address = f"/api/chat/{uid}/ws?after=0"
        return browser

    hers, his, again, other = [
        await sync_to_async(line)(person) for person in (alice, bob, alice, bob)
    ]
    async with hers, his:
        for browser in (hers, his):
            await browser.hear_a("ready")
        async with held(following._acting, alice, 1):
            for browser in (hers, his):
                await browser.say(type="set_aside", event_id="sevt_none", key="1")
            assert (await his.hear_a("error"))["key"] == "1"
            assert await hers._line.receive_nothing()
        assert (await hers.hear_a("error"))["key"] == "1"
    async with held(following._reading, alice, 2), other:
        coming = asyncio.ensure_future(again.__aenter__())
        await other.hear_a("ready")
        await coming
        assert await again._line.receive_nothing()
    await again.hear_a("ready")
    await again.__aexit__()


async def test_what_one_person_s_streams_read_keeps_nobody_else_s_waiting(alice, bob):
    def read(after: int) -> News:
        return News((), after)

    async with held(stream._reading, alice, 2):
        for alone in (True, False):
            hers = asyncio.ensure_future(
                stream._in_turn(read, alice.pk, None if alone else "hers")(7)
            )
            await asyncio.sleep(0.1)
            assert (await stream._in_turn(read, bob.pk, None if alone else "his")(7)).seq == 7
            assert not hers.done()
            hers.cancel()
    assert (await stream._in_turn(read, alice.pk, None)(7)).seq == 7

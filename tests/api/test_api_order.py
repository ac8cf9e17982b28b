"""Streaming text takes a shorter road than the log, and must not overtake what it comes behind."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest
from asgiref.sync import sync_to_async
from channels.testing import WebsocketCommunicator
from django.conf import settings
from django.test import Client

from agentsite.asgi import application
from api.stream import MAX_PENDING, Ledger, PendingText, Placed, PlacedSnapshot
from conversations import following
from conversations.log import append
from harness.events import InputTaken
from harness.history import Entry
from live.arriving import OpenBlock
from live.hub import hub
from tests.patience import PATIENCE


@pytest.mark.django_db(transaction=True)
async def test_no_text_comes_before_the_start_of_its_turn(alice, converse, monkeypatch):
    # The log is read late, as under load; text would be there long before it.
    monkeypatch.setattr(following, "GATHER_SECONDS", 0.2)
    conversation, _script = await sync_to_async(converse)()
    client = Client()
    await sync_to_async(client.force_login)(alice)
    name = settings.SESSION_COOKIE_NAME
    headers = [
        (b"origin", b"http://localhost"),
        (b"host", b"localhost"),
        (b"cookie", f"{name}={client.cookies[name].value}".encode()),
    ]
    line = WebsocketCommunicator(application, f"/api/chat/{conversation.uid}/ws", headers=headers)
    assert (await line.connect(timeout=PATIENCE))[0]

    async def hear() -> dict[str, Any]:
        frame: dict[str, Any] = orjson.loads((await line.receive_output(timeout=PATIENCE))["text"])
        return frame

    assert (await hear())["type"] == "ready"
    taken = Entry.of(InputTaken(event_ids=("sevt_1",)))
    await sync_to_async(append)(conversation.pk, [taken])
    hub.open(conversation.uid, "sevt_text", "text")
    hub.extend(conversation.uid, "sevt_text", "Hel")
    await asyncio.sleep(0.05)
    hub.extend(conversation.uid, "sevt_text", "lo")
    frames = [await hear(), await hear()]
    while sum(len(frame.get("content", "")) for frame in frames) < len("Hello"):
        frames.append(await hear())
    hub.close(conversation.uid, "sevt_text")
    await line.disconnect(timeout=PATIENCE)
    assert [frame["type"] for frame in frames][:2] == ["turn_start", "text_delta"]
    assert "".join(frame.get("content", "") for frame in frames) == "Hello"


def piece(offset: int, text: str, after: int, block: str = "b") -> Placed:
    return Placed(block, "text", offset, text, after=after)


def test_held_text_goes_out_in_order_when_the_log_was_told_that_far():
    queue, ledger = PendingText(), Ledger()
    first, second = piece(0, "ab", 5), piece(2, "cd", 7)
    assert not queue.is_next(first, ledger)
    assert not queue.is_next(second, ledger)
    assert queue.ready_after(4) == []
    assert queue.ready_after(7) == [first, second]
    assert queue.ready_after(9) == []
    assert queue.is_next(piece(4, "ef", 9), ledger)


def test_a_block_that_has_begun_waits_for_nothing_that_came_later():
    queue, ledger = PendingText(), Ledger()
    ledger.piece(piece(0, "ab", 0))
    assert queue.is_next(piece(2, "cd", 50), ledger)
    assert not queue.is_next(piece(0, "x", 50, "another"), ledger)


def test_what_waits_is_bounded_and_a_snapshot_is_asked_for_instead():
    queue, ledger = PendingText(), Ledger()
    for _ in range(3):
        queue.is_next(piece(0, "x" * (MAX_PENDING // 2), 5), ledger)
    assert queue.overflown
    assert queue.ready_after(5) == []
    whole = PlacedSnapshot([OpenBlock("b", "text", None, "abc")], after=6)
    assert not queue.is_next(whole, ledger)
    assert queue.ready_after(6) == [whole]

"""Names of which nobody says anything hold up nobody but who asked for them."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

from net import lookups
from net.lookups import resolve_by_system, resolve_for_agents
from sandbox.egress import LOOK_UPS, EgressProxy
from sandbox.policy import Endpoint
from tests.patience import PATIENCE

ASKED = 40
SILENT = ".silent.example"


@pytest.fixture
def silence(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The names that were asked for below one of which name servers say nothing."""
    real, answered, asked = socket.getaddrinfo, threading.Event(), list[str]()

    def look_up(host: str, *more: object, **named: object) -> object:
        if not str(host).endswith(SILENT):
            return real(host, *more, **named)  # type: ignore[arg-type]
        asked.append(host)
        answered.wait(10 * PATIENCE)
        raise socket.gaierror("nobody knows")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    yield asked
    answered.set()
    for room in (lookups._looking_for_loops, lookups._looking_for_agents):
        for _place in range(lookups.MOST_AT_ONCE):
            assert room.acquire(timeout=PATIENCE)
        room.release(lookups.MOST_AT_ONCE)


async def said_nothing_of(asked: list[str], number: int) -> None:
    while len(asked) < number:  # noqa: ASYNC110 - other threads ask
        await asyncio.sleep(0.01)


async def test_names_that_nobody_answers_leave_the_threads_of_the_loop_to_others(
    silence: list[str],
):
    silent = [
        asyncio.create_task(resolve_by_system(f"a{number}{SILENT}", 443)) for number in range(ASKED)
    ]
    async with asyncio.timeout(PATIENCE):
        await said_nothing_of(silence, ASKED)
        await asyncio.to_thread(len, ())
        assert await resolve_by_system("127.0.0.1", 80) == ["127.0.0.1"]
    for task in silent:
        task.cancel()
    await asyncio.wait(silent)


async def test_a_look_up_for_which_there_is_no_thread_takes_no_place_from_the_next(
    monkeypatch: pytest.MonkeyPatch,
):
    def none_left(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as few:
        few.setattr(threading.Thread, "start", none_left)
        for _time in range(lookups.MOST_AT_ONCE + 1):
            with pytest.raises(lookups.UnknownHost, match="can't start new thread"):
                await resolve_by_system("127.0.0.1", 80)
    assert await resolve_by_system("127.0.0.1", 80) == ["127.0.0.1"]


async def test_however_many_names_agents_have_looked_up_those_of_services_are_found(
    silence: list[str],
):
    most = lookups.MOST_AT_ONCE
    silent = [
        asyncio.create_task(resolve_for_agents(f"a{number}{SILENT}", 443)) for number in range(most)
    ]
    async with asyncio.timeout(PATIENCE):
        await said_nothing_of(silence, most)
        with pytest.raises(lookups.UnknownHost, match="too many"):
            await resolve_for_agents("127.0.0.1", 80)
        assert await resolve_by_system("127.0.0.1", 80) == ["127.0.0.1"]
    for task in silent:
        task.cancel()
    await asyncio.wait(silent)


async def test_one_sandbox_has_few_names_looked_up_at_once_and_the_others_wait(silence: list[str]):
    proxy = EgressProxy([Endpoint(host=f"*{SILENT}")])
    await proxy.start()
    writers = []
    try:
        for number in range(ASKED):
            _reader, writer = await asyncio.open_unix_connection(str(proxy.socket))
            writer.write(f"CONNECT a{number}{SILENT}:443 HTTP/1.1\r\n\r\n".encode())
            writers.append(writer)
        async with asyncio.timeout(PATIENCE):
            await said_nothing_of(silence, LOOK_UPS)
            # Other sandboxes and model services ask all the same.
            assert await resolve_by_system("127.0.0.1", 80) == ["127.0.0.1"]
        await asyncio.sleep(0.1)
        assert len(silence) == LOOK_UPS
    finally:
        for writer in writers:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()
        await proxy.close()

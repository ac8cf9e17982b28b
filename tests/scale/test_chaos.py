"""Processes die and Redis restarts while people work: every conversation ends, nothing twice.

The quick form runs with the tests; `make chaos` drives fifty conversations and kills for as long as
they last.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

from agentsite.local_services import LocalRedis
from harness.content import Text
from harness.messages import ModelRequest
from providers.scripted import call, reply, say
from tests.scale.deployment import Deployment, Member, Page

FULL = bool(os.environ.get("CHAOS"))
CONVERSATIONS = 50 if FULL else 6
MESSAGES = 12 if FULL else 2
SECONDS_BETWEEN_KILLS = 4.0 if FULL else 6.0
PATIENCE = 900 if FULL else 300


def answer(request: ModelRequest) -> Any:
    """A task is begun with a call that counts, and ended with a text that streams for a while."""
    last = request.messages[-1]
    words = " ".join(part.text for part in last.parts if isinstance(part, Text))
    if last.role == "user" and (task := re.search(r"Task (\d+)", words)):
        return reply(say(f"Beginning {task[1]}. "), call("count"))
    whole = " ".join(
        part.text
        for message in request.messages
        for part in message.parts
        if isinstance(part, Text)
    )
    number = re.findall(r"Task (\d+)", whole)[-1]
    text = "".join(f"line {line} of {number}; " for line in range(25))
    return reply(say(f"{text}END {number}."), chunk=12, delay=0.02)


class Trouble:
    """Kills one process after another, each of them before one a second time, and restarts Redis once.

    On a machine so slow that processes need longer to come up, the time between two kills grows to
    half of what that takes: else nobody would ever be there to do anything.
    """

    def __init__(self, members: list[Member], redis: LocalRedis) -> None:
        self._members = members
        self._redis = redis
        self._starts: list[asyncio.Future[None]] = []
        self.kills = self.restarts = 0
        self.slowest_start = 0.0

    async def _time(self, member: Member) -> None:
        began = time.monotonic()
        try:
            await asyncio.to_thread(member.ready)
        except AssertionError:
            pass  # killed meanwhile, or slower than anybody waits
        self.slowest_start = max(self.slowest_start, time.monotonic() - began)

    async def make(self) -> None:
        while True:
            for member in random.sample(self._members, len(self._members)):
                await asyncio.sleep(max(SECONDS_BETWEEN_KILLS, self.slowest_start / 2))
                if member.port:
                    await asyncio.to_thread(member.ready)
                await asyncio.to_thread(member.kill)
                self.kills += 1
                await asyncio.sleep(0.5)
                await asyncio.to_thread(member.start)
                if member.port:
                    self._starts.append(asyncio.ensure_future(self._time(member)))
                if self.kills == 2:
                    await asyncio.to_thread(self._redis.stop)
                    await asyncio.sleep(1)
                    await asyncio.to_thread(self._redis.start)
                    self.restarts += 1
            if not FULL:
                return


async def work(page: Page) -> None:
    for number in range(1, MESSAGES + 1):
        await page.post(f"Task {number}")
        await asyncio.sleep(random.uniform(1, 4))


async def ended(site: Deployment, uid: str) -> dict[str, Any]:
    """What the log holds once every message has come to its rest, or the conversation was given up."""
    while True:
        facts = await asyncio.to_thread(site.facts, uid)
        if facts["status"] == "idle" and not facts["queued"] and len(facts["taken"]) >= MESSAGES:
            return facts
        if facts["stop_reason"] == "retries_exhausted":
            return facts
        await asyncio.sleep(1)


async def test_no_conversation_is_lost_and_no_effect_repeated(
    tmp_path, new_database: Callable[[str], str], redis: LocalRedis
):
    """Two web processes and two workers."""
    with Deployment(
        tmp_path,
        new_database("chaos"),
        redis.url,
        answer,
        AGENTSITE_MESSAGES_PER_MINUTE=0,  # one person plays fifty
    ) as site:
        webs, workers = [site.web(), site.web()], [site.worker(), site.worker()]
        beat = site.beat()
        for member in (*webs, *workers):
            await asyncio.to_thread(member.ready)
        world = site.call("world", CONVERSATIONS)
        began = time.monotonic()
        trouble = Trouble([*workers, *webs, beat], redis)
        async with AsyncExitStack() as stack:
            pages = [
                await stack.enter_async_context(Page(webs, world["cookie"], uid))
                for uid in world["conversations"]
            ]
            making = asyncio.ensure_future(trouble.make())
            await asyncio.gather(*(work(page) for page in pages))
            if not FULL:
                await making
            async with asyncio.timeout(PATIENCE):
                logs = [await ended(site, page.uid) for page in pages]
            making.cancel()
            await asyncio.gather(making, return_exceptions=True)
            seconds = time.monotonic() - began
            for member in (*webs, *workers):
                if member.process.poll() is not None:
                    await asyncio.to_thread(member.start)
                await asyncio.to_thread(member.ready)
            for page in pages:
                await page.until(partial(shows_all, page))
            reconnections = sum(page.connections - 1 for page in pages)

        lost = sum(MESSAGES - len(set(log["posted"]) & set(log["taken"])) for log in logs)
        repeated = len(site.counted) - len(set(site.counted))
        report = (
            f"conversations: {len(pages)}, messages: {MESSAGES * len(pages)}, kills: {trouble.kills}, "
            f"slowest start: {trouble.slowest_start:.0f} s, Redis restarts: {trouble.restarts}, "
            f"reconnections: {reconnections}, "
            f"seconds: {seconds:.0f}, lost: {lost}, repeated: {repeated}"
        )
        print(report)
        (tmp_path / "report").write_text(report)
        assert (trouble.kills >= 5, trouble.restarts) == (True, 1)
        assert (lost, repeated) == (0, 0), report
        assert site.counted
        for log in logs:
            assert log["seqs"] == list(range(1, len(log["seqs"]) + 1))
            assert sorted(log["posted"]) == sorted(log["taken"])
            said = " ".join(log["texts"])
            for number in range(1, MESSAGES + 1):
                assert f"END {number}." in said


def shows_all(page: Page) -> bool:
    """A page that was loaded anew, or came back, has the whole text and nothing half said."""
    log = page.view.log
    return all(f"END {number}." in log for number in range(1, MESSAGES + 1)) and not page.view.live

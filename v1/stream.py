"""Server-sent events of one conversation: the log from a place on, previews, pings.

A coroutine for each client and no thread: the hub says when to read, few threads read for all. The
log is the only road, so a client that comes back with the last number it saw misses nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial

from asgiref.sync import SyncToAsync
from channels.db import database_sync_to_async
from django.conf import settings
from django.http import StreamingHttpResponse

from harness.ids import new_event_id
from jobs.shares import Shares
from live.hub import BlockClosed, Delta, Item, Kind, Lagged, Nudge, OpenText, Subscription, hub
from live.joining import Joining
from reading.wholetext import json_of

from .outgoing import Wire

logger = logging.getLogger(__name__)

PING_SECONDS = 15.0
RECHECK_SECONDS = 20.0
"""How often a quiet stream looks at the log and at its client's right to it, as sockets do."""
AT_ONCE = 500
"""Events of one read; a client far behind gets them in several."""
MESSAGES, THINKING = "agent.message", "agent.thinking"
PREVIEWS = (MESSAGES, THINKING)
KINDS: Mapping[Kind, str] = {"text": MESSAGES, "thinking": THINKING}
"""What a running command prints has no preview on this wire; its whole comes as the result."""
REMEMBERED = 500
"""Told events of which late deltas are still recognised; they come within moments or not at all."""

_threads = ThreadPoolExecutor(max_workers=4, thread_name_prefix="streams")
_reading = Shares(2)
"""Of these threads, how many read for one person: she may have many streams, and long logs."""


@dataclass(frozen=True, slots=True)
class News:
    """What one read brought: the events to be shown, and the number of the last that was read."""

    events: Sequence[Wire]
    seq: int
    more: bool = False
    over: Wire | None = None
    """The last event or error there will be: the stream ends with it."""
    again: float | None = None
    """Seconds after which it is looked at again though nobody says that there is more, where that is sooner
    than a quiet stream is."""


Read = Callable[[int], News]
"""In a thread: what the log gained behind this number, for a client that may still see it."""
Reading = Callable[[int], Awaitable[News]]
"""The same, from the loop."""
Encode = Callable[[str, Wire, int | None], bytes]
"""The bytes of one frame, of its name (`ping`, `message`, `error`), what it says and its number. Of
one stream it is called in the order of its frames."""


@dataclass
class _Previews:
    """What of the text that is arriving this client was sent, by block."""

    wanted: frozenset[str]
    sent: dict[str, int] = field(default_factory=dict)
    ended: OrderedDict[str, None] = field(default_factory=OrderedDict)

    def open(self, block: OpenText) -> list[Wire]:
        return self._grow(block.block, KINDS.get(block.kind), 0, block.text)

    def delta(self, delta: Delta) -> list[Wire]:
        return self._grow(delta.block, KINDS.get(delta.kind), delta.offset, delta.text)

    def concluded(self, events: Sequence[Wire]) -> None:
        for event in events:
            if event["type"] in self.wanted:
                self.sent.pop(event["id"], None)
                self.ended[event["id"]] = None
        while len(self.ended) > REMEMBERED:
            self.ended.popitem(last=False)

    def _grow(self, block: str, kind: str | None, offset: int, text: str) -> list[Wire]:
        """A gap ends what is sent of a block: what was sent stays a beginning of the whole."""
        if kind not in self.wanted or block in self.ended:
            return []
        events: list[Wire] = []
        if block not in self.sent:
            self.sent[block] = 0
            events.append({"type": "event_start", "event": {"type": kind, "id": block}})
        known = self.sent[block]
        new = text[max(0, known - offset) :]
        if kind == MESSAGES and offset <= known and new:
            self.sent[block] = known + len(new)
            content = {"type": "text", "text": new}
            delta = {"type": "content_delta", "index": 0, "content": content}
            events.append({"type": "event_delta", "event_id": block, "delta": delta})
        return events


def respond(
    uid: str,
    read: Read,
    *,
    after: int,
    previews: frozenset[str],
    who: Hashable,
    encode: Encode | None = None,
    same: Hashable = None,
) -> StreamingHttpResponse:
    """The answer to a client that may follow the conversation `uid` from event `after` on, and takes the
    share of the threads of the person whose key `who` is.

    `encode` puts it in the words of another protocol than this door's. Clients for whom `same` is equal
    read the same: what one of them is told at a place of the log, all are.
    """
    # The thread that Django keeps for this request is not needed while the stream lasts.
    context = SyncToAsync.thread_sensitive_context.get(None)
    executor = SyncToAsync.context_to_thread_executor.pop(context, None) if context else None
    if executor is not None:
        executor.shutdown(wait=False)
    answer = StreamingHttpResponse(
        _frames(uid, _in_turn(read, who, same), after, _Previews(previews), encode or _frame),
        content_type="text/event-stream",
    )
    answer["Cache-Control"] = "no-cache, no-transform"
    answer["X-Accel-Buffering"] = "no"
    return answer


async def _frames(
    uid: str, read: Reading, after: int, previews: _Previews, encode: Encode
) -> AsyncIterator[bytes]:
    # Subscribe, then look: what comes in between is in one of the two.
    subscription = hub.subscribe(uid)
    try:
        # Something at once, so that proxies and clients know the stream is open.
        yield encode("ping", {"type": "ping"}, None)
        if previews.wanted:
            for block in await hub.snapshot(uid):
                for event in previews.open(block):
                    yield encode("message", event, None)
        async for frame in _follow(uid, subscription, read, after, previews, encode):
            yield frame
    except asyncio.CancelledError:
        raise
    except Exception:
        logger.exception("The stream of conversation %s broke", uid)
        error = {"type": "api_error", "message": "The stream broke. Connect again."}
        yield encode("error", {"type": "error", "error": error}, None)
    finally:
        subscription.close()


async def _follow(
    uid: str,
    subscription: Subscription,
    read: Reading,
    after: int,
    previews: _Previews,
    encode: Encode,
) -> AsyncIterator[bytes]:
    loop = asyncio.get_running_loop()
    looked = pinged = loop.time()
    behind, again = True, RECHECK_SECONDS
    while True:
        if behind:
            news = await read(after)
            looked = loop.time()
            after, behind, again = max(after, news.seq), news.more, news.again or RECHECK_SECONDS
            previews.concluded(news.events)
            for event in news.events:
                yield encode("message", event, event.get("x_seq"))
            if news.over is not None:
                kind = "error" if news.over["type"] == "error" else "message"
                yield encode(kind, news.over, None)
                return
            if news.events:
                pinged = loop.time()
            continue
        now = loop.time()
        if now - pinged >= _ping_seconds():
            pinged = now
            yield encode("ping", {"type": "ping"}, None)
        if now - looked >= again:
            behind = True
            continue
        patience = min(pinged + _ping_seconds(), looked + again) - now
        try:
            item: Item = await asyncio.wait_for(anext(subscription), max(0.0, patience))
        except TimeoutError:
            continue
        match item:
            case Nudge() | BlockClosed():
                behind = True
            case Delta():
                for event in previews.delta(item):
                    yield encode("message", event, None)
                    pinged = loop.time()
            case Lagged():
                behind = True
                for block in await hub.snapshot(uid):
                    for event in previews.open(block):
                        yield encode("message", event, None)
            case _:
                pass


def _ping_seconds() -> float:
    return float(getattr(settings, "AGENTSITE_STREAM_PING_SECONDS", PING_SECONDS))


def _frame(name: str, data: Wire, seq: int | None) -> bytes:
    place = b"" if seq is None else b"id: %d\n" % seq
    return b"event: %s\n%sdata: %s\n\n" % (name.encode(), place, json_of(data))


def deleted() -> Wire:
    """The last word to who follows a session that was deleted."""
    return {"type": "session.deleted", "id": new_event_id()}


def _in_turn(read: Read, who: Hashable, same: Hashable) -> Reading:
    in_thread = partial(_reading.run, who, _in_thread)

    async def alone(after: int) -> News:
        return await in_thread(partial(read, after))

    async def together(after: int) -> News:
        return await _joining.read((same, after), partial(read, after), in_thread)

    return alone if same is None else together


async def _in_thread(function: Callable[[], News]) -> News:
    call = database_sync_to_async(function, thread_sensitive=False, executor=_threads)
    news: News = await call()
    return news


_joining: Joining[News] = Joining()

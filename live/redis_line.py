"""One process's line to Redis: a thread with an event loop that publishes in ticks and listens.

What gathers within one tick travels as one bundle, in the order it was sent. Redis also keeps the text
that is arriving, so that a socket elsewhere can begin in mid-answer. When Redis was out of reach,
everything that is open here is told anew and every reader resyncs.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import threading
import time
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

from redis.asyncio import Redis
from redis.asyncio.client import PubSub
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from . import redis_wire
from .items import BlockClosed, Delta, Interrupted, Item, Lagged, Nudge, OpenText
from .local_hub import LocalHub
from .redis_wire import Addressed

logger = logging.getLogger(__name__)

T = TypeVar("T")

TICK_SECONDS = 0.02
"""The first piece of a block, nudges and interrupts do not wait for it."""
POLL_SECONDS = 1.0
"""How often readers are sent to the log while Redis is out of reach."""
RETRY_SECONDS = 0.5
ANSWER_SECONDS = 2.0
"""How long Redis may take for anything before it counts as out of reach."""
QUIET_SECONDS = 5.0
"""A listener that heard nothing for so long asks whether anybody is there."""
KEPT_SECONDS = 15 * 60
"""How long text outlives its writer."""
RENEW_SECONDS = 60.0
MAX_UNSENT = 20_000
"""Items that may wait for Redis; beyond, they are dropped and readers resync."""

OUT_OF_REACH = (RedisError, OSError, TimeoutError)

Sent = tuple[str, Item | None]
"""A conversation and an item; None says that this process writes the conversation from now on."""


class RedisLine:
    """Starts its thread at once; `stop` ends it. Every method may be called from any thread."""

    def __init__(self, url: str, local: LocalHub) -> None:
        self._local = local
        self._origin = secrets.token_hex(8)
        self._redis = _client(url, timeout=ANSWER_SECONDS)
        self._listening_redis = _client(url, timeout=None)
        # Pub/sub knows no databases, so the names say which one is meant.
        database = self._redis.connection_pool.connection_kwargs.get("db") or 0
        self._prefix = f"agentsite:{database}"
        self._live = f"{self._prefix}:live"
        self._interrupts = f"{self._prefix}:interrupts"

        self._lock = threading.Lock()
        self._unsent: list[Sent] = []
        self._overflown = False
        self._wanted = {self._interrupts}
        self._heard: set[str] = set()
        self._renewed: dict[str, float] = {}
        self._pubsub: PubSub | None = None
        self._was_down = False

        self._loop = asyncio.new_event_loop()
        self._filled = asyncio.Event()
        self._urgent = asyncio.Event()
        self._ready = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._thread = threading.Thread(target=self._run, name="agentsite-hub", daemon=True)
        self._thread.start()

    def send(self, conversation_uid: str, item: Item | None, *, at_once: bool = False) -> None:
        """Publish soon, or forget it if Redis is out of reach."""
        with self._lock:
            first = not self._unsent
            if len(self._unsent) < MAX_UNSENT:
                self._unsent.append((conversation_uid, item))
            else:
                self._overflown = True
        if first or at_once:
            self._soon(self._wake_publisher, at_once)

    def listen(self, *, live: bool) -> None:
        """Hear interrupts and, with `live`, nudges and text."""
        with self._lock:
            if not live or self._live in self._wanted:
                return
            self._wanted.add(self._live)
        self._soon(self._ready.clear)
        self.call(self._listen_too())

    async def snapshot(self, conversation_uid: str) -> tuple[OpenText, ...]:
        """The text that arrives elsewhere, once nothing that comes after it can be missed. From any
        loop. Raises one of `OUT_OF_REACH`."""
        return await asyncio.wrap_future(self.call(self._snapshot(conversation_uid)))

    def call(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def stop(self) -> None:
        """Send what waits, then end."""
        try:
            self.call(self._end()).result(2 * ANSWER_SECONDS)
        except OUT_OF_REACH:
            logger.warning("the line to Redis did not end in time")
        self._soon(self._loop.stop)
        self._thread.join(ANSWER_SECONDS)

    def _soon(self, function: Callable[..., Any], *arguments: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(function, *arguments)
        except RuntimeError:
            return  # stopped: nobody is left to be told

    # --- the thread -------------------------------------------------------------------------------

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        for work in (self._publish(), self._listen(), self._poll()):
            self._tasks.append(self._loop.create_task(work))
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()

    async def _end(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        try:
            await self._send(self._take())
        except OUT_OF_REACH:
            pass
        for client in (self._redis, self._listening_redis):
            await client.aclose()

    async def _poll(self) -> None:
        """While nothing can be heard, send readers to the log."""
        while True:
            await asyncio.sleep(POLL_SECONDS)
            if not self._wanted <= self._heard:
                self._local.deliver_to_all(Nudge(0))

    # --- publishing -------------------------------------------------------------------------------

    def _wake_publisher(self, at_once: bool) -> None:
        self._filled.set()
        if at_once:
            self._urgent.set()

    def _take(self) -> list[Sent]:
        with self._lock:
            taken, self._unsent = self._unsent, []
        return taken

    async def _publish(self) -> None:
        while True:
            await self._filled.wait()
            if not self._urgent.is_set():
                try:
                    await asyncio.wait_for(self._urgent.wait(), TICK_SECONDS)
                except TimeoutError:
                    pass
            self._filled.clear()
            self._urgent.clear()
            items = self._take()
            try:
                if self._overflown:
                    raise ConnectionError("more was said than Redis took")
                await self._send(items)
            except OUT_OF_REACH as problem:
                self._note_down(problem)
                await self._resend(items)
            except Exception:
                # A fault of ours in one bundle: readers lose some live text, nobody else anything.
                logger.exception("a bundle of live text could not be sent")

    async def _send(self, items: Sequence[Sent]) -> None:
        """Keep the text, then tell: whoever reads what is kept in between trims the overlap."""
        if not items:
            return
        rewritten: dict[str, list[Addressed]] = {}
        pieces: dict[str, list[bytes]] = {}
        for uid, item in items:
            if item is None:
                rewritten[uid] = [(uid, closed) for closed in await self._take_over(uid)]
            elif isinstance(item, BlockClosed):
                rewritten.setdefault(uid, [])
            elif isinstance(item, Delta):
                pieces.setdefault(uid, []).append(redis_wire.piece(item))
        sent = [addressed for stale in rewritten.values() for addressed in stale]
        sent += [(uid, item) for uid, item in items if item is not None]

        pipe = self._redis.pipeline(transaction=False)
        for uid in rewritten:
            self._keep_anew(pipe, uid)
        for uid, kept in pieces.items():
            if uid not in rewritten:
                pipe.rpush(self._text_key(uid), *kept)
                self._renew(pipe, uid)
        interrupts = [(uid, item) for uid, item in sent if isinstance(item, Interrupted)]
        if interrupts:
            pipe.publish(self._interrupts, redis_wire.bundle(self._origin, interrupts))
        if len(interrupts) < len(sent):
            others = [(uid, item) for uid, item in sent if not isinstance(item, Interrupted)]
            pipe.publish(self._live, redis_wire.bundle(self._origin, others))
        await pipe.execute()

    async def _take_over(self, uid: str) -> list[BlockClosed]:
        """Become the writer of a conversation; what another left half said is over."""
        former = await self._redis.set(
            self._writer_key(uid), self._origin, ex=KEPT_SECONDS, get=True
        )
        if not isinstance(former, bytes) or former.decode() == self._origin:
            return []
        key = self._text_key(uid, former.decode())
        left = await self._kept(key)
        await self._redis.delete(key)
        return [BlockClosed(text.block) for text in left]

    def _keep_anew(self, pipe: Any, uid: str) -> None:
        """Replace what is kept by what is open here now."""
        key = self._text_key(uid)
        pipe.delete(key)
        texts = [text for text in self._local.open_texts(uid) if text.text]
        if texts:
            whole = (Delta(text.block, text.kind, 0, text.text, text.continues) for text in texts)
            pipe.rpush(key, *map(redis_wire.piece, whole))
            self._renewed.pop(uid, None)
            self._renew(pipe, uid)
        else:
            self._renewed.pop(uid, None)

    def _renew(self, pipe: Any, uid: str) -> None:
        now = time.monotonic()
        if now - self._renewed.get(uid, -RENEW_SECONDS) >= RENEW_SECONDS:
            self._renewed[uid] = now
            pipe.expire(self._text_key(uid), KEPT_SECONDS)
            pipe.expire(self._writer_key(uid), KEPT_SECONDS)

    async def _resend(self, lost: Sequence[Sent]) -> None:
        """Until it works: keep all that is open here, and send readers to the log and to a snapshot.
        `lost` may or may not have arrived."""
        missed: dict[str, set[type[Item] | None]] = {}
        while True:
            for uid, item in (*lost, *self._take()):
                missed.setdefault(uid, set()).add(type(item) if item is not None else None)
            lost = ()
            self._overflown = False
            await asyncio.sleep(RETRY_SECONDS)
            try:
                await self._send_anew(missed)
            except OUT_OF_REACH as problem:
                self._note_down(problem)
            else:
                logger.info("Redis is back: live text is told anew")
                self._was_down = False
                return

    async def _send_anew(self, missed: Mapping[str, Collection[type[Item] | None]]) -> None:
        pipe = self._redis.pipeline(transaction=False)
        writing = set(self._local.open_conversations())
        for uid in writing | {uid for uid, kinds in missed.items() if None in kinds}:
            mine = None in missed.get(uid, ())
            pipe.set(self._writer_key(uid), self._origin, ex=KEPT_SECONDS, nx=not mine)
        for uid in writing | set(missed):
            self._keep_anew(pipe, uid)
        sent: list[Addressed] = [(uid, Lagged()) for uid in writing | set(missed)]
        sent += [(uid, Nudge(0)) for uid in missed]
        pipe.publish(self._live, redis_wire.bundle(self._origin, sent))
        interrupts = [(uid, Interrupted()) for uid, kinds in missed.items() if Interrupted in kinds]
        if interrupts:
            pipe.publish(self._interrupts, redis_wire.bundle(self._origin, interrupts))
        await pipe.execute()

    def _note_down(self, problem: BaseException) -> None:
        if not self._was_down:
            self._was_down = True
            logger.warning("Redis is out of reach, readers follow the log: %s", problem)

    def _text_key(self, uid: str, origin: str = "") -> str:
        return f"{self._prefix}:text:{uid}:{origin or self._origin}"

    def _writer_key(self, uid: str) -> str:
        return f"{self._prefix}:writer:{uid}"

    # --- listening --------------------------------------------------------------------------------

    async def _listen(self) -> None:
        while True:
            try:
                await self._listen_once()
            except OUT_OF_REACH as problem:
                self._note_down(problem)
            except Exception:
                logger.exception("listening to Redis failed")
            self._pubsub = None
            self._heard.clear()
            self._ready.clear()
            await asyncio.sleep(RETRY_SECONDS)

    async def _listen_once(self) -> None:
        """Until the connection breaks, which raises."""
        async with self._listening_redis.pubsub() as pubsub:
            async with asyncio.timeout(ANSWER_SECONDS):
                await pubsub.subscribe(self._interrupts)
                self._pubsub = pubsub
                if self._live in self._wanted:
                    await self._listen_too()
            asked = False
            while True:
                message = await pubsub.get_message(timeout=QUIET_SECONDS)
                if message is None:
                    if asked:
                        raise ConnectionError("Redis is silent")
                    await pubsub.ping()
                    asked = True
                    continue
                asked = False
                if message["type"] == "subscribe":
                    self._hear(message["channel"].decode())
                elif message["type"] == "message":
                    self._deliver(message["data"])

    async def _listen_too(self) -> None:
        """Add the live channel to a connection that stands; a new one takes it up by itself."""
        if self._pubsub is not None:
            try:
                await self._pubsub.subscribe(self._live)
            except OUT_OF_REACH:
                return  # the listener notices by itself

    def _hear(self, channel: str) -> None:
        self._heard.add(channel)
        if self._wanted <= self._heard:
            self._ready.set()
            self._was_down = False
            # What was said before this moment was not heard here.
            self._local.deliver_to_all(Lagged(), Nudge(0))

    def _deliver(self, data: bytes) -> None:
        try:
            origin, items = redis_wire.unbundle(data)
        except ValueError:
            logger.exception("something else speaks on our Redis channels")
            return
        if origin != self._origin:
            for uid, item in items:
                self._local.deliver(uid, item)

    async def _snapshot(self, uid: str) -> tuple[OpenText, ...]:
        async with asyncio.timeout(ANSWER_SECONDS):
            if self._live in self._wanted:
                await self._ready.wait()
            try:
                return await self._text_elsewhere(uid)
            except OUT_OF_REACH:
                # The connection may only have been one from before a restart.
                return await self._text_elsewhere(uid)

    async def _text_elsewhere(self, uid: str) -> tuple[OpenText, ...]:
        writer = await self._redis.get(self._writer_key(uid))
        if not isinstance(writer, bytes) or writer.decode() == self._origin:
            return ()
        return await self._kept(self._text_key(uid, writer.decode()))

    async def _kept(self, key: str) -> tuple[OpenText, ...]:
        pieces = await self._redis.lrange(key, 0, -1)
        return redis_wire.join([piece for piece in pieces if isinstance(piece, bytes)])


def _client(url: str, *, timeout: float | None) -> Redis:
    """Tries nothing twice by itself: what is lost meanwhile must be noticed."""
    return Redis.from_url(
        url,
        socket_connect_timeout=ANSWER_SECONDS,
        socket_timeout=timeout,
        socket_keepalive=not url.startswith("unix:"),
        retry=Retry(NoBackoff(), 0),
    )

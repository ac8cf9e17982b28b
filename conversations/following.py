"""What every socket of a conversation does: follow the log, pass on streaming text, answer frames.

The log is the only road: a nudge makes one more read behind the last event sent. What is read, how
it is put into words and what a frame may do, each door says for itself (`consumers`, `api.consumer`).
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import Callable, Coroutine, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Protocol
from urllib.parse import parse_qs

import structlog
from channels.consumer import get_handler_name
from channels.exceptions import StopConsumer
from channels.generic.websocket import AsyncWebsocketConsumer
from django.conf import settings
from django.http import HttpRequest
from django.utils import translation
from django.utils.translation import gettext as _

from harness.errors import Invalid
from jobs.connections import with_healthy_connections
from jobs.metrics import SOCKETS_OPEN
from jobs.shares import Shares
from live.arriving import Closed, OpenBlock, Snapshot
from live.hub import BlockClosed, Delta, Lagged, Nudge, Subscription, hub
from live.outbox import Outbox
from reading.digits import number_of
from wire.parameters import check_parameters

logger = logging.getLogger(__name__)

RECHECK_SECONDS = 20.0
"""How often a quiet socket looks at the log and at its own right to be there: heals a lost nudge,
and bounds how long a revoked member can watch."""

GATHER_SECONDS = 0.025
"""How long after the first news the log is read. A step of a run is some appends within milliseconds,
drawing costs more than storing, and what is drawn at once holds up the run it is about."""

QUIET_SECONDS = 0.025
"""How long after a read the next one waits."""

_threads = ThreadPoolExecutor(max_workers=6, thread_name_prefix="sockets")
"""Their own, so that drawing pages for slow sockets never keeps a run from storing its events; more than
one person's sockets may take."""
_reading = Shares(2)
"""Of these threads, how many read and draw the log for one person: her texts may be made to take long."""
_acting = Shares(1)
"""Of these threads, how many do what one person says, which may be to copy large files."""


class Gone(Exception):
    """This socket has nothing to follow, or no longer: its last words, and what it closes with."""

    def __init__(self, last_word: Any, code: int) -> None:
        super().__init__(code)
        self.last_word = last_word
        self.code = code


class News(Protocol):
    """What one read brought: everything up to event `seq`."""

    @property
    def seq(self) -> int: ...


class FollowingConsumer(AsyncWebsocketConsumer):
    """Subclasses give the five functions at the end; those that say so run in a thread."""

    channel_layer_alias = ""
    """None: nudges come through the hub, and an unused channel costs memory on each socket."""

    def prepare(self) -> None:
        """To be called first in `connect`."""
        self._tasks: list[asyncio.Task[None]] = []
        self._outbox = Outbox(self.write, self.fresh_snapshot)
        self._closed: list[str] = []
        self._news = asyncio.Event()
        self._ready = False
        self._seen = 0
        self._nudged = 0
        """Up to where the log is known to have grown; what streams now comes behind that."""
        self._uid: str = self.scope["url_route"]["kwargs"]["uid"]
        structlog.contextvars.bind_contextvars(conversation=self._uid)
        SOCKETS_OPEN.inc()
        self._language = _language_of(self.scope)

    async def disconnect(self, code: int) -> None:
        SOCKETS_OPEN.dec()
        self._ready = False
        self._cancel_tasks()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def dispatch(self, message: dict[str, Any]) -> None:
        """Without channels' own look after database connections, for which every frame would wait for
        the one thread that all synchronous views share. Our threads look after theirs."""
        await getattr(self, get_handler_name(message))(message)

    async def websocket_disconnect(self, message: dict[str, Any]) -> None:
        """The same: channels' own looks after connections once more at the end."""
        await self.disconnect(message["code"])
        raise StopConsumer

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        if self._ready:
            for frame in await self.answer(text_data):
                await self._outbox.deliver(frame)

    async def send_text(self, text: str) -> None:
        await self.base_send({"type": "websocket.send", "text": text})

    @property
    def session_key(self) -> str | None:
        """Of the browser's session, which may be nobody's."""
        key: str | None = self.scope["cookies"].get(settings.SESSION_COOKIE_NAME)
        return key

    # --- following the conversation ---------------------------------------------------------------

    async def begin(self) -> None:
        """Follow from `_seen` on. What the first read says goes out before anything that is new."""
        subscription = hub.subscribe(self._uid)
        try:
            snapshot = await self.snapshot()
            first = await self.look()
        except Gone as gone:
            subscription.close()
            await self.refuse(gone)
            return
        except BaseException:
            subscription.close()
            raise
        self._seen = first.seq
        self._ready = True
        for frame in self.opening(snapshot, first):
            self._outbox.put(frame)
        for work in (self._outbox.run(), self._follow_hub(subscription), self._follow_log()):
            self._go_on_with(work)

    async def _follow_hub(self, subscription: Subscription) -> None:
        async with subscription:
            async for item in subscription:
                match item:
                    case Nudge():
                        self._nudged = max(self._nudged, item.seq)
                        self._news.set()
                    case Delta():
                        self._outbox.put_text(self.piece(item))
                        self.arrived(item)
                    case BlockClosed():
                        self._closed.append(item.block)
                        self._news.set()
                    case Lagged():
                        self._outbox.catch_up()

    async def _follow_log(self) -> None:
        """One read at a time: however many nudges come meanwhile, they make one more read."""
        while True:
            try:
                await asyncio.wait_for(self._news.wait(), RECHECK_SECONDS)
                await asyncio.sleep(GATHER_SECONDS)
            except TimeoutError:
                pass
            self._news.clear()
            closed, self._closed = self._closed, []
            try:
                changed = await self.look()
            except Gone as gone:
                await self.refuse(gone)
                return
            if changed.seq > self._seen or self.has_more(changed):
                self._seen = changed.seq
                await self._outbox.deliver(changed)
            # Only now: what takes the place of the streaming text is already there.
            for block in closed:
                self._outbox.put(Closed(block))
            await asyncio.sleep(QUIET_SECONDS)

    async def snapshot(self) -> Snapshot:
        """All text that is arriving."""
        return Snapshot(
            [
                OpenBlock(open_.block, open_.kind, open_.continues, open_.text)
                for open_ in await hub.snapshot(self._uid)
            ]
        )

    async def refuse(self, gone: Gone) -> None:
        """Say the last word and hang up."""
        self._ready = False
        self._cancel_tasks()
        await self.write(gone.last_word)
        await self.close(gone.code)

    # --- threads and tasks ------------------------------------------------------------------------

    async def _in_thread(self, function: Callable[..., Any], *arguments: Any) -> Any:
        def in_language() -> Any:
            with translation.override(self._language):
                return function(*arguments)

        return await in_thread(in_language)

    async def _act_in_turn(self, place: Hashable, act: Callable[[], Any]) -> Any:
        """`_in_thread` for what the person with this key says, at whichever door: one after the other."""
        return await _acting.run(place, self._in_thread, act)

    async def _read_in_turn(self, place: Hashable, read: Callable[[], Any]) -> Any:
        """`_in_thread` for what reads or draws for the person with this key, as far as her share of the
        threads goes."""
        return await _reading.run(place, self._in_thread, read)

    def _go_on_with(self, work: Coroutine[Any, Any, None]) -> None:
        """Beside what else goes on, as long as the socket is there."""
        task = asyncio.create_task(work)
        self._tasks.append(task)
        task.add_done_callback(self._ended)

    def _cancel_tasks(self) -> None:
        for task in self._tasks:
            if task is not asyncio.current_task():
                task.cancel()

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Where a task of ours fell: hang up, so that the client comes back and reads the log."""
        self._tasks.remove(task)
        if task.cancelled() or task.exception() is None:
            return
        if isinstance(task.exception(), OSError):
            return  # the client has gone; how some servers say so
        logger.error("The socket of conversation %s broke", self._uid, exc_info=task.exception())
        self._ready = False
        self._tasks.append(asyncio.ensure_future(self.close(1011)))

    # --- what each door says for itself -----------------------------------------------------------

    def read(self) -> News:
        """In a thread: what the log gained behind `_seen`. Raises `Gone`."""
        raise NotImplementedError

    async def look(self) -> News:
        """`read`, from the loop. A door overrides it whose sockets may read together."""
        news: News = await self._in_thread(self.read)
        return news

    def opening(self, snapshot: Snapshot, first: Any) -> Sequence[Any]:
        """What goes out first."""
        return (snapshot, first)

    def piece(self, delta: Delta) -> Delta:
        """What the outbox is given of a delta."""
        return delta

    async def fresh_snapshot(self) -> Snapshot:
        """What goes out in the place of streaming text that was dropped."""
        return await self.snapshot()

    def arrived(self, delta: Delta) -> None:
        """Streaming text was passed on to the outbox."""

    def has_more(self, news: Any) -> bool:
        """Whether `news` is worth sending although the log did not grow."""
        return False

    async def write(self, item: Any) -> None:
        """Put one item into words and send it; called for one after the other, in order."""
        raise NotImplementedError

    async def answer(self, text: str | None) -> Sequence[Any]:
        """What a frame (None: a binary one) is answered with. Raises nothing."""
        raise NotImplementedError


async def in_thread(function: Callable[[], Any]) -> Any:
    """In one of the threads that are the sockets' own, with connections that work."""
    # Log lines of the thread bear the ids that are bound here.
    call = partial(contextvars.copy_context().run, with_healthy_connections, function)
    return await asyncio.get_running_loop().run_in_executor(_threads, call)


def after_in(scope: dict[str, Any], *others: str) -> int | None:
    """The number in `?after=`. Raises Invalid for what is no number, and for a parameter that is
    neither this nor one of `others`, is empty or is given twice."""
    given = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    check_parameters(given, frozenset({"after", *others}))
    if "after" not in given:
        return None
    text = given["after"][0]
    seq = number_of(text)
    if seq is None:
        raise Invalid(
            _("after: The number of an event is needed."),
            field="after",
            hint=_("Give the largest `seq` you were sent, or leave it out."),
        )
    return seq


def _language_of(scope: dict[str, Any]) -> str:
    """The language pages are drawn in for this browser, so that what is sent matches the page."""
    request = HttpRequest()
    request.COOKIES = dict(scope.get("cookies", {}))
    accepted = dict(scope.get("headers", ())).get(b"accept-language", b"")
    request.META["HTTP_ACCEPT_LANGUAGE"] = accepted.decode("latin-1")
    return translation.get_language_from_request(request)

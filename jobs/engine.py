"""The process's long-lived event loop, on a thread of its own, where runs live.

Runs belong to no socket and no request: whoever starts one may go away. Plain functions that touch
tables go through `in_database`, whose threads close the connections that went bad.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import os
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import CoroutineType
from typing import Any, ParamSpec, TypeVar

from django.conf import settings
from django.db import connections

from .connections import with_healthy_connections
from .metrics import RUNS_AT_WORK

logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")


class Engine:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._threads: ThreadPoolExecutor | None = None
        self._tool_threads: ThreadPoolExecutor | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._in_turn: set[asyncio.Task[None]] = set()
        self._waiting: dict[str, tuple[asyncio.Task[None], Future[None]]] = {}
        self._draining = False
        self._stopping = False
        self._turns = asyncio.Semaphore(1)
        self._last_things: list[Callable[[], Awaitable[None]]] = []

    def at_end(self, work: Callable[[], Awaitable[None]]) -> None:
        """Have `work` done on the loop when it is stopped, after what runs was cancelled. What it
        raises is logged."""
        if work not in self._last_things:
            self._last_things.append(work)

    @property
    def draining(self) -> bool:
        """Whether the process is about to end: what runs stops where it can be taken up again."""
        return self._draining

    @property
    def running(self) -> int:
        """How many of those begun in turn are at work."""
        return len(self._in_turn)

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def submit(self, work: Callable[[], Coroutine[Any, Any, None]]) -> Future[None]:
        """Start `work()` on the loop, starting the loop first if need be. From any thread.

        What it raises is logged; the future is for those who want to wait. It is cancelled when the
        loop is just being stopped.
        """
        loop = self._started()
        if loop is None:
            return _cancelled()
        return asyncio.run_coroutine_threadsafe(self._watched(work), loop)

    def begin(self, key: str, work: Callable[[], Coroutine[Any, Any, None]]) -> Future[None]:
        """`submit` in turn: at most AGENTSITE_CONCURRENT_RUNS of these are at work at once.

        The future is done when the work has begun; it is cancelled when the process stops before. A
        second one with the same `key` joins the first while that waits.
        """
        loop = None if self._draining else self._started()
        if loop is None:
            return _cancelled()
        begun: Future[None] = Future()
        loop.call_soon_threadsafe(self._queue, key, work, begun)
        return begun

    def later(self, seconds: float, start: Callable[[], object]) -> None:
        """Call `start`, on the loop, after a while; forgotten if the process ends first."""
        loop = self._started()
        if loop is not None:
            loop.call_soon_threadsafe(loop.call_later, seconds, start)

    async def in_database(
        self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run a plain function in one of the engine's threads, where tables may be used."""
        threads = self._pool()
        # Log lines of the thread bear the ids that are bound here.
        context = contextvars.copy_context()
        call = partial(function, *args, **kwargs)
        return await asyncio.get_running_loop().run_in_executor(
            threads, partial(context.run, with_healthy_connections, call)
        )

    async def in_tool_thread(
        self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """`in_database` for work that may take long: it has threads of its own, so that nothing that
        must be written waits for it."""
        context = contextvars.copy_context()
        call = partial(function, *args, **kwargs)
        return await asyncio.get_running_loop().run_in_executor(
            self._tool_pool(), partial(context.run, with_healthy_connections, call)
        )

    def start_draining(self) -> None:
        """Take nothing new; what waits for its turn is refused. Returns at once, also in a signal
        handler."""
        self._draining = True
        loop = self._loop
        if loop is not None:
            loop.call_soon_threadsafe(self._refuse_waiting)

    def drain(self, seconds: float) -> None:
        """Let what is at work come to a place where it can be taken up again, then `stop`."""
        self.start_draining()
        end = time.monotonic() + seconds
        if self._in_turn:
            logger.info("waiting up to %s s for %d runs", seconds, len(self._in_turn))
        while self._in_turn and time.monotonic() < end:
            time.sleep(0.05)
        if self._in_turn:
            logger.warning("%d runs are cut off; another process takes them up", len(self._in_turn))
        # Each of them has its claim to give back, through a few threads.
        self.stop(grace=10.0)

    def stop(self, grace: float = 5.0) -> None:
        """Cancel what runs, wait for it to unwind, and end the threads. For tests and shutdown.

        Each of these waits takes `grace` seconds at most; what has not ended by then is left behind.
        """
        with self._lock:
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
            self._stopping = True
        try:
            self._end(loop, thread, grace)
        finally:
            self._stopping = False

    def _end(
        self,
        loop: asyncio.AbstractEventLoop | None,
        thread: threading.Thread | None,
        grace: float,
    ) -> None:
        if loop is not None and thread is not None:
            try:
                asyncio.run_coroutine_threadsafe(self._cancel_all(), loop).result(grace)
            except TimeoutError:
                logger.warning("what runs did not unwind within %s s and is left", grace)
            loop.call_soon_threadsafe(loop.stop)
            thread.join(grace)
            if not thread.is_alive():
                loop.close()
        # Not before: what unwinds writes its last words through them.
        with self._lock:
            threads, tools = self._threads, self._tool_threads
            self._threads = self._tool_threads = None
        if threads is not None:
            for _ in range(settings.AGENTSITE_DATABASE_THREADS):
                threads.submit(connections.close_all)
            ending = threading.Thread(target=threads.shutdown, daemon=True)
            ending.start()
            ending.join(grace)
        if tools is not None:
            # A tool that still works keeps its thread; its result goes nowhere.
            tools.shutdown(wait=False, cancel_futures=True)

    async def settle(self, seconds: float = 10.0) -> None:
        """Wait until nothing is under way. For tests; raises `TimeoutError`, which says what still is."""
        try:
            async with asyncio.timeout(seconds):
                while others := self._others():
                    await asyncio.wait(others)
        except TimeoutError:
            raise TimeoutError(where(self._others())) from None

    # --- on the loop ------------------------------------------------------------------------------

    def _queue(
        self, key: str, work: Callable[[], Coroutine[Any, Any, None]], begun: Future[None]
    ) -> None:
        if self._draining:
            begun.cancel()  # asked for a moment before; nobody would refuse it any more
            return
        known = self._waiting.get(key)
        if known is not None:
            known[1].add_done_callback(partial(_follow, begun))
            return
        task = asyncio.ensure_future(self._watched(partial(self._take_turn, key, work, begun)))
        self._waiting[key] = (task, begun)
        task.add_done_callback(partial(self._ended, key, begun))

    async def _take_turn(
        self, key: str, work: Callable[[], Coroutine[Any, Any, None]], begun: Future[None]
    ) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a coroutine of ours always runs in a task
        async with self._turns:
            del self._waiting[key]
            self._in_turn.add(task)
            RUNS_AT_WORK.inc()
            begun.set_result(None)
            await work()

    def _ended(self, key: str, begun: Future[None], task: asyncio.Task[None]) -> None:
        if task in self._in_turn:
            self._in_turn.discard(task)
            RUNS_AT_WORK.dec()
        if not task.cancelled():
            task.exception()  # logged before
        if not begun.done():
            self._waiting.pop(key, None)
            begun.cancel()

    def _refuse_waiting(self) -> None:
        for task, _begun in list(self._waiting.values()):
            task.cancel()

    async def _watched(self, work: Callable[[], Awaitable[None]]) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        try:
            await work()
        except asyncio.CancelledError:
            raise
        except Exception:
            logger.exception("a job failed")
            raise

    def _others(self) -> set[asyncio.Task[None]]:
        """What is under way on this loop; what one that has ended left behind is nobody's any more."""
        here, loop = asyncio.current_task(), asyncio.get_running_loop()
        return {
            task
            for task in self._tasks
            if task is not here and not task.done() and task.get_loop() is loop
        }

    async def _cancel_all(self) -> None:
        # Again and again, because what unwinds may ask for more (a command that ends wakes its
        # conversation).
        while others := self._others():
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)
        for work in self._last_things:
            try:
                await work()
            except Exception:
                logger.exception("something was not brought to its end")

    def _started(self) -> asyncio.AbstractEventLoop | None:
        """The loop, started if need be. None while it is being stopped: what unwinds asks for work
        too (a command that ends wakes its conversation), and would start a second loop."""
        with self._lock:
            if self._stopping:
                return None
            if self._loop is None:
                self._loop = _new_event_loop()
                self._turns = asyncio.Semaphore(settings.AGENTSITE_CONCURRENT_RUNS)
                self._thread = threading.Thread(
                    target=self._loop.run_forever, name="agentsite-engine", daemon=True
                )
                self._thread.start()
            return self._loop

    def _tool_pool(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._tool_threads is None:
                self._tool_threads = ThreadPoolExecutor(
                    settings.AGENTSITE_TOOL_THREADS, thread_name_prefix="agentsite-tool"
                )
            return self._tool_threads

    def _pool(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._threads is None:
                self._threads = ThreadPoolExecutor(
                    settings.AGENTSITE_DATABASE_THREADS, thread_name_prefix="agentsite-db"
                )
            return self._threads


def where(tasks: Iterable[asyncio.Task[Any]]) -> str:
    """At which lines these tasks wait, outermost first."""
    return "; ".join(" > ".join(_lines_of(task.get_coro())) for task in tasks)


def _lines_of(waiting: object) -> Iterator[str]:
    while isinstance(waiting, CoroutineType) and waiting.cr_frame is not None:
        frame = waiting.cr_frame
        yield f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno} {frame.f_code.co_name}"
        waiting = waiting.cr_await


def _new_event_loop() -> asyncio.AbstractEventLoop:
    """uvloop's where there is one: runs do little but wait for sockets, which costs it half."""
    try:
        import uvloop  # noqa: PLC0415 - not for every system
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


def _cancelled() -> Future[None]:
    future: Future[None] = Future()
    future.cancel()
    return future


def _follow(second: Future[None], first: Future[None]) -> None:
    """Have `second` end as `first` did."""
    if first.cancelled():
        second.cancel()
    else:
        second.set_result(None)


engine = Engine()
"""The process's own."""


def _begin_anew() -> None:
    """Threads do not come along into a forked process, and what they were at is the parent's."""
    Engine.__init__(engine)


os.register_at_fork(after_in_child=_begin_anew)

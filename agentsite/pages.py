"""Django's handler for requests, but a plain view costs one hand-over to a thread that is kept.

Django's own begins a thread for each request, which opens a database connection of its own, and goes to
it and back for each group of signals, each middleware that looks at views and the view. Views that are
coroutines (streams, long polls) take Django's road: they must not hold a thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from asgiref.sync import iscoroutinefunction, sync_to_async
from django.conf import settings
from django.core.exceptions import RequestAborted
from django.core.handlers.asgi import ASGIHandler, get_script_prefix
from django.core.handlers.base import BaseHandler
from django.core.signals import request_started
from django.http import FileResponse, Http404, HttpResponseBase
from django.urls import resolve, set_script_prefix

from agentsite.callers import Callers, person_of
from agentsite.logs import Receive, Scope, Send
from jobs.connections import keep_open, with_healthy_connections
from jobs.shares import Shares

T = TypeVar("T")

_threads = ThreadPoolExecutor(
    settings.AGENTSITE_REQUEST_THREADS, thread_name_prefix="agentsite-request"
)
_answering = Shares(max(1, settings.AGENTSITE_REQUEST_THREADS // 4))
"""Of these threads, how many answer one person: what she asks for may be made to take long."""


class PlainViews(BaseHandler):
    """All middleware and a plain view, in the thread that calls `get_response`."""

    def __init__(self) -> None:
        super().__init__()
        self.load_middleware()


class Pages(ASGIHandler):
    def __init__(self) -> None:
        super().__init__()
        self._plain = PlainViews()
        self._callers = Callers()

    async def handle(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if _is_for_a_coroutine(scope):
            await super().handle(scope, receive, send)
            return
        try:
            body = await self.read_body(receive)
        except RequestAborted:
            return
        with body:
            answer = partial(self._answer, scope, body)
            who = self._callers.key_of(scope)
            response, person = await _answering.run(who, _in_thread, answer)
            if person is not None:
                self._callers.learn(scope, person)
            if response.streaming:
                await self._stream(response, receive, send)
            else:
                await self.send_response(response, send)

    def _answer(self, scope: Scope, body: Any) -> tuple[HttpResponseBase, int | None]:
        """In a thread: the answer, and whose it is, where that was asked. What does not stream is done
        with when this returns, and only has to be sent."""

        def answered() -> tuple[HttpResponseBase, int | None]:
            set_script_prefix(get_script_prefix(scope))
            request_started.send(sender=type(self), scope=scope)
            request, refusal = self.create_request(scope, body)
            response: HttpResponseBase
            person: int | None = None
            if request is not None:
                response = self._plain.get_response(request)
                person = person_of(request)
            else:
                assert refusal is not None  # noqa: S101 - one of the two, says Django
                response = refusal
            keep_open()
            if not response.streaming:
                response.close()
            return response, person

        return with_healthy_connections(answered)

    async def _stream(self, response: Any, receive: Receive, send: Send) -> None:
        """Until all is sent, or nobody listens any more."""
        if isinstance(response, FileResponse):
            response.block_size = self.chunk_size
            # Django would read the whole file into memory before it sends the first piece.
            response.streaming_content = _read_on(response.streaming_content)
        sending = asyncio.ensure_future(self.send_response(response, send))
        leaving = asyncio.ensure_future(self.listen_for_disconnect(receive))
        try:
            await asyncio.wait((sending, leaving), return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                sending.result()
        finally:
            for task in (sending, leaving):
                task.cancel()
            await asyncio.gather(sending, leaving, return_exceptions=True)
            await sync_to_async(response.close)()


async def _in_thread(function: Callable[[], T]) -> T:
    return await sync_to_async(function, thread_sensitive=False, executor=_threads)()


async def _read_on(pieces: Any) -> AsyncIterator[bytes]:
    while piece := await asyncio.to_thread(next, pieces, b""):
        yield piece


def _is_for_a_coroutine(scope: Scope) -> bool:
    with suppress(Http404):
        return iscoroutinefunction(resolve(_path_info(scope)).func)
    return False


def _path_info(scope: Scope) -> str:
    """The path below the prefix that the site is mounted at."""
    path, prefix = str(scope["path"]), get_script_prefix(scope).rstrip("/")
    below = path.removeprefix(prefix)
    return below if below.startswith("/") else path

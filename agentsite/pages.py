"""Django's handler for requests, but middleware and a plain view cost one hand-over to a thread that is kept.

Django's own begins a thread for each request, which opens a database connection of its own, and goes to
it and back for each group of signals, each middleware that looks at views and the view. Views that are
coroutines (streams, long polls) must not hold a thread: middleware is done with its part before they
begin, and what it adds to an answer is added to theirs.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Any, TypeVar

from asgiref.sync import iscoroutinefunction, sync_to_async
from django.conf import settings
from django.core.exceptions import RequestAborted
from django.core.handlers.asgi import ASGIHandler, get_script_prefix
from django.core.handlers.base import BaseHandler
from django.core.handlers.exception import response_for_exception
from django.core.signals import request_started
from django.http import FileResponse, HttpRequest, HttpResponse, HttpResponseBase
from django.urls import set_script_prefix
from django.utils import translation
from django.utils.cache import patch_vary_headers

from agentsite.callers import Callers, person_of
from agentsite.doors import Door
from agentsite.logs import Receive, Scope, Send
from agentsite.promises import Promise, log_failure, promised_by
from jobs.connections import keep_open, with_healthy_connections
from jobs.shares import Shares
from mcpdoor.door import begin
from wire.halves import first_half

T = TypeVar("T")

_threads = ThreadPoolExecutor(
    settings.AGENTSITE_REQUEST_THREADS, thread_name_prefix="agentsite-request"
)
MOMENT = 0.02
"""Seconds in which most answers of coroutines are sent."""
_OF_THE_PROMISE = frozenset({"Content-Type", "Content-Length"})
_answering = Shares(max(1, settings.AGENTSITE_REQUEST_THREADS // 4))
"""Of these threads, how many answer one person: what she asks for may be made to take long."""


class Views(BaseHandler):
    """All middleware and a plain view, in the thread that calls `get_response`; of a coroutine a promise."""

    def __init__(self) -> None:
        super().__init__()
        self.load_middleware()

    def make_view_atomic(self, view: Callable[..., Any]) -> Callable[..., Any]:
        """Whatever Django calls for an answer goes through here."""
        if (first := first_half(view)) is not None:
            return partial(promised_by, first)
        view = super().make_view_atomic(view)
        if not iscoroutinefunction(view):
            return view

        def promised(request: HttpRequest, *args: Any, **given: Any) -> Promise:
            return Promise(request, partial(view, request, *args, **given))

        return promised

    def answer_to_failure(self, request: HttpRequest, error: Exception) -> HttpResponseBase:
        """As Django answers what a view raised."""
        found: HttpResponseBase | None = self.process_exception_by_middleware(error, request)
        return found or response_for_exception(request, error)


class Pages(ASGIHandler):
    def __init__(self) -> None:
        super().__init__()
        self._views = Views()
        self._doors = {"/mcp": Door(begin)}
        self._callers = Callers()

    async def handle(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        try:
            body = await self.read_body(receive)
        except RequestAborted:
            return
        with body:
            answer = partial(self._answer, scope, body)
            who = self._callers.key_of(scope)
            # Of what is behind a door nothing goes back to the loop by itself, so nothing has to be carried.
            in_thread = _in_thread_alone if scope["path"] in self._doors else _in_thread
            response, person = await _answering.run(who, in_thread, answer)
            if person is not None and person != who:
                self._callers.learn(scope, person)
            if response.streaming or isinstance(response, Promise):
                await self._send_while_heard(response, receive, send)
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
                answering = self._doors.get(request.path_info, self._views)
                response = answering.get_response(request)
                person = person_of(request)
            else:
                assert refusal is not None  # noqa: S101 - one of the two, says Django
                response = refusal
            keep_open()
            if not (response.streaming or isinstance(response, Promise)):
                response.close()
            return response, person

        return with_healthy_connections(answered)

    async def _send_while_heard(
        self, response: HttpResponseBase, receive: Receive, send: Send
    ) -> None:
        """Until all is sent, or nobody listens any more, which is looked at where it takes a moment."""
        tasks = [asyncio.ensure_future(self._send(response, send))]
        try:
            await asyncio.wait(tasks, timeout=MOMENT)
            if not tasks[0].done():
                tasks.append(asyncio.ensure_future(self.listen_for_disconnect(receive)))
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if tasks[0].done():
                tasks[0].result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            if isinstance(response, Promise) and not response.is_kept:
                response.close()
                response.request.close()

    async def _send(self, response: HttpResponseBase, send: Send) -> None:
        if isinstance(response, Promise):
            try:
                await self._send(await self._kept(response), send)
            finally:
                response.request.close()
            return
        if isinstance(response, FileResponse):
            response.block_size = self.chunk_size
            # Django would read the whole file into memory before it sends the first piece.
            response.streaming_content = _read_on(response.streaming_content)
        try:
            await self.send_response(response, send)
        finally:
            if response.streaming:
                await asyncio.shield(sync_to_async(response.close)())
            else:
                response.close()

    async def _kept(self, promise: Promise) -> HttpResponseBase:
        """The answer, with what middleware has added to its promise."""
        request = promise.request
        with translation.override(promise.language):
            try:
                response = await promise.view()
            except Exception as error:
                failed = partial(self._views.answer_to_failure, request, error)
                response = await _in_thread(partial(with_healthy_connections, failed))
        promise.is_kept = True
        for name, value in promise.items():
            if name == "Vary":
                patch_vary_headers(response, value.split(", "))
            elif name not in _OF_THE_PROMISE:
                response.headers.setdefault(name, value)
        if isinstance(response, HttpResponse):
            response.headers.setdefault("Content-Length", str(len(response.content)))
        for name, cookie in promise.cookies.items():
            response.cookies.setdefault(name, cookie)
        log_failure(request, response)
        return response


async def _in_thread(function: Callable[[], T]) -> T:
    return await sync_to_async(function, thread_sensitive=False, executor=_threads)()


async def _in_thread_alone(function: Callable[[], T]) -> T:
    """The same for what runs no coroutine in there and sets nothing for the loop: it costs a third."""
    run = copy_context().run
    return await asyncio.get_running_loop().run_in_executor(_threads, run, function)


async def _read_on(pieces: Any) -> AsyncIterator[bytes]:
    while piece := await asyncio.to_thread(next, pieces, b""):
        yield piece

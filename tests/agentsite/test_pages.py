"""How requests are answered: plain views in threads that are kept, coroutines on the loop."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from asgiref.testing import ApplicationCommunicator
from django.conf import settings
from django.core.signals import request_finished, request_started
from django.db import connection
from django.db.backends.signals import connection_created
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    JsonResponse,
    StreamingHttpResponse,
)
from django.test import Client
from django.urls import include, path
from django.utils import translation
from django.views.decorators.csrf import csrf_exempt

from accounts.models import User
from agentsite.pages import Pages, _answering
from harness.errors import NotFound
from tests.cast import ClientOf
from tests.patience import PATIENCE

left, at_work = threading.Event(), threading.Event()


@csrf_exempt
def where(request: HttpRequest) -> HttpResponse:
    connection.ensure_connection()
    said = {
        "thread": threading.current_thread().name,
        "language": translation.get_language(),
        "body": request.body.decode(),
        "path": request.get_full_path(),
    }
    translation.activate("de")
    return JsonResponse(said)


def who(request: HttpRequest) -> HttpResponse:
    return JsonResponse({"user": str(request.user)})


@csrf_exempt
async def on_the_loop(request: HttpRequest) -> HttpResponse:
    loop = asyncio.get_running_loop()
    said = {
        "loop": id(loop),
        "thread": threading.current_thread().name,
        "language": translation.get_language(),
        "body": request.body.decode(),
    }
    return JsonResponse(said, headers={"Vary": "Accept", "Content-Language": "fr"})


async def broken_on_the_loop(_request: HttpRequest) -> HttpResponse:
    raise RuntimeError("on purpose")


async def refused_on_the_loop(_request: HttpRequest) -> HttpResponse:
    raise NotFound("There is no such thing.")


async def slow_on_the_loop(_request: HttpRequest) -> HttpResponse:
    try:
        at_work.set()
        await asyncio.sleep(PATIENCE)
        return HttpResponse()
    finally:
        left.set()


async def stream_of_a_coroutine(request: HttpRequest) -> HttpResponseBase:
    return stream(request)


def broken(_request: HttpRequest) -> HttpResponse:
    raise RuntimeError("on purpose")


def stream(_request: HttpRequest) -> StreamingHttpResponse:
    async def pieces() -> AsyncIterator[bytes]:
        try:
            yield b"one "
            await asyncio.sleep(60)
        finally:
            left.set()

    return StreamingHttpResponse(pieces())


urlpatterns = [
    path("where/", where),
    path("loop/", on_the_loop),
    path("who/", who),
    path("broken/", broken),
    path("stream/", stream),
    path("broken-loop/", broken_on_the_loop),
    path("refused-loop/", refused_on_the_loop),
    path("slow-loop/", slow_on_the_loop),
    path("stream-loop/", stream_of_a_coroutine),
    path("", include("agentsite.urls")),
]

pytestmark = [
    pytest.mark.urls(__name__),
    pytest.mark.django_db(transaction=True),
    pytest.mark.asyncio,
]


@pytest.fixture(scope="module")
def pages() -> Pages:
    return Pages()


def ask(
    pages: Pages, path: str, body: bytes = b"", client: Client | None = None, language: str = "en"
) -> ApplicationCommunicator:
    headers = [(b"host", b"testserver"), (b"content-type", b"text/plain")]
    headers.append((b"accept-language", language.encode()))
    if client is not None:
        session = client.cookies[settings.SESSION_COOKIE_NAME].value
        headers.append((b"cookie", f"a=b; {settings.SESSION_COOKIE_NAME}={session}".encode()))
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "POST" if body else "GET",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": headers,
        "server": ("testserver", 80),
        "client": ("127.0.0.1", 1),
    }
    return ApplicationCommunicator(pages, scope)


async def answer(
    pages: Pages, path: str, body: bytes = b"", client: Client | None = None
) -> tuple[int, bytes]:
    asked = ask(pages, path, body, client)
    await asked.send_input({"type": "http.request", "body": body})
    start = await asked.receive_output(PATIENCE)
    content = await asked.receive_output(PATIENCE)
    await asked.wait(PATIENCE)
    return start["status"], content["body"]


async def told(pages: Pages, path: str, body: bytes = b"") -> dict[str, Any]:
    status, content = await answer(pages, path, body)
    assert status == 200, content
    return dict(json.loads(content))


async def test_plain_requests_are_answered_in_threads_that_keep_their_connections(pages: Pages):
    opened: list[str] = []

    def note(**_about: Any) -> None:
        opened.append(threading.current_thread().name)

    connection_created.connect(note)
    try:
        seen = [await told(pages, "/where/") for _ in range(10)]
    finally:
        connection_created.disconnect(note)
    threads = {one["thread"] for one in seen}
    assert all(name.startswith("agentsite-request") for name in threads)
    # A thread that has just answered may not be free yet, so it need not be one.
    assert len(threads) < 10
    if connection.vendor == "sqlite":
        assert len(opened) == len(set(opened)), "a thread opened a second connection"


async def test_what_one_request_set_for_itself_is_not_there_for_the_next(pages: Pages):
    seen = [await told(pages, "/where/") for _ in range(3)]
    assert {one["language"] for one in seen} == {"en"}


async def test_a_request_comes_with_its_body_and_its_address(pages: Pages):
    seen = await told(pages, "/where/", b"what was sent")
    assert (seen["body"], seen["path"]) == ("what was sent", "/where/")


async def test_a_coroutine_runs_on_the_servers_own_loop_and_holds_no_thread(pages: Pages):
    seen = await told(pages, "/loop/")
    assert seen["loop"] == id(asyncio.get_running_loop())
    assert seen["thread"] == threading.current_thread().name


async def test_a_coroutine_has_the_body_and_the_language_and_gets_what_middleware_adds(
    pages: Pages,
):
    asked = ask(pages, "/loop/", b"what was sent", language="de")
    await asked.send_input({"type": "http.request", "body": b"what was sent"})
    start = await asked.receive_output(PATIENCE)
    said = json.loads((await asked.receive_output(PATIENCE))["body"])
    assert (said["body"], said["language"]) == ("what was sent", "de")
    headers = {name.decode().lower(): value.decode() for name, value in start["headers"]}
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert "default-src" in headers["content-security-policy"]
    assert headers["content-type"] == "application/json"
    assert int(headers["content-length"]) > 0
    assert headers["content-language"] == "fr"  # what it says itself stands
    assert {each.strip() for each in headers["vary"].split(",")} >= {"Accept", "Accept-Language"}
    assert (await told(pages, "/loop/"))["language"] == "en"


async def test_a_coroutine_that_breaks_or_refuses_is_answered_as_a_view_is(pages: Pages):
    assert (await answer(pages, "/broken-loop/"))[0] == 500
    status, content = await answer(pages, "/refused-loop/")
    assert status == 404
    assert b"There is no such thing." in content


async def test_every_request_begins_and_ends_once_for_whoever_wants_to_know(pages: Pages):
    heard: list[str] = []

    def begun(**_about: Any) -> None:
        heard.append("begun")

    def ended(**_about: Any) -> None:
        heard.append("ended")

    request_started.connect(begun)
    request_finished.connect(ended)
    try:
        for path, status in (
            ("/where/", 200),
            ("/nowhere/", 404),
            ("/loop/", 200),
            ("/broken-loop/", 500),
        ):
            heard.clear()
            assert (await answer(pages, path))[0] == status
            assert heard == ["begun", "ended"], path
    finally:
        request_started.disconnect(begun)
        request_finished.disconnect(ended)


async def test_one_persons_requests_keep_nobody_elses_waiting(
    pages: Pages, alice: User, bob: User, client_of: ClientOf
):
    async def named(client: Client) -> str:
        status, content = await answer(pages, "/who/", client=client)
        assert status == 200
        return str(json.loads(content)["user"])

    signed_in = sync_to_async(lambda person: client_of(person))
    hers, elsewhere, his = [await signed_in(person) for person in (alice, alice, bob)]
    for client in (hers, elsewhere):
        assert await named(client) == "alice"  # whose it is, is known from now on
    gate = threading.Event()
    held = [
        asyncio.ensure_future(_answering.run(alice.pk, asyncio.to_thread, gate.wait))
        for _place in range(_answering._each)
    ]
    await asyncio.sleep(0)
    try:
        waiting = [asyncio.ensure_future(named(client)) for client in (hers, elsewhere)]
        assert await named(his) == "bob"
        assert (await told(pages, "/where/"))["path"] == "/where/"
        assert not any(each.done() for each in waiting)
    finally:
        gate.set()
    assert await asyncio.gather(*waiting) == ["alice", "alice"]
    await asyncio.gather(*held)


async def test_a_view_that_breaks_is_answered_and_the_next_one_works(pages: Pages):
    assert (await answer(pages, "/broken/"))[0] == 500
    assert (await answer(pages, "/where/"))[0] == 200


@pytest.mark.parametrize("path", ["/stream/", "/stream-loop/"])
async def test_a_stream_ends_when_its_reader_leaves(pages: Pages, path: str):
    left.clear()
    asked = ask(pages, path)
    await asked.send_input({"type": "http.request", "body": b""})
    assert (await asked.receive_output(PATIENCE))["status"] == 200
    assert (await asked.receive_output(PATIENCE))["body"] == b"one "
    await asked.send_input({"type": "http.disconnect"})
    await asked.wait(PATIENCE)
    assert left.is_set()


@pytest.mark.parametrize("at", ["once", "work"])
async def test_a_request_ends_once_when_its_reader_leaves_before_a_coroutine_has_answered(
    pages: Pages, at: str
):
    left.clear()
    at_work.clear()
    ended: list[str] = []

    def note(**_about: Any) -> None:
        ended.append("ended")

    request_finished.connect(note)
    try:
        asked = ask(pages, "/slow-loop/")
        await asked.send_input({"type": "http.request", "body": b""})
        if at == "work":
            assert await asyncio.to_thread(at_work.wait, PATIENCE)
        await asked.send_input({"type": "http.disconnect"})
        await asked.wait(PATIENCE)
    finally:
        request_finished.disconnect(note)
    assert ended == ["ended"]
    assert left.is_set() == at_work.is_set()

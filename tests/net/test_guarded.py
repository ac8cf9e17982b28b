"""A client for addresses that people typed: where it connects, and what its errors give away."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from functools import partial
from itertools import repeat

import httpx2
import pytest

from harness.errors import AddressRefused, BadRequest, ProviderError, ProviderUnreachable
from harness.provider import Provider
from net.addresses import Address
from net.guarded import MOST_COOKIES, GuardedTransport, guarded_client
from providers.table import ProviderConfig, build
from tests.heartbeat import MOST_SECONDS, longest_stall
from tests.patience import PATIENCE
from tests.standins.messages_api import MessagesApi
from tests.standins.provider_contract import ask, pieces_of, pieces_until_error
from tests.standins.wire import HttpFault

KEY = "sk-test"


class Judge:
    """Answers what it is told to, and remembers what it was asked."""

    def __init__(self, *answers: str) -> None:
        self._answers = answers
        self.asked: list[tuple[str, str, int]] = []

    def __call__(self, host: str, address: Address, port: int) -> None:
        self.asked.append((host, str(address), port))
        if why := self._answers[min(len(self.asked), len(self._answers)) - 1]:
            raise AddressRefused(why)

    def config(self, base_url: str, provider: str = "anthropic") -> ProviderConfig:
        return ProviderConfig(provider, KEY, base_url, connect=partial(_client, self))


def _client(judge: Judge, timeout: httpx2.Timeout) -> httpx2.AsyncClient:
    return guarded_client(judge, timeout=timeout, seconds=PATIENCE)


def address_of(api: MessagesApi, host: str) -> str:
    return api.base_url.replace("127.0.0.1", host)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
async def test_what_is_allowed_is_reached_under_its_own_name(host: str):
    judge = Judge("")
    async with MessagesApi(lambda _request: "Hello.") as api:
        provider = build(judge.config(address_of(api, host)))
        assert await pieces_of(provider, ask("Hi."))
        await provider.aclose()
        sent = {name.lower(): value for name, value in api.headers[0].items()}
        assert sent["host"] == address_of(api, host).removeprefix("http://")
        assert (host, "127.0.0.1", int(api.base_url.rpartition(":")[2])) in judge.asked


@pytest.mark.parametrize("name", ["anthropic", "openai_compatible"])
async def test_what_is_refused_hears_nothing_and_is_not_tried_again(name: str):
    judge = Judge("It leads inside.")
    async with MessagesApi(lambda _request: "Hello.") as api:
        provider = build(judge.config(address_of(api, "localhost"), name))
        _pieces, error = await pieces_until_error(provider, ask("Hi."))
        await provider.aclose()
        assert isinstance(error, BadRequest)
        assert error.message == "It leads inside."
        assert not error.retryable
        assert api.headers == []


async def test_a_name_that_changes_its_mind_is_judged_again():
    async with MessagesApi(lambda _request: "Hello.") as api:
        judge = Judge("", "It leads inside by now.")
        provider = build(judge.config(api.base_url))
        assert await pieces_of(provider, ask("Hi."))
        _pieces, error = await pieces_until_error(provider, ask("Hi again."))
        await provider.aclose()
        assert isinstance(error, BadRequest)
        assert len(api.headers) == 1


async def test_a_name_that_leads_nowhere_may_lead_somewhere_later():
    provider = build(Judge("").config("http://nowhere.invalid"))
    _pieces, error = await pieces_until_error(provider, ask("Hi."))
    await provider.aclose()
    assert isinstance(error, ProviderUnreachable)
    assert error.retryable


SECRET = "requirepass hunter2"


@asynccontextmanager
async def answering(status: str, body: str, kind: str = "application/json") -> AsyncIterator[str]:
    """Some server inside the network that is no model service; yields its address."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
        writer.write(f"{head}Connection: close\r\n\r\n{body}".encode())
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.mark.parametrize("provider", ["anthropic", "openai_compatible"])
@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        ("400 Bad Request", json.dumps({"error": {"message": SECRET}}), "application/json"),
        ("404 Not Found", f"<h1>{SECRET}</h1>", "text/html"),
        ("500 Broken", SECRET, "text/plain"),
        (
            "403 Forbidden",
            json.dumps({"type": "error", "error": {"message": SECRET}}),
            "application/json",
        ),
        (
            "200 OK",
            f'event: error\ndata: {{"type": "error", "error": {{"message": "{SECRET}"}}}}\n\n',
            "text/event-stream",
        ),
        ("200 OK", f"data: {SECRET}\n\n", "text/event-stream"),
        (f"302 Found\r\nLocation: /{SECRET.replace(' ', '-')}", "", "text/plain"),
        (f"999 {SECRET}", "", "text/plain"),
    ],
)
async def test_errors_repeat_no_word_of_what_answers_at_a_persons_address(
    provider: str, status: str, body: str, kind: str
):
    async with answering(status, body, kind) as address:
        error = await failed(build(Judge("").config(address, provider)))
    words = f"{error.message} {error.hint}"
    assert error.message
    assert not any(word in words for word in ("requirepass", "hunter2"))


@pytest.mark.parametrize("provider", ["anthropic", "openai_compatible"])
async def test_a_closed_port_and_its_address_are_not_told(provider: str):
    async with answering("200 OK", "") as address:
        pass
    error = await failed(build(Judge("").config(address, provider)))
    assert isinstance(error, ProviderUnreachable)
    assert "127.0.0.1" not in error.message
    assert "refused" not in error.message


async def test_the_operators_own_address_may_say_what_is_wrong():
    async with answering("400 Bad Request", json.dumps({"error": {"message": "No tools."}})) as at:
        error = await failed(build(ProviderConfig("openai_compatible", KEY, at)))
    assert "No tools." in error.message


async def streamed(
    headers: str,
    pieces: Iterable[bytes],
    status: str = "200 OK",
) -> int:
    """How much of an answer a client of ours takes from a server that sends all of this."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.1 {status}\r\n{headers}Connection: close\r\n\r\n".encode())
        with suppress(OSError):
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
        writer.close()

    taken = 0
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with (
        server,
        guarded_client(Judge(""), timeout=httpx2.Timeout(PATIENCE), seconds=PATIENCE) as client,
    ):
        address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with client.stream("GET", address) as response:
            async for piece in response.aiter_bytes():
                taken += len(piece)
    return taken


async def test_an_answer_without_an_end_is_broken_off():
    with pytest.raises(httpx2.RemoteProtocolError, match="longer than any"):
        await streamed("", repeat(b"x" * 1_000_000, 100))
    with pytest.raises(httpx2.RemoteProtocolError, match="longer than any"):
        await streamed("", repeat(b"x" * 100_000, 10), "500 Broken")
    assert await streamed("", repeat(b"x" * 100_000, 10)) == 1_000_000


async def test_an_answer_that_trickles_for_ever_is_broken_off():
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
        with suppress(OSError):
            while True:
                writer.write(b"x")
                await writer.drain()
                await asyncio.sleep(0)
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    timeout = httpx2.Timeout(PATIENCE)
    async with server, guarded_client(Judge(""), timeout=timeout, seconds=0.2) as client:
        with pytest.raises(httpx2.ReadTimeout, match="longer than any"):
            await client.get(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")


async def test_so_is_one_that_never_begins():
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    timeout = httpx2.Timeout(PATIENCE)
    async with server, guarded_client(Judge(""), timeout=timeout, seconds=0.05) as client:
        with pytest.raises(httpx2.ReadTimeout, match="longer than any"):
            await client.get(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")


@pytest.mark.parametrize("dialect", ["anthropic", "openai_compatible"])
async def test_no_key_follows_a_redirect(dialect):
    """Of an address that the operator named, which is not judged."""
    async with MessagesApi(lambda _request: "Hello.") as elsewhere:
        suffix = "/v1" if dialect == "openai_compatible" else ""
        path = "/v1/chat/completions" if suffix else "/v1/messages"
        moved = HttpFault(307, {}, {"Location": elsewhere.base_url + path})
        async with MessagesApi([moved]) as api:
            await failed(build(ProviderConfig(dialect, KEY, api.base_url + suffix)))
        assert elsewhere.headers == []


async def test_an_answer_that_would_unfold_is_not_taken():
    with pytest.raises(httpx2.RemoteProtocolError, match="compressed"):
        await streamed("Content-Encoding: gzip\r\n", [gzip.compress(b" " * 1_000_000)])


async def failed(provider: Provider) -> ProviderError:
    _pieces, error = await pieces_until_error(provider, ask("Hi."))
    await provider.aclose()
    assert isinstance(error, ProviderError)
    return error


async def test_clients_do_not_each_read_whom_they_trust():
    """That would hold up the loop on which all runs are."""
    limits = httpx2.Limits(max_connections=1)
    first, second = (GuardedTransport(Judge(), limits=limits, seconds=None) for _number in range(2))
    assert first._pool._ssl_context is second._pool._ssl_context


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        + b"1\r\na\r\n" * 30_000
        + b"0\r\n\r\n",
        b"HTTP/1.1 103 Early\r\n\r\n" * 8_000 + b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na",
    ],
    ids=["chunks of one byte", "interim answers"],
)
async def test_an_answer_in_the_smallest_pieces_keeps_nobody_else_waiting(answer: bytes):
    async def send(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(send, "127.0.0.1", 0)
    address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"

    async def read() -> None:
        async with _client(Judge(""), httpx2.Timeout(PATIENCE)) as client:
            assert set((await client.get(address)).text) == {"a"}

    async with server:
        assert await longest_stall(read) <= MOST_SECONDS


@pytest.mark.parametrize("status", ["200 OK", "500 Broken"])
@pytest.mark.parametrize(
    "kind",
    [
        "text/plain; charset=punycode",
        "text/plain; charset*=utf-8''punycode",
        "text/plain; charset=utf-7",
    ],
)
async def test_an_answer_is_not_decoded_by_an_odd_character_set_that_it_names(
    status: str, kind: str
):
    async with answering(status, "Mnchen-3ya+-", kind) as address:
        timeout = httpx2.Timeout(PATIENCE)
        async with guarded_client(Judge(""), timeout=timeout, seconds=PATIENCE) as client:
            answer = await client.get(address)
            assert answer.text == "Mnchen-3ya+-"
            assert answer.headers["Content-Type"] == "text/plain"


@pytest.mark.parametrize(
    ("count", "kept"), [(MOST_COOKIES, MOST_COOKIES), (MOST_COOKIES + 1, 0), (5_000, 0)]
)
async def test_of_more_cookies_than_anybody_sets_none_is_read(count: int, kept: int):
    cookies = "".join(f"\r\nSet-Cookie: a{number}=b" for number in range(count))
    async with answering("200 OK", "Hello.", f"text/plain{cookies}") as address:
        timeout = httpx2.Timeout(PATIENCE)
        async with guarded_client(Judge(""), timeout=timeout, seconds=PATIENCE) as client:
            assert (await client.get(address)).text == "Hello."
            assert len(client.cookies.jar) == kept

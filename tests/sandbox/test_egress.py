"""Which addresses the way out never opens, and which requests it does not even read."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from ipaddress import ip_address

import pytest
from pydantic import ValidationError

from sandbox.egress import EgressProxy, Refused, Request, Streams, entry_for, why_unreachable
from sandbox.policy import Endpoint
from tests.heartbeat import MOST_SECONDS, longest_stall, seconds_of_work

PLAIN = Endpoint(host="a.example")
PRIVATE = Endpoint(host="a.example", allowed_ips=("10.0.0.0/8", "fd00::/8", "0.0.0.0/0"))


ANYWHERE = Endpoint(host="*", ports=(80, 443))


@pytest.mark.parametrize("head", [b"CONNECT a.example:443", b"GET http://93.184.216.34/"])
def test_an_unrestricted_entry_is_for_every_host_on_its_ports(head: bytes):
    assert entry_for(Request.parse(head + b" HTTP/1.1\r\n\r\n"), [ANYWHERE]) is ANYWHERE
    with pytest.raises(Refused, match="port"):
        entry_for(Request.parse(b"CONNECT a.example:25 HTTP/1.1\r\n\r\n"), [ANYWHERE])


@pytest.mark.parametrize("address", ["10.1.2.3", "127.0.0.1", "169.254.169.254", "fd12::1", "::1"])
def test_an_unrestricted_entry_opens_no_address_inside(address: str):
    assert why_unreachable(ip_address(address), ANYWHERE)
    with pytest.raises(ValidationError, match="public hosts alone"):
        Endpoint(host="*", allowed_ips=("10.0.0.0/8",))


@pytest.mark.parametrize("address", ["93.184.216.34", "2606:2800:220:1::1"])
def test_public_addresses_are_open(address: str):
    assert why_unreachable(ip_address(address), PLAIN) == ""


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "127.9.9.9", "0.0.0.0", "::1", "::", "::ffff:127.0.0.1", "::127.0.0.1"),
        *("169.254.169.254", "fe80::1", "fd00:ec2::254", "168.63.129.16", "100.100.100.200"),
        *("64:ff9b::7f00:1", "2002:7f00:1::", "224.0.0.1", "ff02::1", "::ffff:169.254.1.1"),
    ],
)
def test_this_machine_link_local_and_metadata_are_never_open(address: str):
    assert why_unreachable(ip_address(address), PLAIN)
    assert why_unreachable(ip_address(address), PRIVATE)


@pytest.mark.parametrize("address", ["10.1.2.3", "::ffff:10.1.2.3", "fd12::1", "192.168.0.1"])
def test_private_addresses_are_open_only_where_the_policy_names_their_network(address: str):
    assert why_unreachable(ip_address(address), PLAIN) == "it is a private address"
    assert why_unreachable(ip_address(address), PRIVATE) == ""


@pytest.mark.parametrize(
    "head",
    [
        b"GET / HTTP/1.1",
        b"GET https://a.example/ HTTP/1.1",
        b"GET http://a.example/ HTTP/2",
        b"GET  http://a.example/ HTTP/1.1",
        b"get http://a.example/ HTTP/1.1",
        b"GET http://u@a.example/ HTTP/1.1",
        b"GET http://a.example:x/ HTTP/1.1",
        b"GET http://a.ex%61mple/ HTTP/1.1",
        b"CONNECT a.example HTTP/1.1",
        b"CONNECT a.example:443/x HTTP/1.1",
        b"GET http://a.example/ HTTP/1.1\r\nX : y",
        b"GET http://a.example/ HTTP/1.1\r\nX: y\nHost: z",
        b"GET http://a.example/ HTTP/1.1\r\n folded: x",
        b"GET http://a.example/ HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2",
        b"GET http://a.example/ HTTP/1.1\r\nContent-Length: +1",
        b"GET http://a.example/ HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked",
        b"GET http://a.example/ HTTP/1.1\r\nTransfer-Encoding: gzip, chunked",
    ],
)
def test_requests_that_may_be_read_in_two_ways_are_refused(head: bytes):
    with pytest.raises(Refused):
        Request.parse(head + b"\r\n\r\n")


def test_a_request_is_passed_on_with_its_own_host_and_without_the_proxys_headers():
    request = Request.parse(
        b"GET http://A.example:8080/p?q=1 HTTP/1.1\r\nHost: evil.example\r\nProxy-Authorization: x\r\n"
        b"Connection: keep-alive, X-Inner\r\nX-Inner: 1\r\nAccept: */*\r\n\r\n"
    )
    assert (request.host, request.port) == ("a.example", 8080)
    assert request.forwarded_head() == (
        b"GET /p?q=1 HTTP/1.1\r\nHost: a.example:8080\r\nConnection: close\r\nAccept: */*\r\n\r\n"
    )


def test_a_tunnel_names_its_host_and_port():
    request = Request.parse(b"CONNECT a.example.:443 HTTP/1.1\r\n\r\n")
    assert (request.method, request.host, request.port) == ("CONNECT", "a.example", 443)


def test_a_header_of_blanks_is_read_in_time_that_grows_with_its_length():
    head = b"GET http://a.example/ HTTP/1.1\r\nX: \t x" + b" " * 30_000 + b"y \r\n\r\n"
    assert seconds_of_work(lambda: Request.parse(head)) < 0.01
    assert Request.parse(head).headers == ((b"X", b"x" + b" " * 30_000 + b"y"),)


async def test_a_body_in_the_smallest_chunks_keeps_nobody_else_waiting():
    taken = bytearray()

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while not taken.endswith(b"\r\n0\r\n\r\n"):
            taken.extend(await reader.read(65_536))
        writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        writer.close()

    far = await asyncio.start_server(take, "127.0.0.1", 0)
    there = far.sockets[0].getsockname()[1]

    async def connect(_address: str, _port: int) -> Streams:
        return await asyncio.open_connection("127.0.0.1", there)

    async def resolve(_host: str, _port: int) -> list[str]:
        return ["93.184.216.34"]

    proxy = EgressProxy([Endpoint(host="a.example", ports=(80,))], resolve=resolve, connect=connect)
    port = await proxy.start_on_loopback()

    async def send() -> None:
        taken.clear()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        head = b"POST http://a.example/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
        writer.write(head + b"1\r\na\r\n" * 30_000 + b"0\r\n\r\n")
        assert (await reader.read()).startswith(b"HTTP/1.1 204")
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()

    async with far:
        try:
            assert await longest_stall(send) <= MOST_SECONDS
        finally:
            await proxy.close()

"""Whose request it is behind a proxy: what our own proxies wrote counts, nothing that a visitor wrote."""

from __future__ import annotations

from typing import Any

import pytest

from agentsite.proxies import TrueClient, client_of


@pytest.fixture
def behind(settings):
    settings.AGENTSITE_BEHIND_PROXY = True
    return settings


def said(*values: str, proto: str = "") -> list[tuple[bytes, bytes]]:
    headers = [(b"x-forwarded-for", value.encode()) for value in values]
    return [*headers, (b"x-forwarded-proto", proto.encode())] if proto else headers


@pytest.mark.parametrize(
    ("headers", "count", "expected"),
    [
        (said("203.0.113.7"), 1, "203.0.113.7"),
        (said("1.2.3.4, 203.0.113.7"), 1, "203.0.113.7"),
        (said("1.2.3.4", "203.0.113.7"), 1, "203.0.113.7"),
        (said("1.2.3.4, 203.0.113.7, 10.0.0.2"), 2, "203.0.113.7"),
        (said("203.0.113.7"), 2, "203.0.113.7"),
        (said("203.0.113.7:4711"), 1, "203.0.113.7"),
        (said("[2001:db8::1]:4711"), 1, "2001:db8::1"),
        (said("nonsense"), 1, "127.0.0.1"),
        (said(""), 1, "127.0.0.1"),
        ([], 1, "127.0.0.1"),
    ],
)
def test_the_entry_of_the_outermost_of_our_proxies_counts(behind, headers, count, expected):
    behind.AGENTSITE_PROXY_COUNT = count
    assert client_of("127.0.0.1", headers)[0] == expected


def test_nobody_else_is_believed(behind):
    behind.AGENTSITE_TRUSTED_PROXIES = ["192.0.2.1", "2001:db8::/32"]
    given = said("1.2.3.4", proto="https")
    assert client_of("198.51.100.9", given) == ("198.51.100.9", "")
    assert client_of("192.0.2.1", given) == ("1.2.3.4", "https")
    assert client_of("::ffff:192.0.2.1", given) == ("1.2.3.4", "https")
    behind.AGENTSITE_BEHIND_PROXY = False
    assert client_of("192.0.2.1", given) == ("192.0.2.1", "")


@pytest.mark.parametrize("kind", ["http", "websocket"])
async def test_an_application_finds_the_visitor_and_none_of_the_headers(behind, kind):
    seen = {}

    async def application(scope, receive, send):
        seen.update(scope)

    headers = [
        (b"host", b"a"),
        (b"x-real-ip", b"6.6.6.6"),
        *said("1.1.1.1, 2.2.2.2", proto="https"),
    ]
    scope = {"type": kind, "client": ("127.0.0.1", 1), "scheme": "http", "headers": headers}
    nobody: Any = None
    await TrueClient(application)(scope, nobody, nobody)
    assert seen["client"][0] == "2.2.2.2"
    assert seen["scheme"] == {"http": "https", "websocket": "wss"}[kind]
    assert seen["headers"] == [(b"host", b"a")]

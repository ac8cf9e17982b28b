"""Only pages of this site open its sockets with a session: scheme, host and port are compared."""

from __future__ import annotations

import pytest
from asgiref.testing import ApplicationCommunicator

from agentsite.origins import OriginGuard

pytestmark = pytest.mark.django_db  # whoever closes a socket looks after its thread's connection


async def gets_in(
    origin: str | None, host: str = "agents.example.org", scheme: str = "wss"
) -> bool:
    seen = []

    async def application(scope, receive, send):
        seen.append(dict(scope["headers"]))
        await send({"type": "websocket.accept"})

    headers = [(b"host", host.encode()), (b"cookie", b"a=b")]
    if origin is not None:
        headers.append((b"origin", origin.encode()))
    line = ApplicationCommunicator(
        OriginGuard(application),
        {"type": "websocket", "scheme": scheme, "path": "/", "headers": headers},
    )
    await line.send_input({"type": "websocket.connect"})
    answer = await line.receive_output(5)
    if seen:
        assert (b"cookie" in seen[0]) == (origin is not None)
    return bool(answer["type"] == "websocket.accept")


@pytest.fixture(autouse=True)
def site(settings) -> None:
    settings.ALLOWED_HOSTS = ["agents.example.org"]
    settings.CSRF_TRUSTED_ORIGINS = []


@pytest.mark.parametrize(
    "origin",
    [
        "http://agents.example.org",
        "https://agents.example.org:8443",
        "https://other.example.org",
        "https://agents.example.org.evil.test",
        "https://agents.example.org@evil.test",
        "null",
        "",
        "https://agents.example.org:port",
        "https://",
    ],
)
async def test_another_scheme_host_or_port_is_another_site(origin):
    assert not await gets_in(origin)


async def test_the_page_s_own_origin_gets_in_with_its_port_written_or_not():
    assert await gets_in("https://agents.example.org")
    assert await gets_in("https://agents.example.org:443")
    assert await gets_in("https://AGENTS.example.org")
    assert await gets_in("http://agents.example.org:8000", "agents.example.org:8000", "ws")
    assert not await gets_in("http://agents.example.org:8001", "agents.example.org:8000", "ws")


async def test_a_host_that_is_not_ours_vouches_for_no_page():
    assert not await gets_in("https://evil.test", "evil.test")


async def test_a_trusted_origin_gets_in_whatever_a_proxy_made_of_the_request(settings):
    settings.CSRF_TRUSTED_ORIGINS = ["https://agents.example.org"]
    assert await gets_in("https://agents.example.org", "127.0.0.1:8000", "ws")
    assert not await gets_in("http://agents.example.org", "127.0.0.1:8000", "ws")


async def test_what_is_no_page_gets_in_without_its_cookies():
    assert await gets_in(None)

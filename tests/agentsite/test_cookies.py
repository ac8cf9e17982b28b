"""Cookies are read in one pass, whatever is written in them, by everybody who looks at a request."""

from __future__ import annotations

from http import cookies
from typing import Any

import pytest
from asgiref.testing import ApplicationCommunicator
from django.conf import settings
from django.http import parse_cookie
from hypothesis import given
from hypothesis import strategies as st

from agentsite import credentials
from agentsite.asgi import application
from agentsite.callers import Callers
from agentsite.cookies import Cookies, cookies_in

ESCAPED = (
    r'"\0' + r"\0" * 15_000 + '"',
    '"' + r"\"" * 15_000 + '"',
    r'"\012\"' + r"\1" * 15_000 + '"',
)


def header(text: str) -> list[tuple[bytes, bytes]]:
    return [(b"cookie", text.encode("latin-1"))]


async def handed_on(kind: str, headers: list[tuple[bytes, bytes]]) -> dict[str, Any]:
    seen: list[dict[str, Any]] = []

    async def inner(scope, receive, send):
        seen.append(scope)

    async def nothing(*_args: Any) -> None:
        raise AssertionError("nobody sends or receives here")

    await Cookies(inner)({"type": kind, "headers": headers}, nothing, nothing)
    return seen[0]


@given(
    st.lists(
        st.sampled_from([*"ab1 =;,\t\"'\xe9\xa0\x85", "sessionid=", "; ", '="']), max_size=40
    ).map("".join)
)
def test_what_has_no_backslash_is_read_as_django_reads_it(text):
    assert cookies_in(header(text)) == parse_cookie(text)


@pytest.mark.parametrize("kind", ["http", "websocket"])
@pytest.mark.parametrize("escaped", ESCAPED)
async def test_an_escaped_value_is_handed_on_to_nobody_and_the_others_are(kind, escaped):
    scope = await handed_on(
        kind, header(f"a=1; b={escaped}; {escaped}; sessionid=s; c=back\\slash")
    )
    assert dict(scope["headers"]) == {b"cookie": b"a=1; sessionid=s; c=back\\slash"}
    if kind == "websocket":
        assert scope["cookies"] == {"a": "1", "sessionid": "s", "c": "back\\slash"}


async def test_several_headers_are_handed_on_as_one():
    """Django would put a comma between them."""
    scope = await handed_on("http", [*header("a=1"), (b"host", b"x"), *header("sessionid=s; d")])
    assert scope["headers"] == [(b"host", b"x"), (b"cookie", b"a=1; sessionid=s; =d")]
    assert parse_cookie(dict(scope["headers"])[b"cookie"].decode()) == {
        "a": "1",
        "sessionid": "s",
        "": "d",
    }


async def test_without_cookies_a_socket_has_none():
    scope = await handed_on("websocket", [(b"host", b"x")])
    assert scope["headers"] == [(b"host", b"x")]
    assert scope["cookies"] == {}


@pytest.fixture
def backslashes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Values with backslashes that Python's own reader was given."""
    seen: list[str] = []
    reader = cookies._unquote

    def noted(value: str) -> str:
        if "\\" in value:
            seen.append(value)
        return "" if len(value) > 1_000 else reader(value)

    monkeypatch.setattr(cookies, "_unquote", noted)
    return seen


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("path", ["/", "/accounts/login/", "/api/chat", "/mcp", "/admin/"])
async def test_no_page_has_python_read_an_escaped_value(path, backslashes):
    line = ApplicationCommunicator(
        application,
        {
            "type": "http",
            "method": "GET",
            "path": path,
            "query_string": b"",
            "client": ("127.0.0.1", 5),
            "headers": [(b"host", b"testserver"), *header(f"theme=dark; sessionid={ESCAPED[0]}")],
        },
    )
    await line.send_input({"type": "http.request"})
    assert (await line.receive_output(timeout=10))["status"] < 500
    assert backslashes == []


@pytest.mark.django_db(transaction=True)
async def test_no_socket_has_python_read_an_escaped_value(backslashes):
    line = ApplicationCommunicator(
        application,
        {
            "type": "websocket",
            "scheme": "ws",
            "path": "/api/chat/x/ws",
            "query_string": b"",
            "client": ("127.0.0.1", 5),
            "headers": [
                *[(b"host", b"testserver"), (b"origin", b"http://testserver")],
                *header(f"sessionid={ESCAPED[0]}"),
            ],
        },
    )
    await line.send_input({"type": "websocket.connect"})
    assert (await line.receive_output(timeout=10))["type"] in {
        "websocket.accept",
        "websocket.close",
    }
    assert backslashes == []


@pytest.mark.django_db
def test_who_looks_before_django_has_python_read_none_either(backslashes):
    shown = header(f"{settings.SESSION_COOKIE_NAME}={ESCAPED[0]}")
    assert not credentials.is_known(shown)
    Callers().key_of({"type": "http", "headers": shown, "client": ("127.0.0.1", 5)})
    assert backslashes == []

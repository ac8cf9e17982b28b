"""What a request says of its body's coding: UTF-8, or it is refused before anybody decodes by it."""

from __future__ import annotations

from typing import Any

import pytest
from asgiref.testing import ApplicationCommunicator

from agentsite.asgi import application

BOUNDARY = "zzz"
FORM = f"multipart/form-data; boundary={BOUNDARY}"
VALUES = (b"plain", b"\\ud800", b"+2AA-")
DOORS = ("/accounts/login/", "/accounts/password/reset/", "/v1/files", "/api/chat", "/mcp")
ODD = (
    *("unicode_escape", "utf-7", "idna", "punycode", "rot13", "base64", "undefined", "utf-16"),
    *('"idna"', " idna"),
)


def form(value: bytes, name: bytes = b'name="login"') -> bytes:
    head = b"Content-Disposition: form-data; " + name
    return b"--zzz\r\n" + head + b"\r\n\r\n" + value + b"\r\n--zzz--\r\n"


async def status(path: str, content_type: str, body: bytes) -> int:
    scope: dict[str, Any] = {
        "type": "http",
        "method": "POST",
        "path": path,
        "query_string": b"",
        "client": ("127.0.0.1", 5),
        "headers": [
            (b"host", b"testserver"),
            (b"content-type", content_type.encode("latin-1")),
            (b"content-length", str(len(body)).encode()),
        ],
    }
    line = ApplicationCommunicator(application, scope)
    await line.send_input({"type": "http.request", "body": body})
    return int((await line.receive_output(timeout=10))["status"])


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("charset", ODD)
async def test_a_body_in_a_coding_that_is_not_utf_8_is_refused(charset):
    for path in DOORS:
        for value in VALUES:
            assert await status(path, f"{FORM}; charset={charset}", form(value)) == 415


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "content_type",
    [
        "text/plain; charset=rot13",
        "a/b; Charset = idna",
        f"{FORM}; charset*=rot13''x",
        "text/plain; a*=rot13''x",
        "text/plain; a*=idna''x%ff",
    ],
)
async def test_a_coding_by_which_the_header_or_the_query_would_be_read_is_refused(content_type):
    for path in DOORS:
        assert await status(path, content_type, form(b"plain")) == 415


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("charset", ["utf-8", "UTF8", '"utf-8"', "us-ascii"])
async def test_utf_8_by_any_of_its_names_is_taken(charset):
    assert await status("/accounts/login/", f"{FORM}; charset={charset}", form(b"a")) != 415


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", [b"name*=rot13''x", b"name*=utf-7''%2B2AA-", b"name*=idna''%ff"])
async def test_a_name_in_some_coding_is_no_fault_of_the_server(name):
    for path in DOORS:
        assert await status(path, FORM, form(b"plain", name)) < 500

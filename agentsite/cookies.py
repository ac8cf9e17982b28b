"""Cookies of a request, read in one pass, for Django and for whoever looks before it does.

Django and channels read them by Python's own `http.cookies`, for which a quoted value with many backslashes
takes the square of its length (before Python 3.11.10 and 3.12.6), before anybody was asked who they are.
Neither this site nor a library it uses writes such a value, so none is handed on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from agentsite.logs import App, Receive, Scope, Send

_NAME = b"cookie"

Headers = Iterable[tuple[bytes, bytes]]


def cookies_in(headers: Headers) -> dict[str, str]:
    """As Django's `request.COOKIES`, of all headers together. Names of headers in lower case."""
    return {name: _unquoted(value) for name, value in _cookies(headers)}


class Cookies:
    """ASGI: one header of cookies that all readers take in one pass, and for sockets `scope["cookies"]`."""

    def __init__(self, app: App) -> None:
        self.inner = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        given: Headers = scope["headers"]
        if any(name == _NAME for name, _value in given):
            plain = "; ".join(f"{name}={value}" for name, value in _cookies(given))
            headers = [pair for pair in given if pair[0] != _NAME]
            scope = {**scope, "headers": [*headers, (_NAME, plain.encode("latin-1"))]}
        if scope["type"] == "websocket":
            scope = {**scope, "cookies": cookies_in(scope["headers"])}
        await self.inner(scope, receive, send)


def _cookies(headers: Headers) -> Iterator[tuple[str, str]]:
    """Names and values as they were sent, but none that is quoted and has a backslash."""
    for header, line in headers:
        if header != _NAME:
            continue
        for chunk in line.decode("latin-1").split(";"):
            # What has no "=" is a value without a name, to browsers and to Django.
            name, found, value = chunk.partition("=")
            name, value = (name.strip(), value.strip()) if found else ("", name.strip())
            if (name or value) and not (_is_quoted(value) and "\\" in value):
                yield name, value


def _is_quoted(value: str) -> bool:
    return len(value) > 1 and value[0] == value[-1] == '"'


def _unquoted(value: str) -> str:
    return value[1:-1] if _is_quoted(value) else value

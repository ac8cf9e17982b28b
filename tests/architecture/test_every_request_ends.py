"""Whatever this server asks of others has a time to end in, and takes no key along a redirect.

A limit of each step is not enough: an answer that trickles keeps to it for ever.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache

from .sources import PRODUCT, nodes_of

INSIDE = ("sandbox/inside/", "skills_app/shipped/", "bench/")
"""What runs in a sandbox, which has its own time and no keys; and what measures."""

MAKERS = {
    "guarded_client": "seconds",
    "GuardedTransport": "seconds",
    "AsyncAnthropic": "http_client",
    "AsyncOpenAI": "http_client",
    "DefaultAioHttpClient": "follow_redirects",
    "DefaultAsyncHttpxClient": "follow_redirects",
    "AsyncClient": "follow_redirects",
}
"""What makes a client, and what has to be said of it. A provider's time is that of its reply."""
TIMED_BY = {
    "net/guarded.py": "its transport",
    "mcpservers/transport.py": "its sessions",
    "timelines/exporting.py": "asyncio.timeout",
}
"""Where plain clients are made, and what ends their requests."""
WITHOUT_AN_END = frozenset({"urlopen", "urlretrieve", "Client", "HTTPTransport"})
"""Of urllib and httpx: they know no time for the whole, and follow redirects with every header."""
SENDING = frozenset({"get", "post", "put", "patch", "delete", "head", "request", "ws_connect"})


@cache
def _calls() -> tuple[tuple[str, ast.Call, str, str], ...]:
    return tuple(_found())


def _found() -> Iterator[tuple[str, ast.Call, str, str]]:
    for path in PRODUCT:
        if path.as_posix().startswith(INSIDE):
            continue
        for node in nodes_of(path):
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func) if not isinstance(node.func, ast.Call) else ""
                owner, _, name = called.rpartition(".")
                yield path.as_posix(), node, owner, name


def _said(call: ast.Call, name: str) -> ast.expr | None:
    return next((each.value for each in call.keywords if each.arg == name), None)


def test_every_client_says_what_ends_its_requests():
    found = [each for each in _calls() if each[3] in MAKERS]
    assert len(found) > 8
    silent = [
        f"{path}:{call.lineno} {name}({MAKERS[name]}=…)"
        for path, call, _, name in found
        if _said(call, MAKERS[name]) is None
    ]
    assert silent == []


def test_none_follows_redirects():
    following = [
        f"{path}:{call.lineno}"
        for path, call, _, name in _calls()
        for value in (_said(call, "follow_redirects"), _said(call, "allow_redirects"))
        if value is not None and not (isinstance(value, ast.Constant) and value.value is False)
    ]
    assert following == []


def test_plain_clients_are_made_where_something_ends_them():
    assert {path for path, _, _, name in _calls() if name == "AsyncClient"} == set(TIMED_BY)


def test_nothing_asks_by_a_library_that_knows_no_end():
    asking = [
        f"{path}:{call.lineno} {name}"
        for path, call, owner, name in _calls()
        if name in WITHOUT_AN_END and owner.rpartition(".")[2] in {"", "request", "httpx", "httpx2"}
    ]
    assert [each for each in asking if "Client" not in each or "httpx" in each] == []


def test_sessions_of_aiohttp_say_that_they_follow_nothing():
    users = {path for path, _, _, name in _calls() if name == "ClientSession"}
    assert users
    sent = [
        f"{path}:{call.lineno}"
        for path, call, owner, name in _calls()
        if path in users
        and name in SENDING
        and owner.endswith("session")
        and _said(call, "allow_redirects") is None
    ]
    assert sent == []

"""Every route says how long a body may be, and a stranger's is short everywhere."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.urls import URLPattern, URLResolver, get_resolver

from agentsite.bodies import UNKNOWN, body_length
from agentsite.routelimits import _LARGE, PAGE_BYTES, limit_of, limit_of_route

SHORT = 128 * 1024
LONG = 40 * 1024 * 1024
SKILLS = {"v1/skills", "v1/skills/<str:uid>/versions", "skills/new/", "skills/<id:uid>/edit/"}
"""Longer than a form, and no longer than a skill may be."""
DOCUMENTS = {"settings/documents/<id:uid>/", "api/collections/<id:uid>/documents"}
"""No longer than a document may be."""
MAILS = {"hooks/mail"}
"""No longer than a mail may be, by whoever shows the secret of mail services."""


def routes(resolver: URLResolver | None = None, before: str = "") -> Iterator[str]:
    for one in (resolver or get_resolver()).url_patterns:
        if isinstance(one, URLPattern):
            yield before + str(one.pattern)
        else:
            yield from routes(one, before + str(one.pattern))


def test_a_stranger_s_body_is_short_on_every_route():
    known = list(routes())
    assert len(known) > 300
    for route in known:
        limit = limit_of_route(route)
        assert 0 < limit.anonymous <= SHORT, route
        assert limit.anonymous < limit.signed_in, route


def test_only_the_routes_that_take_files_take_long_bodies_of_anybody():
    long = {route for route in routes() if limit_of_route(route).signed_in > LONG}
    assert long | SKILLS | DOCUMENTS | MAILS | {"mcp"} == set(_LARGE)
    assert all(limit_of_route(route).signed_in > PAGE_BYTES for route in SKILLS | DOCUMENTS)


def test_a_route_is_found_by_an_address():
    assert limit_of("/v1/files").signed_in > LONG
    assert limit_of("/attachments/").signed_in > LONG
    assert limit_of("/c/abc/files/upload/").signed_in > LONG or limit_of("/c/abc/").signed_in < LONG
    assert limit_of("/nowhere/").signed_in <= SHORT


@pytest.mark.parametrize(
    ("headers", "length"),
    [
        ([], 0),
        ([(b"content-length", b"0")], 0),
        ([(b"content-length", b"17")], 17),
        ([(b"content-length", b"-1")], UNKNOWN),
        ([(b"content-length", b"0"), (b"transfer-encoding", b"chunked")], UNKNOWN),
    ],
)
def test_what_a_request_declares_is_read(headers, length):
    assert body_length(headers) == length

"""Pages of other sites: let in by setting only, with tokens only, at the doors for programs only."""

from __future__ import annotations

import pytest
from asgiref.testing import ApplicationCommunicator
from django.test import Client

from accounts.actions.tokens import create_token
from accounts.models import TokenScope
from agentsite import cors
from agentsite.checks import check_installation
from agentsite.origins import OriginGuard

THEIRS = "https://app.example.com"
ASKS = "access-control-request-method"
ALLOWED = "access-control-allow-origin"


@pytest.fixture
def let_in(settings) -> None:
    settings.AGENTSITE_CORS_ORIGINS = [THEIRS]
    settings.CORS_ALLOWED_ORIGINS = [THEIRS]
    settings.CORS_URLS_REGEX = cors.TOKEN_DOORS


def preflight(path: str, origin: str = THEIRS):
    return Client().options(path, headers={"origin": origin, ASKS: "POST"})


@pytest.mark.parametrize("path", ["/v1/sessions", "/api/auth/me", "/agui"])
def test_nobody_is_let_in_unless_it_is_set(db, path):
    assert ALLOWED not in preflight(path).headers


@pytest.mark.parametrize("path", ["/v1/sessions", "/v1/models", "/api/chat", "/agui"])
def test_a_preflight_allows_what_the_sdks_send(let_in, path):
    answer = preflight(path)
    assert answer.status_code == 200
    assert answer.headers[ALLOWED] == THEIRS
    assert "access-control-allow-credentials" not in answer.headers
    assert "origin" in answer.headers["vary"].lower()
    allowed = set(answer.headers["access-control-allow-headers"].split(", "))
    sent = {"x-api-key", "authorization", "anthropic-version", "anthropic-beta", "content-type"}
    told = {"x-stainless-lang", "x-stainless-retry-count", "x-stainless-timeout", "idempotency-key"}
    assert sent | told <= allowed


@pytest.mark.parametrize("path", ["/", "/admin/", "/accounts/login/", "/v1", "/agui/else"])
def test_pages_for_people_are_no_door_of_other_sites(db, let_in, path):
    assert ALLOWED not in preflight(path).headers


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", f"{THEIRS}:8443", "http://app.example.com"]
)
def test_only_the_listed_origins_are_let_in(let_in, origin):
    assert ALLOWED not in preflight("/v1/sessions", origin).headers


def test_an_answer_may_be_read_with_its_request_id(alice, acme, let_in):
    token = create_token(
        actor=alice, organisation=acme, name="Page", scopes=[TokenScope.CONVERSATIONS_READ]
    )
    headers = {"origin": THEIRS, "x-api-key": token.secret}
    answer = Client(headers=headers).get("/v1/sessions")
    assert answer.status_code == 200
    assert answer.headers[ALLOWED] == THEIRS
    exposed = answer.headers["access-control-expose-headers"]
    assert "request-id" in exposed
    assert "www-authenticate" in exposed, "it names where a client of /mcp is let in"


@pytest.mark.parametrize("origin", [THEIRS, "https://evil.example", "null"])
def test_a_cookie_never_signs_a_foreign_page_in(alice, let_in, origin):
    browser = Client()
    browser.force_login(alice)
    assert browser.get("/api/conversations").status_code == 200
    assert browser.get("/api/conversations", headers={"origin": origin}).status_code == 401
    ours = browser.get("/api/conversations", headers={"origin": "http://testserver"})
    assert ours.status_code == 200


@pytest.mark.django_db  # a connection that an earlier test left open is looked at
@pytest.mark.parametrize(
    ("path", "origin", "cookies"),
    [
        ("/api/chat/sesn_1/ws", THEIRS, False),
        ("/api/chat/sesn_1/ws", "https://evil.example", None),
        ("/ws/conversations/sesn_1/", THEIRS, None),
    ],
)
async def test_the_socket_of_programs_opens_for_the_same_pages_without_cookies(
    settings, let_in, path, origin, cookies
):
    settings.ALLOWED_HOSTS = ["agents.example.org"]
    seen: list[bool] = []

    async def application(scope, receive, send):
        seen.append(b"cookie" in dict(scope["headers"]))
        await send({"type": "websocket.accept"})

    headers = [(b"host", b"agents.example.org"), (b"cookie", b"a=b"), (b"origin", origin.encode())]
    scope = {"type": "websocket", "scheme": "wss", "path": path, "headers": headers}
    line = ApplicationCommunicator(OriginGuard(application), scope)
    await line.send_input({"type": "websocket.connect"})
    await line.receive_output(5)
    assert seen == ([] if cookies is None else [cookies])


@pytest.mark.parametrize(
    ("profile", "origins", "found"),
    [
        ("local", ["*"], False),
        ("production", ["*"], True),
        ("local", ["https://app.example.org/"], True),
        ("local", ["app.example.org"], True),
        ("local", ["https://*.example.org"], True),
        ("local", ["https://app.example.org:8443", "http://[::1]:3000"], False),
    ],
)
def test_what_is_no_origin_is_an_error_and_so_is_everybody_in_production(
    settings, profile, origins, found
):
    settings.AGENTSITE_ENV = profile
    settings.AGENTSITE_CORS_ORIGINS = origins
    ids = {message.id for message in check_installation()}
    assert bool(ids & {"agentsite.E024", "agentsite.E025"}) is found

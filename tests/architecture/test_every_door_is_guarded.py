"""No page and no socket answers a stranger, and none shows mallory what is alice's.

The routes are enumerated, not listed: a new one is tested, or this file says what it lacks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
import pytest
from channels.testing import WebsocketCommunicator
from django.conf import settings
from django.contrib.sessions.models import Session
from django.test import Client
from django.urls import resolve

from accounts.actions.organisations import create_organisation
from accounts.actions.tokens import create_token
from accounts.models import Organisation, TokenScope, User
from agentsite.asgi import application
from tests.architecture.conftest import FILE
from tests.architecture.routes import Route, page_routes, socket_routes

PUBLIC: Mapping[str, str] = {
    "admin:logout": "ends a session; without one it only leads to the sign-in page",
    "account_login": "the door itself",
    "account_signup": "says that one needs an invitation, or takes the one followed before",
    "account_inactive": "tells somebody deactivated why nothing opens",
    "account_reset_password": "asks for an address and says the same whether it is known or not",
    "account_reset_password_done": "what follows after that",
    "account_reset_password_from_key": "opened by the secret in the mailed link",
    "account_reset_password_from_key_done": "what follows after that",
    "account_email_verification_sent": "tells somebody to look into the mailbox",
    "account_confirm_email": "opened by the secret in the mailed link",
    "socialaccount_login_cancelled": "tells somebody that the other site's sign-in was broken off",
    "accounts/social/login/cancelled/": "an old address of allauth's; leads to the new one",
    "accounts/social/login/error/": "an old address of allauth's; leads to the new one",
    "accounts/social/signup/": "an old address of allauth's; leads to the new one",
    "accounts/social/connections/": "an old address of allauth's; leads to the new one",
    "api:health": "says to everybody whether the server is well, and nothing else",
    "api:auth-config": "says how one signs in, which one asks before one can",
    "mcpservers:client-document": "tells authorisation servers who this site is; the same for every id",
    "mcpclients:resource": "tells clients who guards /mcp; it names nobody",
    "mcpclients:resource-of-mcp": "the same",
    "mcpclients:server": "tells clients what this site takes as an authorisation server",
    "mcpclients:register": "a program tells of itself; what it may do a person says later",
    "mcpclients:token": "for whoever shows a code or a refresh token; else an error",
    "mcpclients:revoke": "the same, to end one; whoever shows none ends nothing",
    "conversations:manifest": "what a browser needs to put the site among other programs; it names nobody",
    "notices:stop": "opened by the signed link in a mail, which stops mails like it and nothing else",
    "notices:worker": "a script that browsers fetch for pushes; it names nobody",
    "conversations:theme": "light or dark, kept in a cookie; the sign-in page has the switch too",
}
"""Routes that answer anybody, by name (those without: by pattern), each with its reason."""

METHODS = ("get", "post", "delete")

PROGRAMS = ("v1/", "agui")
"""How the addresses begin that know tokens only; a browser's session is nobody there."""

STRICT = ("/v1/", "/v0.1/", "/api/", "/agui", "/health")
"""How addresses begin that take no parameter they are not described with."""

SHARED: Mapping[str, str] = {"v1:model": "what is known of models by their names is nobody's"}
"""Addresses for programs that show every holder of a token the same, each with its reason."""

WORKERS: Mapping[str, str] = {"v1:work-poll": "takes a key of the environment, and no token"}
"""Addresses for programs that are for workers alone, each with its reason."""

ABSENT = "sesn_00000000000000000000000000"


def values_for(route: Route, world: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """Alice's own objects in place of the parameters; fails for a parameter nobody knows."""
    for beginning, values in world.items():
        if route.pattern.startswith(beginning):
            return values
    assert not route.parameters, (
        f"{route} has parameters that this test cannot fill: add an object of alice's to `world`"
    )
    return {}


def ask(client: Client, method: str, address: str) -> Any:
    """With the parameters that pages take from the query, so that nobody is refused for lack of one.
    An operation for programs refuses what it does not know."""
    send = getattr(client, method)
    if address.startswith(STRICT):
        return send(address)
    return send(f"{address}{'&' if '?' in address else '?'}path={FILE}&before=99")


def is_guarded(response: Any) -> bool:
    """Refused, or sent to sign in, and nothing shown."""
    if response.status_code in {401, 403, 404, 405}:
        return True
    return response.status_code == 302 and any(
        response["Location"].startswith(door) for door in ("/accounts/login/", "/admin/login/")
    )


@pytest.mark.django_db
def test_no_page_answers_a_stranger(client, world):
    unguarded = []
    for route in page_routes():
        if route.key in PUBLIC:
            continue
        address = route.address(values_for(route, world))
        answers = {method: ask(client, method, address) for method in METHODS}
        bad = {m: a.status_code for m, a in answers.items() if not is_guarded(a)}
        if bad or all(answer.status_code == 405 for answer in answers.values()):
            unguarded.append(f"{route}: {bad or 'neither GET nor POST is taken'}")
    assert not unguarded, "\n".join(unguarded)


@pytest.mark.django_db
def test_no_page_keeps_a_session_for_a_stranger(client, world):
    """Each would be a row that stays for weeks, as large as what was sent."""
    keeping = []
    for route in page_routes():
        address = route.address(values_for(route, world))
        for method in METHODS:
            client.cookies.clear()
            before = Session.objects.count()
            ask(client, method, address)
            if Session.objects.count() != before:
                keeping.append(f"{route}: {method}")
    assert not keeping, "\n".join(keeping)


@pytest.mark.django_db
def test_the_list_of_public_pages_is_not_stale(client, world):
    named = {route.key: route for route in page_routes()}
    assert not PUBLIC.keys() - named.keys()
    for name, reason in PUBLIC.items():
        assert reason
        address = named[name].address(values_for(named[name], world))
        assert any(not is_guarded(ask(client, method, address)) for method in METHODS), (
            f"{name} no longer answers strangers: take it off the list"
        )


@pytest.mark.django_db
def test_mallory_finds_nothing_of_alices(client_of, mallory, world):
    client = client_of(mallory)
    leaks = []
    for route in page_routes():
        if route.key in PUBLIC or not route.parameters or route.pattern.startswith(PROGRAMS):
            continue
        address = route.address(values_for(route, world))
        answers = [ask(client, method, address) for method in METHODS]
        allowed = {302, 403, 404} if route.pattern.startswith("admin/") else {404, 405}
        statuses = [answer.status_code for answer in answers]
        entered = any(answer.status_code == 302 and not is_guarded(answer) for answer in answers)
        if entered or not set(statuses) <= allowed or set(statuses) == {405}:
            leaks.append(f"{route}: {statuses}")
    assert not leaks, "\n".join(leaks)


@pytest.mark.django_db
def test_alice_herself_is_let_in(client_of, alice, world):
    """Without this, a page that refuses everybody would pass the tests above."""
    client = client_of(alice)
    closed = []
    for route in page_routes():
        if not route.pattern.startswith(("c/", "settings/", "organisation/")):
            continue
        address = route.address(values_for(route, world))
        if ask(client, "get", address).status_code == 404:
            closed.append(str(route))
    assert not closed, "\n".join(closed)


# --- programs -------------------------------------------------------------------------------------


def by_token(user: User, organisation: Organisation) -> Client:
    """A program with every scope there is."""
    issued = create_token(
        actor=user, organisation=organisation, name="program", scopes=TokenScope.values
    )
    return Client(headers={"Authorization": f"Bearer {issued.secret}"})


def demanded_by(view: Any) -> set[TokenScope]:
    """The scopes that a view of programs wants, by method."""
    return {scope for scope in getattr(view, "scopes", {}).values() if scope is not None}


@pytest.mark.django_db
def test_every_scope_that_is_offered_opens_something(world):
    demanded: set[TokenScope] = set()
    for route in page_routes():
        if route.pattern.startswith((*PROGRAMS, "api/")):
            match: Any = resolve(route.address(values_for(route, world)).partition("?")[0])
            demanded |= demanded_by(getattr(match.func, "cls", None) or match.func.view_class)

    assert set(TokenScope) == demanded


def programs_routes() -> list[Route]:
    return [route for route in page_routes() if route.pattern.startswith(PROGRAMS)]


@pytest.mark.django_db
def test_mallorys_token_finds_nothing_of_alices(mallory, elsewhere, world):
    program = by_token(mallory, elsewhere)
    routes = [route for route in programs_routes() if route.parameters]
    assert routes
    leaks = []
    for route in routes:
        if route.key in SHARED:
            continue
        address = route.address(values_for(route, world))
        for method in ("get", "post", "delete"):
            answer = program.generic(method.upper(), address, "{}", "application/json")
            found = answer.json()["error"]["type"] if answer.status_code != 405 else ""
            if (answer.status_code, found) not in {(404, "not_found_error"), (405, "")}:
                leaks.append(f"{route}: {method} {answer.status_code}")
    assert not leaks, "\n".join(leaks)


@pytest.mark.django_db
def test_alices_token_is_let_in(alice, acme, world):
    """Without this, a door that refuses everybody would pass the test above."""
    program = by_token(alice, acme)
    closed = []
    for route in programs_routes():
        if route.key in {"v1:nothing", "v1:stream", "v1:thread-stream"}:
            continue
        answer = program.get(route.address(values_for(route, world)))
        allowed = {403} if route.key in WORKERS else {200, 405}
        if answer.status_code not in allowed:
            closed.append(f"{route}: {answer.status_code}")
    assert not closed, "\n".join(closed)


@pytest.mark.django_db
def test_a_browser_that_is_signed_in_is_nobody_to_the_programs_door(alice_client, world):
    for route in programs_routes():
        address = route.address(values_for(route, world))
        assert {ask(alice_client, method, address).status_code for method in METHODS} <= {401, 405}


@pytest.mark.django_db
def test_alices_token_of_another_organisation_finds_nothing_of_acme(alice, world):
    """A token is for one organisation, whatever else its person belongs to."""
    program = by_token(alice, create_organisation(actor=alice, name="Alice's other one"))
    for route in programs_routes():
        if not route.parameters or route.key in SHARED:
            continue
        answer = program.get(route.address(values_for(route, world)))
        assert answer.status_code in {404, 405}, route


# --- sockets --------------------------------------------------------------------------------------


CLOSES: Mapping[str, tuple[int, int]] = {"api-chat-socket": (4001, 1000)}
"""What a socket closes with for nobody and for what is not there, where its protocol has it so."""


def socket(address: str, client: Client | None = None) -> WebsocketCommunicator:
    headers = [(b"origin", b"http://localhost"), (b"host", b"localhost")]
    if client is not None:
        cookie = client.cookies[settings.SESSION_COOKIE_NAME].value
        headers.append((b"cookie", f"{settings.SESSION_COOKIE_NAME}={cookie}".encode()))
    return WebsocketCommunicator(application, address, headers=headers)


async def last_word(address: str, client: Client | None) -> tuple[dict[str, Any], int]:
    """What the socket says before it hangs up, and the code it closes with."""
    line = socket(address, client)
    connected, _ = await line.connect()
    assert connected
    # A program may say who it is in its first frame; this one does not.
    await line.send_to(text_data='{"type": "message", "content": "Let me in"}')
    said = orjson.loads(await line.receive_from())
    closing = await line.receive_output()
    assert closing["type"] == "websocket.close"
    await line.wait()
    return said, closing["code"]


@pytest.mark.django_db(transaction=True)
async def test_no_socket_answers_a_stranger(world):
    routes = socket_routes(application)
    assert routes
    for route in routes:
        said, code = await last_word(route.address(values_for(route, world)), None)
        expected = CLOSES.get(route.name, (4401, 4404))[0]
        assert (said["type"], said["code"], code) == ("error", "anonymous", expected), route


@pytest.mark.django_db(transaction=True)
async def test_on_every_socket_alices_and_nobodys_look_the_same_to_mallory(mallory_client, world):
    for route in socket_routes(application):
        values = values_for(route, world)
        hers = await last_word(route.address(values), mallory_client)
        nobodys = await last_word(route.address(dict.fromkeys(values, ABSENT)), mallory_client)
        assert hers == nobodys
        expected = CLOSES.get(route.name, (4401, 4404))[1]
        assert (hers[0]["code"], hers[1]) == ("not_found", expected), route


@pytest.mark.django_db(transaction=True)
async def test_a_socket_from_a_foreign_page_is_refused(world, alice_client):
    for route in socket_routes(application):
        line = socket(route.address(values_for(route, world)), alice_client)
        line.scope["headers"] = [
            (name, b"https://evil.example" if name == b"origin" else value)
            for name, value in line.scope["headers"]
        ]
        connected, _ = await line.connect()
        assert not connected, route

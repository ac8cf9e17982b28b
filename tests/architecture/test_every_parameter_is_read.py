"""No operation for programs passes over a parameter: what it does not know, it refuses in words.

A filter that is passed over answers with everything, and a script deletes the wrong half of it.
"""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import resolve

from accounts.actions.tokens import create_token
from accounts.models import TokenScope
from accounts.tokens import hash_token
from conversations.actions.environment_keys import SECRET_PREFIX
from conversations.models import Environment, EnvironmentKey
from conversations.parameters import taken_by
from tests.architecture.routes import Route, page_routes
from tests.architecture.test_every_door_is_guarded import values_for

DOORS = ("v1/", "api/", "health", "agui")
EXCUSED = {
    "schema": "the OpenAPI document, served by the library that writes it",
    "api-docs": "a page that shows it",
    "v1:nothing": "no operation: there is nothing at such an address",
    "api:missing": "no operation: there is nothing at such an address",
}
KEYS = ("v1:work-poll",)
"""Takes a key of the environment, and no token."""
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD")


def operations() -> list[Route]:
    return [
        route
        for route in page_routes()
        if route.pattern.startswith(DOORS) and route.key not in EXCUSED
    ]


@pytest.fixture
def program(alice, acme) -> Client:
    issued = create_token(
        actor=alice, organisation=acme, name="program", scopes=list(TokenScope.values)
    )
    return Client(headers={"x-api-key": issued.secret})


@pytest.fixture
def worker(world) -> Client:
    environment = Environment.objects.get(uid=world["v1/environments/"]["uid"])
    secret = f"{SECRET_PREFIX}of-the-machine"
    EnvironmentKey.objects.create(
        environment=environment, name="machine", digest=hash_token(secret)
    )
    return Client(headers={"Authorization": f"Bearer {secret}"})


def asked(client: Client, method: str, address: str, parameter: str) -> Any:
    glue = "&" if "?" in address else "?"
    return client.generic(method, f"{address}{glue}{parameter}=1", "{}", "application/json")


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["no_such_filter", "no_such_filter[]", "limit[gte]", "Limit"])
def test_a_parameter_that_nobody_knows_is_refused_in_words(program, worker, world, name):
    overlooked, seen = [], 0
    for route in operations():
        address = route.address(values_for(route, world))
        client = worker if route.key in KEYS else program
        for method in METHODS:
            answer = asked(client, method, address, name)
            if answer.status_code == 405:
                continue
            seen += 1
            words = answer.content.decode() if method != "HEAD" else name
            if answer.status_code not in {400, 422} or name not in words:
                overlooked.append(f"{method} {route}: {answer.status_code} {words[:200]}")
    assert seen > 80
    assert not overlooked, "\n".join(overlooked)


@pytest.mark.django_db
def test_what_every_older_client_sends_is_no_parameter(program, world):
    for route in operations():
        if route.pattern.startswith("v1/") and route.key not in KEYS:
            answer = asked(program, "GET", route.address(values_for(route, world)), "beta")
            assert answer.status_code in {200, 405}, route


@pytest.mark.django_db
def test_no_excuse_is_stale():
    known = {route.key for route in page_routes()}
    assert not EXCUSED.keys() - known


@pytest.mark.django_db
def test_every_operation_is_described(world):
    """What is not described takes nothing for known, and refuses nothing."""
    silent = []
    for route in operations():
        view: Any = resolve(route.address(values_for(route, world)).partition("?")[0]).func
        described = getattr(view, "cls", None) or view.view_class
        for method in METHODS:
            if hasattr(described, method.lower()) and taken_by(described, method) is None:
                silent.append(f"{method} {route}")
    assert not silent, "\n".join(silent)

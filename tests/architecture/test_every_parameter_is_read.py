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
from agents.models import Environment
from tests.architecture.routes import Route, page_routes
from tests.architecture.test_every_door_is_guarded import values_for
from wire.parameters import plain, taken_by
from workers.actions.keys import SECRET_PREFIX
from workers.models import EnvironmentKey

DOORS = ("v1/", "api/", "health", "agui")
EXCUSED = {
    "schema": "the OpenAPI document, served by the library that writes it",
    "api-docs": "a page that shows it",
    "v1:nothing": "no operation: there is nothing at such an address",
    "api:missing": "no operation: there is nothing at such an address",
}
KEYS = ("v1:work-poll",)
"""Takes a key of the environment, and no token."""
EMPTY = {("api:upload", "subdir"): "the workspace itself"}
"""Parameters for which an empty value means something, and what."""
UNKNOWN = ("no_such_filter", "no_such_filter[]", "limit[gte]", "Limit")
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD")


def operations() -> list[Route]:
    return [
        route
        for route in page_routes()
        if route.pattern.startswith(DOORS) and route.key not in EXCUSED
    ]


@pytest.fixture
def program(alice, acme, settings) -> Client:
    # Each operation is asked in every way within a minute; how often one may is another test's.
    settings.AGENTSITE_API_WRITES_PER_MINUTE = 3_000
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


def asked(client: Client, method: str, address: str, parameter: str, values: str = "{}=1") -> Any:
    glue, query = "&" if "?" in address else "?", values.format(parameter)
    return client.generic(method, f"{address}{glue}{query}", "{}", "application/json")


def described_of(address: str) -> Any:
    view: Any = resolve(address.partition("?")[0]).func
    return getattr(view, "cls", None) or view.view_class


@pytest.mark.django_db
def test_a_parameter_that_nobody_knows_is_refused_in_words(program, worker, world):
    """Each operation is asked with one of the names, and each name of many operations."""
    overlooked, seen = [], 0
    for n, route in enumerate(operations()):
        address = route.address(values_for(route, world))
        client = worker if route.key in KEYS else program
        for m, method in enumerate(METHODS):
            name = UNKNOWN[(n + m) % len(UNKNOWN)]
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
def test_no_parameter_is_taken_empty_or_twice(program, worker, world):
    overlooked, seen = [], 0
    for route in operations():
        address = route.address(values_for(route, world))
        client = worker if route.key in KEYS else program
        described = described_of(address)
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
            for name in taken_by(described, method) or ():
                tried = {} if (route.key, name) in EMPTY else {"{}=": "is empty"}
                if not name.endswith("[]"):
                    tried["{0}=1&{0}=1"] = "more than once"
                if "[g" in name or "[l" in name:
                    tried[f"{{}}=1&{plain(name)}=1"] = "more than once"
                for values, refusal in tried.items():
                    seen += 1
                    answer = asked(client, method, address, name, values)
                    words = answer.content.decode()
                    if answer.status_code not in {400, 422} or refusal not in words:
                        overlooked.append(f"{method} {route}: {values.format(name)} {words[:200]}")
    assert seen > 120
    assert not overlooked, "\n".join(overlooked)


@pytest.mark.django_db
def test_a_list_is_given_in_as_many_values_and_spellings_as_one_likes(program, world):
    for values in ("{0}[]=idle&{0}[]=running", "{0}=idle&{0}=running", "{0}=idle&{0}[]=running"):
        assert asked(program, "GET", "/v1/sessions", "statuses", values).status_code == 200


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
        described = described_of(route.address(values_for(route, world)))
        for method in METHODS:
            if hasattr(described, method.lower()) and taken_by(described, method) is None:
                silent.append(f"{method} {route}")
    assert not silent, "\n".join(silent)

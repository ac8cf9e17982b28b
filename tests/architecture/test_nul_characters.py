"""A NUL character, which one database cannot hold nor look for, is never a fault of the server.

Every address is asked with one in each of its parameters, in every parameter that its view looks for in
the query or the form, and on every socket. On SQLite a statement that holds one fails as it would on
PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote

import pytest
from django.core.handlers.wsgi import WSGIRequest
from django.db import DataError, connection
from django.http import QueryDict
from django.test import Client
from django.urls import Resolver404, resolve
from django.utils.datastructures import MultiValueDictKeyError

from accounts.models import User
from tests.architecture.routes import Route, page_routes
from tests.architecture.test_every_door_is_guarded import by_token
from tests.cast import shown

BAD = "a\0b"
PROGRAMS = ("v1/", "agui", "api/")


class Lying(QueryDict):
    """Has every parameter that anybody asks for, and each holds a NUL."""

    honest: frozenset[str] = frozenset({"format", "_to_field", "_popup"})
    """What would end the matter before any other is looked at."""

    def __init__(self, **true: str) -> None:
        super().__init__("")
        self._true = true

    def __contains__(self, name: object) -> bool:
        return name not in self.honest

    def __getitem__(self, name: str) -> str:
        if name in self.honest:
            raise MultiValueDictKeyError(name)
        return self._true.get(name, BAD)

    def get(self, name: str, default: Any = None) -> Any:
        return default if name in self.honest else self[name]

    def lists(self) -> Any:
        return [("any", [BAD])]

    def getlist(self, name: str, default: Any = None) -> list[str]:
        return [] if name in self.honest else [self[name]]


@contextmanager
def as_postgresql() -> Iterator[None]:
    """A text with a NUL fails on its way to the database, also where the database would take it."""

    def execute(run: Any, sql: Any, params: Any, many: bool, context: Any) -> Any:
        for value in params or ():
            if isinstance(value, str) and "\0" in value:
                raise DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes")
        return run(sql, params, many, context)

    with connection.execute_wrapper(execute):
        yield


def faults(client: Client, asked: list[tuple[str, str]]) -> list[str]:
    found = []
    client.raise_request_exception = False
    with as_postgresql():
        for method, address in asked:
            # As htmx asks, for whom a refusal is drawn without the page around it.
            answer = client.generic(
                method,
                address,
                b"",
                "application/x-www-form-urlencoded",
                headers={"HX-Request": "true"},
            )
            if answer.status_code >= 500:
                info = getattr(answer, "exc_info", None)
                fault = info[1] if info else ""
                found.append(f"{method} {address}: {type(fault).__name__} {str(fault)[:100]}")
    return found


def with_nul(route: Route, values: Mapping[str, Any]) -> Iterator[str]:
    """The address with a NUL in one parameter after the other."""
    for name in route.parameters:
        yield route.address({**values, name: "a%00b"})


def leads_to_a_view(address: str) -> bool:
    """Many a parameter's own form leaves no room for a NUL: such an address is nobody's."""
    try:
        resolve(unquote(address.partition("?")[0]))
    except Resolver404:
        return False
    return True


def filled(route: Route, world: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """Alice's own objects; where a route has none (another test says so), anything."""
    known = (values for start, values in world.items() if route.pattern.startswith(start))
    return next(known, dict.fromkeys(route.parameters, "x"))


@pytest.fixture
def staff_alice(alice: User) -> User:
    """Alice, whom the admin lets in too."""
    alice.is_staff = alice.is_superuser = True
    alice.save()
    return alice


@pytest.fixture
def people(alice, acme, staff_alice, client_of) -> dict[str, Client]:
    return {"session": client_of(staff_alice), "token": by_token(alice, acme)}


@pytest.mark.django_db
def test_a_nul_in_an_address_is_not_found(people, world):
    asked = [
        address
        for route in page_routes()
        for address in with_nul(route, filled(route, world))
        if leads_to_a_view(address)
    ]
    assert asked
    programs = [address for address in asked if address[1:].startswith(PROGRAMS)]
    pages = [address for address in asked if not address[1:].startswith(PROGRAMS)]
    found = faults(people["session"], [("GET", address) for address in pages])
    found += faults(
        people["token"],
        [(method, address) for address in programs for method in ("GET", "POST")],
    )
    assert not found, "\n".join(found)


@pytest.mark.django_db
def test_a_nul_in_any_parameter_of_a_query_is_refused_or_finds_nothing(people, world, monkeypatch):
    monkeypatch.setattr(WSGIRequest, "GET", property(lambda _request: Lying()))
    found = []
    for route in page_routes():
        address = route.address(filled(route, world)).partition("?")[0]
        who = "token" if address[1:].startswith(PROGRAMS) else "session"
        found += faults(people[who], [("GET", address)])
    assert not found, "\n".join(found)


@pytest.mark.django_db
def test_a_nul_in_any_field_of_a_form_is_refused_or_finds_nothing(people, world, acme, monkeypatch):
    form = Lying(**shown(acme))
    monkeypatch.setattr(WSGIRequest, "POST", property(lambda _request: form))
    found = []
    for route in page_routes():
        address = route.address(filled(route, world)).partition("?")[0]
        if not address[1:].startswith(PROGRAMS):
            found += faults(people["session"], [("POST", address)])
    assert not found, "\n".join(found)

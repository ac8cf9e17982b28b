"""What every door for programs shares: who is let in, what for, and how often."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import Any

import pytest
from django.conf import settings as site
from django.test import Client, override_settings
from django.urls import path
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.actions.tokens import create_token, revoke_token
from accounts.api.authentication import caller_of
from accounts.api.throttling import count_request
from accounts.models import ApiToken, TokenScope
from agentsite import urls as addresses
from harness.errors import TooMany

READ, WRITE = TokenScope.CONVERSATIONS_READ, TokenScope.CONVERSATIONS_WRITE
NOON = datetime(2026, 6, 1, 12, tzinfo=UTC).timestamp()


class WhoAmI(APIView):
    scopes = {"GET": READ, "POST": WRITE, "DELETE": None}

    def get(self, request: Any) -> Response:
        caller = caller_of(request)
        return Response({"who": caller.user.username, "where": caller.organisation.slug})

    post = delete = get


class Forgotten(APIView):
    """A view whose author did not say what it takes."""

    def get(self, request: Any) -> Response:
        return Response("secret")


urlpatterns = [
    *addresses.urlpatterns,
    path("who", WhoAmI.as_view()),
    path("forgotten", Forgotten.as_view()),
]
door = pytest.mark.urls(__name__)


@pytest.fixture
def issued(alice, acme):
    return create_token(actor=alice, organisation=acme, name="Laptop", scopes=[READ])


@door
def test_both_spellings_of_the_credential_are_taken(issued, client, acme):
    for header in ({"Authorization": f"Bearer {issued.secret}"}, {"x-api-key": issued.secret}):
        answer = client.get("/who", headers=header)
        assert answer.json() == {"who": "alice", "where": acme.slug}
    assert not answer.cookies


@door
def test_without_a_valid_token_it_is_401_even_with_a_session(issued, alice, client_of):
    browser = client_of(alice)
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic eDp5"}):
        answer = browser.get("/who", headers=headers)
        assert answer.status_code == 401
        assert answer["WWW-Authenticate"] == "Bearer"
    revoke_token(actor=alice, token=issued.token)
    assert client_get(issued.secret).status_code == 401


def client_get(secret: str, method: str = "get") -> Any:
    client = Client(enforce_csrf_checks=True)
    return getattr(client, method)("/who", headers={"x-api-key": secret})


@door
def test_a_scope_that_is_missing_is_named(issued):
    answer = client_get(issued.secret, "post")
    assert answer.status_code == 403
    assert "conversations:write" in answer.content.decode()


@door
def test_what_needs_no_scope_takes_any_valid_token_without_csrf(issued):
    assert client_get(issued.secret, "delete").status_code == 200


@door
def test_a_view_that_names_no_scope_is_closed(issued, client):
    answer = client.get("/forgotten", headers={"x-api-key": issued.secret})
    assert answer.status_code == 403


@door
def test_too_many_requests_are_told_when_to_come_back(issued):
    with override_settings(AGENTSITE_API_READS_PER_MINUTE=2):
        answers = [client_get(issued.secret) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert 1 <= int(answers[2]["Retry-After"]) <= 30


@door
def test_a_use_is_noted(issued):
    assert ApiToken.objects.get().last_used_at is None
    client_get(issued.secret)
    row = ApiToken.objects.get()
    assert row.last_used_at is not None
    assert row.day_requests == 1


@door
def test_no_log_line_holds_a_secret(issued, caplog):
    with caplog.at_level(logging.DEBUG):
        client_get(issued.secret)
        client_get(issued.secret, "post")
        client_get(issued.secret[:-1] + "x")
    assert issued.secret not in caplog.text
    assert issued.secret[4:40] not in caplog.text


def used(token, count: int, *, at: float, writes: bool = False) -> list[int]:
    """The seconds to wait that each of so many requests was told; 0 for those let in."""
    waits = []
    for _ in range(count):
        try:
            count_request(token, writes=writes, now=at)
        except TooMany as error:
            waits.append(error.retry_after)
        else:
            waits.append(0)
    return waits


def test_a_rate_may_be_used_at_once_and_grows_back_evenly(issued, settings):
    settings.AGENTSITE_API_READS_PER_MINUTE = 6
    assert used(issued.token, 8, at=NOON) == [0] * 6 + [10 - 5] * 2
    assert used(issued.token, 2, at=NOON + 5) == [0, 10]
    assert used(issued.token, 7, at=NOON + 100) == [0] * 6 + [5]


@pytest.mark.parametrize("rate", [1, 7, 60, 1200])
def test_at_any_rate_exactly_so_many_pass(issued, settings, rate):
    settings.AGENTSITE_API_READS_PER_MINUTE = rate
    assert used(issued.token, rate + 1, at=NOON).count(0) == rate


def test_reading_does_not_use_up_what_changing_may(issued, settings):
    settings.AGENTSITE_API_READS_PER_MINUTE = 1
    settings.AGENTSITE_API_WRITES_PER_MINUTE = 1
    assert used(issued.token, 2, at=NOON)[0] == 0
    assert used(issued.token, 2, at=NOON, writes=True) == [0, 30]


def test_the_quota_of_a_day_ends_at_midnight_utc(issued, settings):
    settings.AGENTSITE_API_REQUESTS_PER_DAY = 3
    assert used(issued.token, 4, at=NOON) == [0, 0, 0, 12 * 3600]
    assert used(issued.token, 4, at=NOON + 12 * 3600)[:3] == [0, 0, 0]


def test_zero_means_any_number(issued, settings):
    settings.AGENTSITE_API_READS_PER_MINUTE = settings.AGENTSITE_API_WRITES_PER_MINUTE = 0
    assert (
        used(issued.token, 30, at=NOON) + used(issued.token, 30, at=NOON, writes=True) == [0] * 60
    )


def test_one_token_does_not_use_up_another(issued, alice, acme, settings):
    settings.AGENTSITE_API_READS_PER_MINUTE = 1
    other = create_token(actor=alice, organisation=acme, name="y", scopes=[READ]).token
    assert used(issued.token, 1, at=NOON) + used(other, 1, at=NOON) == [0, 0]


def test_knox_and_the_table_agree_on_how_a_secret_begins(issued):
    assert issued.secret.startswith(site.REST_KNOX["TOKEN_PREFIX"])

"""Going somewhere by name."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from accounts.models import Organisation, User
from agents.models import Environment
from tests.cast import ClientOf
from tests.conversations.conftest import MakeAgent
from tests.conversations.scenes import begin


def found(client: Client, text: str) -> list[str]:
    html = client.get("/go/", {"q": text}, headers={"HX-Request": "true"}).content.decode()
    links = re.findall(r"<li><a[^>]*>(.*?)</a>", html, re.DOTALL)
    return [re.sub(r"<[^>]+>", "", link).strip() for link in links]


def test_conversations_and_pages_are_found_by_their_words(
    alice: User,
    acme: Organisation,
    environment: Environment,
    make_agent: MakeAgent,
    client_of: ClientOf,
):
    begin(alice, acme, make_agent("Coding"), environment, title="Harbour plans")
    client = client_of(alice)
    assert found(client, "harb") == ["Harbour plans"]
    assert found(client, "KEYS provider") == ["Provider keys"]
    assert found(client, "nothing like it") == []


@pytest.mark.parametrize("person", ["bob", "mallory"])
def test_nobody_finds_anothers_conversation(
    person: str,
    request: pytest.FixtureRequest,
    alice: User,
    acme: Organisation,
    environment: Environment,
    make_agent: MakeAgent,
    client_of: ClientOf,
):
    begin(alice, acme, make_agent("Coding"), environment, title="Harbour plans")
    assert found(client_of(request.getfixturevalue(person)), "harb") == []


def test_only_staff_are_offered_the_pages_of_staff(alice: User, staff: User, client_of: ClientOf):
    assert found(client_of(staff), "administration") == ["Administration"]
    assert found(client_of(alice), "administration") == []


def test_words_that_are_too_many_are_refused_in_words(alice: User, client_of: ClientOf):
    answer = client_of(alice).get("/go/", {"q": "a " * 5_000})
    assert answer.status_code == 422
    assert "longer than" in answer.content.decode()

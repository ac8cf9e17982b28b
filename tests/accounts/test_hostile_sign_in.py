"""What somebody who is not signed in may send to the pages of signing in: much, and made to be dear."""

from __future__ import annotations

import pytest
from django.test import Client

from tests.cast import PASSWORD
from tests.heartbeat import seconds_of_work
from tests.hostile import marks

DEAR = marks(30_000)
"""As many as fit a body of a stranger's, and a second or more to normalize."""
FIELDS = [
    *(("/accounts/login/", field) for field in ("login", "password", "next")),
    *(("/accounts/signup/", field) for field in ("username", "email", "password1", "next")),
    *(("/accounts/password/reset/", field) for field in ("email", "next")),
    *(("/admin/login/", field) for field in ("username", "password", "next")),
]


@pytest.mark.parametrize(("path", "field"), FIELDS)
def test_no_field_keeps_the_process(alice, path, field):
    given = {"login": "alice", "username": "bob", "email": "bob@example.org", "password": "x"}
    given |= {"password1": "Xyz-12345-abc", "password2": "Xyz-12345-abc", "next": "/"}
    given[field] = {"next": f"http://{DEAR}/", "email": f"a@{DEAR}"}.get(field, DEAR)

    client = Client(raise_request_exception=False)
    client.get(path)  # templates are read once
    answers = []
    spent = seconds_of_work(lambda: answers.append(client.post(path, given)), tries=1)

    assert answers[0].status_code in (200, 302)
    assert spent < 0.4


def test_no_address_to_come_back_to_keeps_the_process(alice):
    Client().get("/accounts/login/")
    given = {"next": f"http://{DEAR}/"}

    assert seconds_of_work(lambda: Client().get("/accounts/login/", given), tries=1) < 0.4


def test_a_person_still_comes_back_to_where_she_was(alice):
    answer = Client().post(
        "/accounts/login/", {"login": "alice", "password": PASSWORD, "next": "/conversations/"}
    )

    assert answer["Location"] == "/conversations/"


def test_a_login_longer_than_anybodys_is_told_so(alice):
    answer = Client(raise_request_exception=False).post(
        "/accounts/login/", {"login": "é" * 26_000, "password": "x"}
    )

    assert answer.status_code == 200
    assert "longer than 320 characters. Shorten it." in answer.content.decode()

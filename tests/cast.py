"""Who plays in the tests: alice owns, bob shares her organisation, mallory must see nothing.

Staff is the operator of the server. Everybody's password is `PASSWORD`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from accounts.actions.organisations import create_organisation
from accounts.current_organisation import SHOWN
from accounts.models import Membership, Organisation, Role, User

PASSWORD = "correct horse battery staple"

ClientOf = Callable[[User], Client]


def make_user(name: str, **fields: object) -> User:
    return User.objects.create_user(name, f"{name}@example.org", PASSWORD, **fields)


def join(user: User, organisation: Organisation, role: Role = Role.MEMBER) -> Membership:
    return Membership.objects.create(user=user, organisation=organisation, role=role)


def shown(organisation: Organisation, **values: Any) -> dict[str, Any]:
    """What a form posts that was shown while its person worked in `organisation`."""
    return {SHOWN: organisation.uid, **values}


def retyped(client: Client) -> Client:
    """The same browser, just after its person typed the password again."""
    answer = client.post(reverse("account_reauthenticate"), {"password": PASSWORD})
    assert answer.status_code == 302
    return client


@pytest.fixture
def alice(db) -> User:
    return make_user("alice")


@pytest.fixture
def acme(alice: User) -> Organisation:
    """Alice's organisation."""
    return create_organisation(actor=alice, name="Acme")


@pytest.fixture
def bob(acme: Organisation) -> User:
    user = make_user("bob")
    join(user, acme)
    return user


@pytest.fixture
def mallory(db) -> User:
    return make_user("mallory")


@pytest.fixture
def elsewhere(mallory: User) -> Organisation:
    """Mallory's organisation."""
    return create_organisation(actor=mallory, name="Elsewhere")


@pytest.fixture
def staff(db) -> User:
    return make_user("staff", is_staff=True, is_superuser=True)


@pytest.fixture
def client_of() -> ClientOf:
    """A browser in which the person is signed in."""

    def sign_in(user: User) -> Client:
        client = Client()
        client.force_login(user)
        return client

    return sign_in

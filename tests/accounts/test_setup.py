"""The first administrator, through a link that works once."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from allauth.account.models import EmailAddress
from django.db import connection
from django.urls import reverse
from django.utils import timezone

from accounts.actions.setup import create_first_administrator, issue_setup_link
from accounts.models import Membership, Organisation, Role, SetupLink, User
from harness.errors import AgentError, Invalid, NotFound
from tests.cast import PASSWORD

VALUES = {
    "organisation_name": "Acme",
    "username": "root",
    "email": "root@example.org",
    "password": PASSWORD,
}


def new_link() -> str:
    token = issue_setup_link()
    assert token is not None
    return token


@pytest.fixture
def token(db) -> str:
    return new_link()


def test_the_link_makes_an_administrator_who_owns_the_first_organisation(token):
    user = create_first_administrator(token=token, **VALUES)

    assert user.is_superuser
    assert user.is_staff
    assert user.check_password(PASSWORD)
    assert Membership.objects.role_in(Organisation.objects.get(name="Acme"), user) is Role.OWNER
    assert EmailAddress.objects.get(user=user).verified


def test_the_token_is_stored_only_as_a_hash(token):
    assert token not in str(SetupLink.objects.values().get())


def test_the_link_works_once(token):
    create_first_administrator(token=token, **VALUES)

    with pytest.raises(NotFound):
        create_first_administrator(token=token, **{**VALUES, "username": "b", "email": "b@b.org"})
    assert User.objects.count() == 1


def test_a_new_link_ends_the_earlier_one(token):
    newer = new_link()

    with pytest.raises(NotFound):
        create_first_administrator(token=token, **VALUES)
    assert create_first_administrator(token=newer, **VALUES).is_superuser


def test_an_expired_link_is_not_found(token):
    SetupLink.objects.update(expires_at=timezone.now() - timedelta(seconds=1))

    with pytest.raises(NotFound):
        create_first_administrator(token=token, **VALUES)


def test_no_link_is_issued_or_honoured_once_there_is_a_superuser(token, staff):
    assert issue_setup_link() is None
    with pytest.raises(NotFound):
        create_first_administrator(token=token, **VALUES)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("organisation_name", " "),
        ("username", ""),
        ("username", "with space"),
        ("email", ""),
        ("email", "root"),
        ("password", "12345678"),
        ("password", "root@example.org"),
    ],
)
def test_a_refused_value_names_its_field_and_leaves_the_link_usable(token, field, value):
    with pytest.raises(Invalid) as refusal:
        create_first_administrator(token=token, **{**VALUES, field: value})
    assert refusal.value.field in (field, "name")
    assert not User.objects.exists()
    assert create_first_administrator(token=token, **VALUES).is_superuser


@pytest.mark.django_db(transaction=True)
def test_two_people_with_the_same_link_make_one_administrator():
    token = new_link()
    both, outcomes = threading.Barrier(2), []

    def use(name: str) -> None:
        both.wait()
        values = {**VALUES, "username": name, "email": f"{name}@example.org"}
        try:
            outcomes.append(create_first_administrator(token=token, **values).username)
        except AgentError as error:
            outcomes.append(error.code)
        connection.close()

    threads = [threading.Thread(target=use, args=[name]) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert User.objects.count() == 1
    assert "not_found" in outcomes


def test_the_page_makes_the_administrator_and_signs_them_in(token, client):
    address = reverse("accounts:setup", args=[token])
    assert client.get(address).status_code == 200

    answer = client.post(address, VALUES)

    assert (answer.status_code, answer["Location"]) == (302, "/")
    assert client.get(reverse("accounts:organisation")).context["user"].username == "root"
    assert client.get(address).status_code == 404


def test_the_page_keeps_what_was_typed_except_the_password(token, client):
    address = reverse("accounts:setup", args=[token])

    answer = client.post(address, {**VALUES, "password": "12345678"})

    page = answer.content.decode()
    assert answer.status_code == 422
    assert 'value="root@example.org"' in page
    assert "12345678" not in page
    assert "too common" in page


def test_a_wrong_token_is_a_clear_page_with_status_404(token, client):
    for method in (client.get, client.post):
        answer = method(reverse("accounts:setup", args=["wrong"]))
        assert answer.status_code == 404
        assert "Start the server again" in answer.content.decode()

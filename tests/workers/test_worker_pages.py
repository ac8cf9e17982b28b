"""Keys of self-hosted environments on the page of workers and in the admin."""

from __future__ import annotations

import re

import pytest
from django.urls import reverse

from accounts.tokens import hash_token
from agents.models import Environment
from audit.models import AuditEntry
from chat.presentation.panels import panels_of
from conversations.actions.messages import post_message
from providers.scripted import call, reply
from tests.cast import PASSWORD, join, shown
from tests.conversations.conftest import rested
from workers.models import EnvironmentKey, WorkItem

pytestmark = pytest.mark.django_db

PAGE = reverse("workers:workers")


@pytest.fixture
def machines(acme) -> Environment:
    return Environment.objects.create(
        name="Our machines", organisation=acme, backend=Environment.Backend.WORKER
    )


def secret_in(page: str) -> str:
    found = re.search(r"age_[\w-]{40,}", page)
    assert found is not None
    return found[0]


def confirmed(client):
    """The browser of somebody who has just typed the password once more."""
    client.post(reverse("account_reauthenticate"), {"password": PASSWORD})
    return client


def test_a_session_alone_makes_no_key(client_of, staff, acme, machines):
    join(staff, acme)
    client = client_of(staff)
    for address, given in (
        (PAGE, shown(acme, environment=machines.uid, name="rack 7")),
        (
            reverse("admin:workers_environmentkey_add"),
            {"environment": machines.pk, "name": "rack 7"},
        ),
    ):
        asked = client_of(staff).post(address, given)
        assert asked["Location"].startswith(reverse("account_reauthenticate"))
    assert not EnvironmentKey.objects.exists()
    there = client.post(address, given)["Location"]
    secret_in(client.post(there, {"password": PASSWORD}, follow=True).content.decode())


def test_staff_make_a_key_whose_secret_is_shown_once(client_of, staff, acme, machines):
    join(staff, acme)
    client = confirmed(client_of(staff))
    given = shown(acme, environment=machines.uid, name="rack 7")
    page = client.post(PAGE, given)
    assert page.status_code == 200
    secret = secret_in(page.content.decode())
    key = EnvironmentKey.objects.get()
    assert key.digest == hash_token(secret)
    assert "no-store" in page["Cache-Control"]
    assert secret not in client.get(PAGE).content.decode()
    assert "rack 7" in client.get(PAGE).content.decode()
    wrong = client.post(PAGE, shown(acme, environment=machines.uid, name=" "))
    assert wrong.status_code == 422
    client.post(reverse("workers:worker-key-revoke", args=[key.uid]))
    key.refresh_from_db()
    assert key.revoked_at is not None
    assert AuditEntry.objects.filter(action="key_revoked").count() == 1


def test_others_see_the_environments_and_no_key(
    client_of, alice, mallory, elsewhere, acme, machines
):
    key = EnvironmentKey.objects.create(environment=machines, name="rack 7", digest="0" * 64)
    page = client_of(alice).get(PAGE).content.decode()
    assert "Our machines" in page
    assert "rack 7" not in page
    made = client_of(alice).post(PAGE, shown(acme, environment=machines.uid, name="mine"))
    assert made.status_code == 403
    assert "Our machines" not in client_of(mallory).get(PAGE).content.decode()
    for person in (alice, mallory):
        revoked = client_of(person).post(reverse("workers:worker-key-revoke", args=[key.uid]))
        assert revoked.status_code == 404
    assert EnvironmentKey.objects.get().revoked_at is None


def test_the_admin_makes_shows_and_revokes_keys(client_of, staff, acme, machines):
    join(staff, acme)
    client = confirmed(client_of(staff))
    made = client.post(
        reverse("admin:workers_environmentkey_add"),
        {"environment": machines.pk, "name": "rack 7"},
    )
    secret = secret_in(made.content.decode())
    key = EnvironmentKey.objects.get(digest=hash_token(secret))
    shown_page = client.get(reverse("admin:workers_environmentkey_change", args=[key.pk]))
    assert secret not in shown_page.content.decode()
    changelist = reverse("admin:workers_environmentkey_changelist")
    client.post(changelist, {"action": "revoke", "_selected_action": [key.pk]})
    key.refresh_from_db()
    assert key.revoked_at is not None


@pytest.mark.django_db(transaction=True)
def test_people_see_that_a_conversation_waits_for_a_worker(client_of, alice, staff, converse):
    Environment.objects.update(backend=Environment.Backend.WORKER)
    conversation, _script = converse([reply(call("bash", command="make"))])
    post_message(actor=alice, conversation=conversation, text="Go.")
    rested(conversation)
    client = client_of(alice)
    assert "Waiting for a worker" in panels_of(conversation, ["status"])["status"]
    assert "waiting for a worker" in client.get(conversation.get_absolute_url()).content.decode()
    page = client.get(reverse("conversations:list")).content.decode()
    listed = page.partition('id="results"')[2]
    assert "waits for others" in listed
    assert "waits for you" not in listed
    item = WorkItem.objects.get()
    page = client_of(staff).get(reverse("admin:workers_workitem_change", args=[item.pk]))
    assert page.status_code == 200

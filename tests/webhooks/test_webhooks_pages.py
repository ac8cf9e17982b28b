"""The pages of webhooks: the secret once, the log of deliveries, and nothing for those who do not manage."""

from __future__ import annotations

import re

import pytest
from django.urls import reverse
from django.utils import timezone

from tests.cast import shown
from webhooks import outbox
from webhooks.actions import endpoints as actions
from webhooks.models import WebhookAttempt, WebhookDelivery, WebhookEndpoint

pytestmark = pytest.mark.django_db

URL = "https://hooks.example.invalid/agents"


@pytest.fixture
def endpoint(alice, acme) -> WebhookEndpoint:
    return actions.create_endpoint(
        actor=alice, organisation=acme, url=URL, event_types=["session.created"]
    ).endpoint


@pytest.fixture
def delivery(endpoint) -> WebhookDelivery:
    return outbox.announce_test(endpoint)


@pytest.fixture
def page(client_of, alice):
    return client_of(alice)


def address(name: str, **values: str) -> str:
    return reverse(f"webhooks:{name}", kwargs=values)


def test_an_endpoint_is_made_and_its_secret_is_on_that_page_only(page, acme):
    posted = shown(acme, url=URL, event_types=["session.created"], description="For the bot")
    answer = page.post(address("webhooks"), posted)
    secret = re.search(r'value="(whsec_[A-Za-z0-9+/=]{44})"', answer.content.decode())
    assert secret
    assert "no-store" in answer["Cache-Control"]
    endpoint = WebhookEndpoint.objects.get()
    assert (endpoint.url, endpoint.description) == (URL, "For the bot")
    for again in (address("webhooks"), address("webhook", uid=endpoint.uid)):
        assert b"whsec_" not in page.get(again).content


def test_what_is_wrong_is_said_beside_its_field_and_what_was_typed_is_kept(page, acme):
    posted = shown(acme, url="http://10.0.0.1/typed", everything="on", description="typed")
    answer = page.post(address("webhooks"), posted)
    assert answer.status_code == 422
    assert "Webhooks go to https only." in answer.content.decode()
    assert "http://10.0.0.1/typed" in answer.content.decode()
    answer = page.post(address("webhooks"), shown(acme, url=URL))
    assert answer.status_code == 422
    assert "No type of event is chosen." in answer.content.decode()
    assert not WebhookEndpoint.objects.exists()


def test_a_form_of_another_organisation_changes_nothing(page, acme, elsewhere):
    answer = page.post(address("webhooks"), shown(elsewhere, url=URL, everything="on"))
    assert answer.status_code == 409
    assert not WebhookEndpoint.objects.exists()


def test_an_endpoint_is_changed_switched_off_and_on_and_removed(page, endpoint):
    own = address("webhook", uid=endpoint.uid)
    page.post(own, {"url": URL + "/new", "everything": "on"})
    endpoint.refresh_from_db()
    assert (endpoint.url, endpoint.event_types) == (URL + "/new", ["*"])
    switch = address("webhook-switch", uid=endpoint.uid)
    for enabled in (False, True):
        page.post(switch, {"enabled": str(int(enabled))})
        endpoint.refresh_from_db()
        assert endpoint.is_enabled is enabled
    page.post(switch, {"enabled": "maybe"})
    endpoint.refresh_from_db()
    assert endpoint.is_enabled
    page.post(address("webhook-remove", uid=endpoint.uid))
    assert not WebhookEndpoint.objects.exists()


def test_a_new_secret_is_shown_once_and_the_old_one_has_its_end(page, endpoint):
    rotate = address("webhook-rotate", uid=endpoint.uid)
    answer = page.post(rotate, {"grace_hours": "2"}).content.decode()
    assert "whsec_" in answer
    assert "An older secret still signs until" in answer
    assert page.post(rotate, {"grace_hours": "999"}).status_code == 422
    assert endpoint.secrets.count() == 2


def test_the_test_button_leads_to_the_delivery_it_made(page, endpoint):
    answer = page.post(address("webhook-test", uid=endpoint.uid))
    made = WebhookDelivery.objects.get()
    assert made.event_type == "x.webhook.test"
    own = address("webhook-delivery", uid=endpoint.uid, event_uid=made.event_id)
    assert answer["Location"] == own
    text = page.get(own).content.decode()
    assert "x.webhook.test" in text
    assert 'hx-trigger="every 2s"' in text


def test_a_delivery_shows_its_attempts_escaped_and_is_sent_again(page, endpoint, delivery):
    WebhookAttempt.objects.create(
        delivery=delivery,
        started_at=timezone.now(),
        status=500,
        excerpt="<script>alert(1)</script>",
    )
    delivery.state, delivery.attempts = "dead", 15
    delivery.save()
    own = address("webhook-delivery", uid=endpoint.uid, event_uid=delivery.event_id)
    text = page.get(own).content.decode()
    assert "HTTP 500" in text
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert" in text
    assert "every 2s" not in text
    part = page.get(own, headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in part
    assert "HTTP 500" in part
    page.post(address("webhook-redeliver", uid=endpoint.uid, event_uid=delivery.event_id))
    delivery.refresh_from_db()
    assert (delivery.state, delivery.attempts) == ("pending", 0)


def test_deliveries_are_listed_by_state_and_in_pages(page, endpoint, delivery):
    for _ in range(30):
        outbox.announce_test(endpoint)
    own = address("webhook", uid=endpoint.uid)
    first = page.get(own).content.decode()
    assert first.count("x.webhook.test") == 25
    older = re.search(r"before=(\d+)", first)
    assert older
    assert page.get(own, {"before": older[1]}).content.decode().count("x.webhook.test") == 6
    assert page.get(own, {"state": "dead"}).content.decode().count("x.webhook.test") == 0
    WebhookDelivery.objects.update(state="dead")
    answer = page.post(address("webhook-redeliver-dead", uid=endpoint.uid), follow=True)
    assert "31 are sent again." in answer.content.decode()


def test_a_member_who_does_not_manage_sees_no_webhooks(client_of, bob, acme, endpoint):
    page = client_of(bob)
    assert page.get(address("webhooks")).status_code == 403
    assert page.post(address("webhooks"), shown(acme, url=URL, everything="on")).status_code == 403
    assert page.get(address("webhook", uid=endpoint.uid)).status_code == 404
    assert WebhookEndpoint.objects.count() == 1


def test_mallory_finds_neither_endpoint_nor_delivery(client_of, mallory, endpoint, delivery):
    page = client_of(mallory)
    for name in ("rotate", "switch", "remove", "test", "redeliver-dead"):
        answer = page.post(address(f"webhook-{name}", uid=endpoint.uid), {"enabled": "0"})
        assert answer.status_code == 404
    own = {"uid": endpoint.uid, "event_uid": delivery.event_id}
    assert page.get(address("webhook-delivery", **own)).status_code == 404
    assert page.post(address("webhook-redeliver", **own)).status_code == 404
    assert page.get(address("webhook", uid=endpoint.uid)).status_code == 404
    endpoint.refresh_from_db()
    assert endpoint.is_enabled
    assert endpoint.secrets.count() == 1


def test_a_delivery_of_another_endpoint_is_not_found_under_this_one(page, alice, acme, delivery):
    other = actions.create_endpoint(actor=alice, organisation=acme, url=URL, event_types=["*"])
    own = address("webhook-delivery", uid=other.endpoint.uid, event_uid=delivery.event_id)
    assert page.get(own).status_code == 404

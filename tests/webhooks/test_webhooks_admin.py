"""Staff look at every organisation's webhooks in the admin, switch them and send again; no secret shows."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.urls import reverse

from tests.cast import make_user
from webhooks import outbox
from webhooks.actions import endpoints as actions
from webhooks.models import WebhookDelivery, WebhookEndpoint, WebhookSecret

pytestmark = pytest.mark.django_db

URL = "https://hooks.example.invalid/agents"


@pytest.fixture
def endpoint(alice, acme) -> WebhookEndpoint:
    return actions.create_endpoint(
        actor=alice, organisation=acme, url=URL, event_types=["*"]
    ).endpoint


def changelist(name: str) -> str:
    return reverse(f"admin:webhooks_webhook{name}_changelist")


def run(client, name: str, action: str, *rows: Any):
    posted = {"action": action, "_selected_action": [str(row.pk) for row in rows]}
    return client.post(changelist(name), posted, follow=True)


def test_lists_and_pages_open_and_show_no_secret(client_of, staff, endpoint):
    delivery = outbox.announce_test(endpoint)
    client = client_of(staff)
    for name, row in (("endpoint", endpoint), ("delivery", delivery)):
        assert client.get(changelist(name)).status_code == 200
        page = client.get(reverse(f"admin:webhooks_webhook{name}_change", args=[row.pk]))
        assert page.status_code == 200
        assert WebhookSecret.objects.get().sealed not in page.content.decode()
        assert client.get(reverse(f"admin:webhooks_webhook{name}_add")).status_code == 403


def test_staff_switch_send_a_test_and_send_again(client_of, staff, endpoint):
    client = client_of(staff)
    run(client, "endpoint", "switch_off", endpoint)
    endpoint.refresh_from_db()
    assert not endpoint.is_enabled
    refused = run(client, "endpoint", "send_test", endpoint)
    assert "This endpoint is switched off." in refused.content.decode()
    run(client, "endpoint", "switch_on", endpoint)
    run(client, "endpoint", "send_test", endpoint)
    WebhookDelivery.objects.update(state="dead")
    run(client, "delivery", "send_again", WebhookDelivery.objects.get())
    assert WebhookDelivery.objects.get().state == "pending"


def test_staff_who_may_only_look_change_nothing(client_of, endpoint):
    helper = make_user("helper", is_staff=True)
    helper.user_permissions.set(Permission.objects.filter(codename="view_webhookendpoint"))
    client = client_of(helper)
    assert client.get(changelist("endpoint")).status_code == 200
    run(client, "endpoint", "switch_off", endpoint)
    endpoint.refresh_from_db()
    assert endpoint.is_enabled
    assert client.get(changelist("delivery")).status_code == 403

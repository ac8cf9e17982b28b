"""Deliveries of webhooks: signed, at least once, tried again, given up, and sent again, over real HTTP."""

from __future__ import annotations

import json
import socket
import threading
from dataclasses import replace
from datetime import datetime, timedelta
from typing import get_args

import anthropic
import pytest
from anthropic.types.beta.beta_webhook_event import BetaWebhookEvent
from anthropic.types.beta.beta_webhook_event_data import BetaWebhookEventData
from asgiref.sync import async_to_sync
from django.core import mail
from django.db import IntegrityError, transaction
from django.utils import timezone
from standardwebhooks import Webhook

from harness.errors import Conflict
from tests.conversations.conftest import still
from tests.webhooks.receiver import LISTENING, Answer, Receiver, self_signed
from webhooks import deliveries, outbox
from webhooks.actions import endpoints as actions
from webhooks.models import WebhookAttempt, WebhookDelivery, WebhookEndpoint
from webhooks.requests import Outcome, post
from webhooks.types import EVERYTHING, TYPES

pytestmark = pytest.mark.django_db(transaction=True)

State = WebhookDelivery.State


@pytest.fixture(autouse=True)
def loopback_may_be_reached(settings):
    settings.AGENTSITE_WEBHOOK_ALLOW_HTTP = True
    settings.AGENTSITE_WEBHOOK_PRIVATE_HOSTS = LISTENING


@pytest.fixture
def subscribe(alice, acme, monkeypatch):
    """Alice's endpoint at a receiver, with its secret. Nothing is tried again by itself while a test
    lasts."""
    monkeypatch.setattr(deliveries, "QUICK_RETRIES", (3600.0, 3600.0))

    def make(receiver: Receiver, *types: str) -> actions.Issued:
        return actions.create_endpoint(
            actor=alice, organisation=acme, url=receiver.url, event_types=types or [EVERYTHING]
        )

    return make


def announce(organisation, event_type="session.archived", subject="sesn_1", **more) -> None:
    with transaction.atomic():
        outbox.announce(organisation.pk, event_type, subject=subject, **more)
    still()


def make_due(*, state: str = State.FAILED) -> None:
    """What has to wait waits no longer; the sweep finds it."""
    WebhookDelivery.objects.filter(state=state).update(next_attempt_at=timezone.now())
    deliveries.sweep()
    still()


def test_an_event_arrives_signed_and_thin_and_the_official_sdk_unwraps_it(acme, subscribe):
    with Receiver() as receiver:
        issued = subscribe(receiver)
        announce(acme, "session.thread_created", session_thread_id="sesn_2")
        (request,) = receiver.wait_for(1)
    event = anthropic.Anthropic(api_key="unused").beta.webhooks.unwrap(
        request.body, headers=request.headers, key=issued.secret
    )
    delivery = WebhookDelivery.objects.get()
    assert event.type == "event"
    assert event.id == delivery.event_id == request.headers["webhook-id"]
    assert event.id.startswith("whe_")
    assert isinstance(event.created_at, datetime)
    assert type(event.data).__name__ == "BetaWebhookSessionThreadCreatedEventData"
    assert event.data.to_dict() == {
        "type": "session.thread_created",
        "id": "sesn_1",
        "organization_id": acme.uid,
        "workspace_id": acme.uid,
        "session_thread_id": "sesn_2",
    }
    assert request.headers["content-type"] == "application/json"
    assert delivery.state == State.DELIVERED
    assert delivery.settled_at is not None


def test_every_type_with_a_public_name_is_parsed_as_its_own_class_by_the_sdk(acme):
    classes = get_args(get_args(BetaWebhookEventData)[0])
    public = {get_args(kind.model_fields["type"].annotation)[0]: kind for kind in classes}
    ours = [name for name in TYPES if not name.startswith("x.")]
    assert set(ours) <= set(public)
    endpoint = WebhookEndpoint(organisation=acme)
    for name in ours:
        more = {"session_thread_id": "sesn_2"} if ".thread_" in name else {}
        more |= {"vault_id": "vlt_1"} if name.startswith("vault_credential.") else {}
        body = outbox._body("whe_1", name, endpoint, "sesn_1", more, timezone.now())
        # Strict: a field that is missing or of another type is an error here.
        event = BetaWebhookEvent.model_validate_json(body)
        assert type(event.data) is public[name]
        assert event.data.model_extra == {}


def test_a_changed_body_or_another_secret_does_not_verify(acme, subscribe):
    with Receiver() as receiver:
        issued = subscribe(receiver)
        announce(acme)
        (request,) = receiver.wait_for(1)
    Webhook(issued.secret).verify(request.body, request.headers)
    with pytest.raises(Exception, match="No matching signature"):
        Webhook(issued.secret).verify(request.body + " ", request.headers)
    with pytest.raises(Exception, match="No matching signature"):
        Webhook("whsec_" + "A" * 43 + "=").verify(request.body, request.headers)


def test_nothing_is_sent_of_what_was_rolled_back(acme, subscribe):
    with Receiver() as receiver:
        subscribe(receiver)
        with pytest.raises(ZeroDivisionError), transaction.atomic():
            outbox.announce(acme.pk, "session.archived", subject="sesn_1")
            _ = 1 / 0
        still()
        assert receiver.received == []
    assert not WebhookDelivery.objects.exists()


def test_announcing_outside_of_a_transaction_is_an_error(acme):
    with pytest.raises(transaction.TransactionManagementError):
        outbox.announce(acme.pk, "session.archived", subject="sesn_1")


def test_only_what_was_subscribed_to_arrives_and_only_at_ones_own_endpoints(
    acme, elsewhere, mallory, subscribe
):
    with Receiver() as receiver, Receiver() as foreign:
        subscribe(receiver, "session.created")
        actions.create_endpoint(
            actor=mallory, organisation=elsewhere, url=foreign.url, event_types=[EVERYTHING]
        )
        announce(acme, "session.archived")
        announce(acme, "session.created")
        assert [json.loads(one.body)["data"]["type"] for one in receiver.received] == [
            "session.created"
        ]
        assert foreign.received == []


def test_two_endpoints_hear_of_one_event_under_one_id(acme, subscribe):
    with Receiver() as first, Receiver() as second:
        subscribe(first)
        subscribe(second)
        announce(acme)
        assert first.received[0].body == second.received[0].body


def test_a_failure_is_tried_again_with_the_same_id_and_body_until_it_arrives(acme, subscribe):
    with Receiver(Answer(500, body=b"out of order"), Answer(503), Answer(204)) as receiver:
        subscribe(receiver)
        announce(acme)
        delivery = WebhookDelivery.objects.get()
        assert (delivery.state, delivery.attempts) == (State.FAILED, 1)
        assert delivery.next_attempt_at > timezone.now()
        assert WebhookEndpoint.objects.get().failing_since is not None
        make_due()
        make_due()
        assert len({(one.headers["webhook-id"], one.body) for one in receiver.received}) == 1
    delivery.refresh_from_db()
    assert (delivery.state, delivery.attempts) == (State.DELIVERED, 3)
    assert WebhookEndpoint.objects.get().failing_since is None
    assert [one.status for one in WebhookAttempt.objects.all()] == [500, 503, 204]


def test_of_what_answers_inside_the_network_nothing_is_kept_but_the_status(acme, subscribe):
    """The operator lists a host for what it is told, not for what members would read of it."""
    with Receiver(Answer(500, body=b"requirepass hunter2")) as receiver:
        subscribe(receiver)
        announce(acme)
    attempt = WebhookAttempt.objects.get()
    assert (attempt.status, attempt.error, attempt.excerpt) == (500, "", "")


def test_what_answers_inside_and_is_no_web_server_is_not_repeated(acme, subscribe):
    with socket.create_server(("127.0.0.1", 0)) as server, Receiver() as receiver:
        subscribe(receiver)
        port = server.getsockname()[1]
        LISTENING.append(f"127.0.0.1:{port}")
        WebhookEndpoint.objects.update(url=f"http://127.0.0.1:{port}/")

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(4_096)
                connection.sendall(b"-ERR unknown command hunter2\r\n\r\n")

        threading.Thread(target=answer, daemon=True).start()
        announce(acme)
    attempt = WebhookAttempt.objects.get()
    assert attempt.status is None
    assert attempt.error != ""
    assert "hunter2" not in attempt.error


def test_what_a_public_receiver_answered_is_shown_as_far_as_it_is_kept():
    shown = Outcome(500, body="out of order")
    assert (shown.excerpt, replace(shown, is_inside=True).excerpt) == ("out of order", "")


def test_what_is_not_yet_due_is_not_sent(acme, subscribe):
    with Receiver(Answer(500)) as receiver:
        subscribe(receiver)
        announce(acme)
        deliveries.sweep()
        still()
        assert len(receiver.received) == 1


def test_after_its_last_attempt_a_delivery_is_given_up(acme, subscribe, settings):
    settings.AGENTSITE_WEBHOOK_ATTEMPTS = 2
    with Receiver(Answer(500)) as receiver:
        subscribe(receiver)
        announce(acme)
        make_due()
        delivery = WebhookDelivery.objects.get()
        assert (delivery.state, delivery.last_result) == (State.DEAD, "HTTP 500")
        make_due(state=State.DEAD)
        assert len(receiver.received) == 2


def test_delays_are_three_quick_attempts_then_double_up_to_the_setting_with_jitter(settings):
    settings.AGENTSITE_WEBHOOK_LONGEST_DELAY = 3600
    for attempts, most in ((1, 5), (2, 30), (3, 120), (4, 240), (7, 1920), (8, 3600), (500, 3600)):
        seen = {deliveries.delay_after(attempts) for _ in range(50)}
        assert len(seen) > 10
        assert most * 0.75 <= min(seen) <= max(seen) <= most
    assert deliveries.delay_after(1, asked=90) == 90
    assert deliveries.delay_after(1, asked=10**8) == 3600
    assert deliveries.delay_after(8, asked=1) == 3600


def test_a_receiver_says_how_long_to_wait(acme, subscribe, monkeypatch):
    with Receiver(Answer(429, headers=(("Retry-After", "900"),))) as receiver:
        subscribe(receiver)
        monkeypatch.setattr(deliveries, "QUICK_RETRIES", (5.0,))
        announce(acme)
    delivery = WebhookDelivery.objects.get()
    attempt = WebhookAttempt.objects.get()
    assert delivery.next_attempt_at >= attempt.started_at + timedelta(seconds=900)
    assert delivery.next_attempt_at < timezone.now() + timedelta(seconds=901)


def test_somebody_has_it_sent_again_with_the_same_id_so_that_a_receiver_can_tell(
    alice, acme, subscribe
):
    with Receiver(Answer(204)) as receiver:
        subscribe(receiver)
        announce(acme)
        delivery = WebhookDelivery.objects.get()
        actions.redeliver(actor=alice, delivery=delivery)
        still()
        first, second = receiver.received
        assert (first.headers["webhook-id"], first.body) == (
            second.headers["webhook-id"],
            second.body,
        )
    assert WebhookDelivery.objects.get().state == State.DELIVERED
    assert WebhookAttempt.objects.count() == 2


def test_all_that_was_given_up_is_sent_again_at_once(alice, acme, subscribe, settings):
    settings.AGENTSITE_WEBHOOK_ATTEMPTS = 1
    with Receiver(Answer(500), Answer(500), Answer(204)) as receiver:
        issued = subscribe(receiver)
        announce(acme)
        announce(acme)
        assert set(WebhookDelivery.objects.values_list("state", flat=True)) == {State.DEAD}
        assert actions.redeliver_dead(actor=alice, endpoint=issued.endpoint) == 2
        still()
    assert set(WebhookDelivery.objects.values_list("state", flat=True)) == {State.DELIVERED}


def test_the_same_event_is_stored_once_for_an_endpoint(acme, subscribe):
    with Receiver() as receiver:
        subscribe(receiver)
        announce(acme)
    row = WebhookDelivery.objects.get()
    row.pk = None
    with pytest.raises(IntegrityError):
        row.save(force_insert=True)


def test_two_hints_at_once_make_one_request(acme, subscribe):
    with Receiver(Answer(500), Answer(204)) as receiver:
        subscribe(receiver)
        announce(acme)
        WebhookDelivery.objects.update(next_attempt_at=timezone.now())
        delivery = WebhookDelivery.objects.get()
        outbox.send_soon([delivery] * 10)
        still()
        assert len(receiver.received) == 2


# --- secrets --------------------------------------------------------------------------------------


def test_after_a_rotation_both_secrets_verify_until_the_old_one_ends(alice, acme, subscribe):
    with Receiver() as receiver:
        old = subscribe(receiver)
        new = actions.rotate_secret(actor=alice, endpoint=old.endpoint, grace_hours=2)
        announce(acme)
        during = receiver.received[-1]
        for secret in (old.secret, new.secret):
            Webhook(secret).verify(during.body, during.headers)
        assert during.headers["webhook-signature"].count("v1,") == 2
        old.endpoint.secrets.exclude(expires_at=None).update(expires_at=timezone.now())
        announce(acme)
        after = receiver.received[-1]
        Webhook(new.secret).verify(after.body, after.headers)
        with pytest.raises(Exception, match="No matching signature"):
            Webhook(old.secret).verify(after.body, after.headers)


def test_a_secret_that_leaked_ends_at_once(alice, acme, subscribe):
    with Receiver() as receiver:
        old = subscribe(receiver)
        actions.rotate_secret(actor=alice, endpoint=old.endpoint, grace_hours=2)
        new = actions.rotate_secret(actor=alice, endpoint=old.endpoint, grace_hours=0)
        announce(acme)
        (request,) = receiver.received
    Webhook(new.secret).verify(request.body, request.headers)
    assert request.headers["webhook-signature"].count("v1,") == 1


def test_without_the_vault_key_nothing_is_sent_unsigned(acme, subscribe, settings):
    with Receiver() as receiver:
        subscribe(receiver)
        settings.AGENTSITE_VAULT_KEYS = ["b3RoZXItb3RoZXItb3RoZXItb3RoZXItb3RoZXItLS0="]
        announce(acme)
        assert receiver.received == []
    delivery = WebhookDelivery.objects.get()
    assert delivery.state == State.FAILED
    assert "vault" in delivery.last_result


# --- what a receiver may do -----------------------------------------------------------------------


def test_a_redirect_is_a_failure_and_is_not_followed(acme, subscribe):
    with Receiver() as target, Receiver(Answer(307, (("Location", target.url),))) as receiver:
        subscribe(receiver)
        announce(acme)
        assert target.received == []
    assert WebhookDelivery.objects.get().last_result == "HTTP 307"


def test_an_answer_without_an_end_is_cut_off(acme, subscribe):
    endless = Answer(200, body=b"begin ", drip=lambda: True)
    with Receiver(endless) as receiver:
        subscribe(receiver)
        announce(acme)
        outcome = async_to_sync(post)(receiver.url, b"{}", {})
    assert WebhookDelivery.objects.get().state == State.DELIVERED
    assert outcome.body.startswith("begin xxx")
    assert len(outcome.body) == 2_000


def test_who_does_not_answer_in_time_has_failed(acme, subscribe, settings):
    settings.AGENTSITE_WEBHOOK_TIMEOUT = 1
    hold = threading.Event()
    with Receiver(Answer(204, hold=hold)) as receiver:
        subscribe(receiver)
        announce(acme)
        hold.set()
    attempt = WebhookAttempt.objects.get()
    assert (attempt.status, attempt.error) == (None, "no answer within 1 s")
    assert WebhookDelivery.objects.get().state == State.FAILED


def test_a_receiver_that_is_gone_is_switched_off(alice, acme, subscribe):
    with Receiver(Answer(410)) as receiver:
        issued = subscribe(receiver)
        announce(acme)
        announce(acme)
        assert len(receiver.received) == 1
    endpoint = WebhookEndpoint.objects.get()
    assert endpoint.disabled_reason == WebhookEndpoint.Reason.GONE
    assert WebhookDelivery.objects.get().state == State.DEAD
    with pytest.raises(Conflict):
        actions.send_test(actor=alice, endpoint=issued.endpoint)


def test_who_manages_is_mailed_once_that_an_endpoint_was_switched_off(
    acme, bob, subscribe, settings
):
    settings.AGENTSITE_EMAIL_CONFIGURED = True
    settings.AGENTSITE_BASE_URL = "https://agents.example.org"
    with Receiver(Answer(410)) as receiver:
        issued = subscribe(receiver)
        with transaction.atomic():
            for _ in range(3):
                outbox.announce(acme.pk, "session.archived", subject="sesn_1")
        still()
    (message,) = mail.outbox
    assert message.to == ["alice@example.org"]
    assert (
        f"https://agents.example.org/organisation/webhooks/{issued.endpoint.uid}/" in message.body
    )
    assert "whsec_" not in message.body


def test_after_failing_for_long_an_endpoint_is_switched_off_and_on_again_by_a_person(
    alice, acme, subscribe
):
    with Receiver(Answer(500), Answer(500), Answer(204)) as receiver:
        issued = subscribe(receiver)
        announce(acme)
        WebhookEndpoint.objects.update(failing_since=timezone.now() - timedelta(hours=73))
        make_due()
        endpoint = WebhookEndpoint.objects.get()
        assert endpoint.disabled_reason == WebhookEndpoint.Reason.FAILING
        # What happens now is told to nobody, and what waits is kept.
        announce(acme)
        assert WebhookDelivery.objects.count() == 1
        make_due()
        assert len(receiver.received) == 2
        actions.enable_endpoint(actor=alice, endpoint=issued.endpoint)
        still()
        assert len(receiver.received) == 3
    assert WebhookDelivery.objects.get().state == State.DELIVERED
    assert WebhookEndpoint.objects.get().failing_since is None


def test_a_name_that_leads_inside_later_is_not_connected_to_and_switched_off(
    acme, subscribe, settings
):
    """The name was stored while it was allowed; what it leads to is judged at every attempt."""
    with Receiver() as receiver:
        issued = subscribe(receiver)
        WebhookEndpoint.objects.update(url=f"http://localhost:{receiver.port}/hooks")
        settings.AGENTSITE_WEBHOOK_PRIVATE_HOSTS = []
        announce(acme)
        assert receiver.received == []
    issued.endpoint.refresh_from_db()
    assert issued.endpoint.disabled_reason == WebhookEndpoint.Reason.ADDRESS
    last_result = WebhookDelivery.objects.get().last_result
    assert last_result == (
        "localhost leads to a private address, which is refused: the operator can list it in"
        " AGENTSITE_WEBHOOK_PRIVATE_HOSTS"
    )
    assert "AGENTSITE_WEBHOOK_PRIVATE_HOSTS" in issued.endpoint.get_disabled_reason_display()


def test_a_receiver_inside_that_is_gone_is_not_told_by_its_address(acme, subscribe, settings):
    with Receiver() as receiver:
        subscribe(receiver)
        WebhookEndpoint.objects.update(url=f"http://localhost:{receiver.port}/hooks")
    announce(acme)
    last_result = WebhookDelivery.objects.get().last_result
    assert last_result.startswith("no connection to localhost: ")
    assert "127.0.0.1" not in last_result
    assert "::1" not in last_result


def test_a_certificate_that_nobody_vouches_for_is_not_spoken_to(acme, subscribe, tmp_path):
    with Receiver(context=self_signed(tmp_path / "key.pem")) as receiver:
        subscribe(receiver)
        announce(acme)
        assert receiver.received == []
    assert "certificate" in WebhookDelivery.objects.get().last_result.lower()


# --- many -----------------------------------------------------------------------------------------


def test_a_slow_endpoint_does_not_hold_up_another(acme, subscribe, settings):
    settings.AGENTSITE_WEBHOOK_CONCURRENCY = 8
    hold = threading.Event()
    with Receiver(Answer(204, hold=hold)) as slow, Receiver() as quick:
        subscribe(slow, "session.archived")
        subscribe(quick, "session.created")
        with transaction.atomic():
            for _ in range(20):
                outbox.announce(acme.pk, "session.archived", subject="sesn_1")
            for _ in range(20):
                outbox.announce(acme.pk, "session.created", subject="sesn_1")
        quick.wait_for(20)
        assert len(slow.received) == 2
        hold.set()
        slow.wait_for(20)
        still()
    assert not WebhookDelivery.objects.exclude(state=State.DELIVERED).exists()


def test_settled_deliveries_are_forgotten_after_a_while_and_others_are_not(acme, subscribe):
    with Receiver(Answer(204), Answer(500)) as receiver:
        subscribe(receiver)
        announce(acme)
        announce(acme)
    WebhookDelivery.objects.update(created_at=timezone.now() - timedelta(days=31))
    assert deliveries.prune() == 1
    assert WebhookDelivery.objects.get().state == State.FAILED

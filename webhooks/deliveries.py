"""Deliveries as they are taken up, tried again, given up and forgotten. Tables only; no request.

At least once: a delivery whose sender died is due again when its time to answer is over.
"""

from __future__ import annotations

import logging
import random
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.core.cache import cache
from django.db import transaction
from django.utils import timezone

from harness.errors import NotConfigured
from jobs.dispatch import dispatch
from jobs.metrics import WEBHOOK_ATTEMPTS, WEBHOOK_SECONDS, WEBHOOKS_DISABLED

from . import requests, signing
from .mails import SWITCHED_OFF
from .models import WebhookAttempt, WebhookDelivery, WebhookEndpoint, WebhookSecret
from .outbox import send_soon
from .requests import Outcome

logger = logging.getLogger(__name__)

QUICK_RETRIES = (5.0, 30.0)
"""Seconds after the first and the second attempt; most failures are a restart."""
FIRST_SLOW_RETRY = 120.0
"""Seconds after the third; doubled from then on."""
JITTER = 0.25
"""So much of a delay is left to chance, so that what failed together does not come back together."""
CLOCKS_APART = timedelta(seconds=2)
"""What the clocks of two hosts may differ."""
AT_A_TIME = 500
"""Deliveries that one sweep takes up or deletes; the next one goes on."""
GONE = 410


@dataclass(frozen=True, slots=True)
class Claimed:
    """A delivery to be sent now, signed. Without headers nothing is sent: `problem` says why."""

    delivery_id: int
    url: str
    body: str
    headers: dict[str, str]
    started_at: datetime
    problem: str = ""


def claim(delivery_id: int) -> Claimed | None:
    """Take a due delivery for one attempt; None when it is settled, not due, or being sent."""
    now = timezone.now()
    with transaction.atomic():
        due = WebhookDelivery.objects.due_at(now + CLOCKS_APART).select_related("endpoint")
        locked = due.select_for_update(of=("self",), skip_locked=True, no_key=True)
        delivery = locked.filter(pk=delivery_id).first()
        if delivery is None:
            return None
        delivery.attempts += 1
        delivery.next_attempt_at = now + timedelta(seconds=settings.AGENTSITE_WEBHOOK_TIMEOUT * 2)
        delivery.save(update_fields=["attempts", "next_attempt_at"])
    endpoint = delivery.endpoint
    headers: dict[str, str] = {}
    problem = ""
    try:
        valid = list(WebhookSecret.objects.filter(endpoint=endpoint).valid_at(now))
        headers = signing.headers(delivery.event_id, delivery.body, at=now, valid=valid)
    except NotConfigured as missing:
        problem = missing.message
    return Claimed(delivery.pk, endpoint.url, delivery.body, headers, now, problem)


def record(claimed: Claimed, outcome: Outcome) -> None:
    """Keep what came of an attempt, and say when the next one is due if there is to be one."""
    now = timezone.now()
    with transaction.atomic():
        # First, as whoever has it sent again does.
        endpoints = WebhookEndpoint.objects.select_for_update(of=("self",), no_key=True)
        endpoints.filter(deliveries=claimed.delivery_id).first()
        found = WebhookDelivery.objects.select_related("endpoint")
        delivery = (
            found.select_for_update(of=("self",), no_key=True)
            .filter(pk=claimed.delivery_id)
            .first()
        )
        if delivery is None:
            return
        WebhookAttempt.objects.create(
            delivery=delivery,
            started_at=claimed.started_at,
            milliseconds=outcome.milliseconds,
            status=outcome.status,
            error=outcome.problem[:200],
            excerpt=outcome.excerpt,
        )
        delivery.last_result = outcome.summary
        if outcome.is_delivered:
            _settle(delivery, WebhookDelivery.State.DELIVERED, now)
            WebhookEndpoint.objects.filter(pk=delivery.endpoint_id).exclude(
                failing_since=None
            ).update(failing_since=None)
        elif not delivery.is_settled:
            _fail(delivery, outcome, now)
        delivery.save(update_fields=["state", "next_attempt_at", "last_result", "settled_at"])
    WEBHOOK_ATTEMPTS.labels(_end(delivery, outcome)).inc()
    WEBHOOK_SECONDS.observe(outcome.milliseconds / 1000)


def delay_after(attempts: int, *, asked: float = 0.0) -> float:
    """Seconds until the next attempt after so many, at least what the receiver asked for, at most
    AGENTSITE_WEBHOOK_LONGEST_DELAY."""
    if attempts <= len(QUICK_RETRIES):
        base = QUICK_RETRIES[max(attempts, 1) - 1]
    else:
        doublings = min(attempts - len(QUICK_RETRIES) - 1, 30)
        base = FIRST_SLOW_RETRY * 2**doublings
    longest = float(settings.AGENTSITE_WEBHOOK_LONGEST_DELAY)
    wanted = max(min(base, longest), min(asked, longest))
    return wanted * random.uniform(1 - JITTER, 1) if not asked else wanted  # noqa: S311


def sweep() -> None:
    """Hint again at what is due: its hint was lost, or its time came after a restart."""
    due = WebhookDelivery.objects.due_at(timezone.now()).order_by("next_attempt_at", "pk")
    rows = [
        row
        for row in due.only("pk", "endpoint_id", "next_attempt_at")[:AT_A_TIME]
        # A backlog must not feed itself: what was hinted at a moment ago may wait for its turn.
        if cache.add(
            f"webhook:{row.pk}:{row.next_attempt_at.timestamp()}",
            1,
            timeout=2 * settings.AGENTSITE_SWEEP_SECONDS or 1,
        )
    ]
    send_soon(rows)


def prune() -> int:
    """Delete what was settled and is older than AGENTSITE_WEBHOOK_LOG_DAYS; how many."""
    before = timezone.now() - timedelta(days=settings.AGENTSITE_WEBHOOK_LOG_DAYS)
    settled = [WebhookDelivery.State.DELIVERED, WebhookDelivery.State.DEAD]
    old = WebhookDelivery.objects.filter(created_at__lt=before, state__in=settled)
    pks = list(old.order_by("created_at").values_list("pk", flat=True)[:AT_A_TIME])
    if pks:
        WebhookDelivery.objects.filter(pk__in=pks).delete()
    return len(pks)


def _fail(delivery: WebhookDelivery, outcome: Outcome, now: datetime) -> None:
    endpoint = delivery.endpoint
    if endpoint.failing_since is None:
        endpoint.failing_since = now
        WebhookEndpoint.objects.filter(pk=endpoint.pk, failing_since=None).update(failing_since=now)
    long_ago = now - timedelta(hours=settings.AGENTSITE_WEBHOOK_FAILING_HOURS)
    if outcome.status == GONE:
        _switch_off(endpoint, WebhookEndpoint.Reason.GONE, now)
    elif outcome.code == requests.ADDRESS:
        _switch_off(endpoint, WebhookEndpoint.Reason.ADDRESS, now)
    elif endpoint.failing_since < long_ago:
        _switch_off(endpoint, WebhookEndpoint.Reason.FAILING, now)
    if delivery.attempts >= settings.AGENTSITE_WEBHOOK_ATTEMPTS or outcome.status == GONE:
        _settle(delivery, WebhookDelivery.State.DEAD, now)
        return
    seconds = delay_after(delivery.attempts, asked=outcome.retry_after)
    delivery.state = WebhookDelivery.State.FAILED
    delivery.next_attempt_at = now + timedelta(seconds=seconds)
    send_soon([delivery], delay=seconds)


def _settle(delivery: WebhookDelivery, state: WebhookDelivery.State, now: datetime) -> None:
    delivery.state = state
    delivery.settled_at = now


def _switch_off(endpoint: WebhookEndpoint, reason: WebhookEndpoint.Reason, now: datetime) -> None:
    """What waits for it is kept, and goes out when somebody switches it on again."""
    listening = WebhookEndpoint.objects.listening().filter(pk=endpoint.pk)
    if listening.update(disabled_at=now, disabled_reason=reason):
        WEBHOOKS_DISABLED.labels(str(reason.value)).inc()
        dispatch(SWITCHED_OFF, endpoint_id=endpoint.pk)
        logger.warning("webhook endpoint %s was switched off: %s", endpoint.uid, reason.value)


def _end(delivery: WebhookDelivery, outcome: Outcome) -> str:
    if outcome.is_delivered:
        return "delivered"
    return "dead" if delivery.state == WebhookDelivery.State.DEAD else "failed"

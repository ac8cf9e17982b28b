"""What happened becomes deliveries, in the transaction in which it happened.

So nothing is told that was rolled back, and nothing that was committed is forgotten. Sending is
`courier`'s part and comes after the commit.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from django.db import transaction
from django.utils import timezone

from jobs.dispatch import dispatch

from .models import WebhookDelivery, WebhookEndpoint, new_webhook_event_id
from .types import TEST

DELIVER = "webhooks.deliver"


def announce(organisation_id: int | None, *types: str, subject: str, **more: str) -> None:
    """Write a delivery for each endpoint of the organisation and each of `types` it subscribed to;
    with None for the endpoints of all organisations, because it belongs to everybody.

    `subject` is the public id of what it is about; `more` stands beside it in the event. One query
    where nobody listens. To be called in the transaction of the change.
    """
    if not transaction.get_connection().in_atomic_block:
        raise transaction.TransactionManagementError(
            "an event is announced in the transaction of what it tells of"
        )
    if not is_heard(organisation_id):
        return
    listening = WebhookEndpoint.objects.listening()
    if organisation_id is not None:
        listening = listening.filter(organisation=organisation_id)
    wanting = [
        (endpoint, event_type)
        for endpoint in listening.select_related("organisation")
        for event_type in types
        if endpoint.wants(event_type)
    ]
    if wanting:
        _write(wanting, subject, more)


def announce_test(endpoint: WebhookEndpoint) -> WebhookDelivery:
    """An event for this endpoint alone, whatever it subscribed to."""
    return _write([(endpoint, TEST)], endpoint.uid, {})[0]


def send_soon(deliveries: Iterable[WebhookDelivery], *, delay: float = 0.0) -> None:
    """Hint, after the commit, that these are due; one that is lost is found by the sweep."""
    for delivery in deliveries:
        dispatch(DELIVER, delay=delay, delivery_id=delivery.pk, endpoint_id=delivery.endpoint_id)


def _write(
    wanting: Sequence[tuple[WebhookEndpoint, str]], subject: str, more: dict[str, str]
) -> list[WebhookDelivery]:
    now = timezone.now()
    # One event has one id, however many endpoints of its organisation hear of it.
    ids = {(one.organisation_id, kind): new_webhook_event_id() for one, kind in wanting}
    rows = WebhookDelivery.objects.bulk_create(
        WebhookDelivery(
            endpoint=endpoint,
            event_id=ids[endpoint.organisation_id, kind],
            event_type=kind,
            subject=subject,
            body=_body(ids[endpoint.organisation_id, kind], kind, endpoint, subject, more, now),
            next_attempt_at=now,
            created_at=now,
        )
        for endpoint, kind in wanting
    )
    send_soon(rows)
    return rows


def _body(
    event_id: str,
    event_type: str,
    endpoint: WebhookEndpoint,
    subject: str,
    more: dict[str, str],
    now: datetime,
) -> str:
    """Thin on purpose: whoever is told asks for the object, and finds it as it is by then."""
    organisation = endpoint.organisation.uid
    data = {
        "type": event_type,
        "id": subject,
        "organization_id": organisation,
        # There is no level below an organisation here; the public shape has one.
        "workspace_id": organisation,
        **more,
    }
    created = now.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    event = {"type": "event", "id": event_id, "created_at": created, "data": data}
    return json.dumps(event, separators=(",", ":"))


_HEARD = "SELECT 1 FROM webhooks_webhookendpoint WHERE disabled_at IS NULL"


def is_heard(organisation_id: int | None) -> bool:
    """Whether any endpoint of the organisation (None: of any) might want to know.

    As plain SQL: it is asked at every status of every conversation, mostly in vain, and building the
    query would cost more than the query.
    """
    with transaction.get_connection().cursor() as cursor:
        if organisation_id is None:
            cursor.execute(f"{_HEARD} LIMIT 1")
        else:
            cursor.execute(f"{_HEARD} AND organisation_id = %s LIMIT 1", [organisation_id])
        return cursor.fetchone() is not None

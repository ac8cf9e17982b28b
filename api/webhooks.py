"""`/api/webhooks`: the endpoints of an organisation and what was delivered to them, for programs.

For those who manage it, with the scope `admin`. A secret is in the very answer that made it, and never
again. Every rule is `actions.webhooks`'.
"""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_variables
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from accounts.models import TokenScope
from accounts.permissions import require_manager
from harness.errors import NotFound
from harness.refusals import not_among
from webhooks.actions import endpoints as actions
from webhooks.models import WebhookAttempt, WebhookDelivery, WebhookEndpoint

from .base import ApiView
from .bodies import read_body
from .pages import cursor_of, encode_cursor, limit_of, page
from .schema import CURSOR, LIMIT, answers, listed
from .serializers import Deleted
from .webhookbodies import (
    ChangedEndpoint,
    DeliveryDetail,
    DeliveryRow,
    EndpointRow,
    IssuedEndpoint,
    NewEndpoint,
    Redelivered,
    Rotation,
)

TAG = "Webhooks"
STATE = OpenApiParameter("state", enum=list(WebhookDelivery.State.values))
ADMIN = TokenScope.ADMIN


def endpoint_row(row: WebhookEndpoint) -> dict[str, Any]:
    return {
        "id": row.uid,
        "url": row.url,
        "description": row.description,
        "event_types": row.event_types,
        "enabled": row.is_enabled,
        "disabled_reason": row.disabled_reason,
        "failing_since": row.failing_since,
        "created_at": row.created_at,
        "updated_at": row.updated_at,
    }


def delivery_row(row: WebhookDelivery) -> dict[str, Any]:
    return {
        "id": row.event_id,
        "event_type": row.event_type,
        "subject": row.subject,
        "state": row.state,
        "attempts": row.attempts,
        "last_result": row.last_result,
        "next_attempt_at": None if row.is_settled else row.next_attempt_at,
        "created_at": row.created_at,
        "settled_at": row.settled_at,
    }


def _attempt(row: WebhookAttempt) -> dict[str, Any]:
    return {
        "started_at": row.started_at,
        "milliseconds": row.milliseconds,
        "status": row.status,
        "error": row.error,
        "excerpt": row.excerpt,
    }


class WebhookView(ApiView):
    def endpoints(self) -> Any:
        """Those of the caller's organisation; Forbidden for members who do not manage it."""
        require_manager(self.actor, self.organisation)
        return WebhookEndpoint.objects.visible_to(self.actor).filter(organisation=self.organisation)

    def find_endpoint(self, uid: str) -> WebhookEndpoint:
        mine = WebhookEndpoint.objects.visible_to(self.actor)
        found = mine.filter(organisation=self.organisation, uid=uid).first()
        if found is None:
            raise NotFound(
                _("There is no such webhook endpoint."), hint=_("GET /api/webhooks lists yours.")
            )
        return found

    def find_delivery(self, uid: str, event_uid: str) -> WebhookDelivery:
        deliveries = self.find_endpoint(uid).deliveries.select_related("endpoint")
        found = deliveries.filter(event_id=event_uid).first()
        if found is None:
            raise NotFound(_("There is no such delivery."))
        return found

    def given(self, kind: type[serializers.Serializer[Any]]) -> dict[str, Any]:
        """The body's fields. Raises `Invalid` for what is wrong, or that nobody knows."""
        return read_body(kind, self.request.data)


class WebhooksView(WebhookView):
    scopes = {"GET": ADMIN, "POST": ADMIN}

    @extend_schema(
        operation_id="webhooks_list",
        summary="List the organisation's webhook endpoints, newest first",
        tags=[TAG],
        parameters=[LIMIT, CURSOR],
        responses=listed(EndpointRow, 401, 403, 404, 422),
    )
    def get(self, request: Any) -> Response:
        limit, cursor = limit_of(request), cursor_of(request, int)
        rows = self.endpoints().order_by("-pk")
        if cursor:
            rows = rows.filter(pk__lt=cursor[0])
        found = list(rows[: limit + 1])
        more = encode_cursor(found[limit - 1].pk) if len(found) > limit else ""
        return page(request, [endpoint_row(each) for each in found[:limit]], more)

    @extend_schema(
        operation_id="webhooks_create",
        summary="Make an endpoint; its secret is answered this once",
        tags=[TAG],
        request=NewEndpoint,
        responses=answers(IssuedEndpoint, 401, 403, 404, 409, 413, 422),
    )
    @sensitive_variables("issued")
    def post(self, request: Any) -> Response:
        values = self.given(NewEndpoint)
        issued = actions.create_endpoint(actor=self.actor, organisation=self.organisation, **values)
        return Response({**endpoint_row(issued.endpoint), "secret": issued.secret})


class OneWebhookView(WebhookView):
    scopes = {"GET": ADMIN, "PATCH": ADMIN, "DELETE": ADMIN}

    @extend_schema(
        operation_id="webhooks_retrieve",
        summary="Read about an endpoint",
        tags=[TAG],
        responses=answers(EndpointRow, 401, 403, 404),
    )
    def get(self, request: Any, uid: str) -> Response:
        return Response(endpoint_row(self.find_endpoint(uid)))

    @extend_schema(
        operation_id="webhooks_update",
        summary="Change an endpoint, or switch it on or off; what is left out stays",
        tags=[TAG],
        request=ChangedEndpoint,
        responses=answers(EndpointRow, 401, 403, 404, 409, 413, 422),
    )
    def patch(self, request: Any, uid: str) -> Response:
        row = self.find_endpoint(uid)
        values = self.given(ChangedEndpoint)
        enabled = values.pop("enabled", None)
        if values:
            before = {
                "url": row.url,
                "event_types": row.event_types,
                "description": row.description,
            }
            row = actions.change_endpoint(actor=self.actor, endpoint=row, **{**before, **values})
        if enabled is not None:
            switch = actions.enable_endpoint if enabled else actions.disable_endpoint
            row = switch(actor=self.actor, endpoint=row)
        return Response(endpoint_row(row))

    @extend_schema(
        operation_id="webhooks_delete",
        summary="Remove an endpoint with its secrets and deliveries",
        tags=[TAG],
        responses=answers(Deleted, 401, 403, 404),
    )
    def delete(self, request: Any, uid: str) -> Response:
        actions.remove_endpoint(actor=self.actor, endpoint=self.find_endpoint(uid))
        return Response({"status": "deleted"})


class RotateView(WebhookView):
    scopes = {"POST": ADMIN}

    @extend_schema(
        operation_id="webhooks_rotate",
        summary="Make a new secret; the old one signs beside it for a while",
        tags=[TAG],
        request=Rotation,
        responses=answers(IssuedEndpoint, 401, 403, 404, 409, 422),
    )
    @sensitive_variables("issued")
    def post(self, request: Any, uid: str) -> Response:
        row = self.find_endpoint(uid)
        hours = self.given(Rotation).get("grace_hours")
        issued = actions.rotate_secret(actor=self.actor, endpoint=row, grace_hours=hours)
        return Response({**endpoint_row(issued.endpoint), "secret": issued.secret})


class TestView(WebhookView):
    scopes = {"POST": ADMIN}

    @extend_schema(
        operation_id="webhooks_test",
        summary="Send a test event, whatever the endpoint subscribed to",
        tags=[TAG],
        request=None,
        responses=answers(DeliveryRow, 401, 403, 404, 409),
    )
    def post(self, request: Any, uid: str) -> Response:
        made = actions.send_test(actor=self.actor, endpoint=self.find_endpoint(uid))
        return Response(delivery_row(made))


class DeliveriesView(WebhookView):
    scopes = {"GET": ADMIN}

    @extend_schema(
        operation_id="webhooks_deliveries_list",
        summary="List what was and is to be delivered, newest first",
        tags=[TAG],
        parameters=[STATE, LIMIT, CURSOR],
        responses=listed(DeliveryRow, 401, 403, 404, 422),
    )
    def get(self, request: Any, uid: str) -> Response:
        limit, cursor = limit_of(request), cursor_of(request, int)
        rows = self.find_endpoint(uid).deliveries.order_by("-pk")
        state = request.query_params.get("state")
        if state is not None:
            if state not in WebhookDelivery.State.values:
                raise not_among("state", state, WebhookDelivery.State.values)
            rows = rows.filter(state=state)
        if cursor:
            rows = rows.filter(pk__lt=cursor[0])
        found = list(rows[: limit + 1])
        more = encode_cursor(found[limit - 1].pk) if len(found) > limit else ""
        return page(request, [delivery_row(each) for each in found[:limit]], more)


class OneDeliveryView(WebhookView):
    scopes = {"GET": ADMIN}

    @extend_schema(
        operation_id="webhooks_deliveries_retrieve",
        summary="Read a delivery with its body and its attempts",
        tags=[TAG],
        responses=answers(DeliveryDetail, 401, 403, 404),
    )
    def get(self, request: Any, uid: str, event_uid: str) -> Response:
        row = self.find_delivery(uid, event_uid)
        log = [_attempt(each) for each in row.attempt_log.all()]
        return Response({**delivery_row(row), "body": row.body, "attempt_log": log})


class RedeliverView(WebhookView):
    scopes = {"POST": ADMIN}

    @extend_schema(
        operation_id="webhooks_deliveries_redeliver",
        summary="Send it again from the start, with the same id and body",
        tags=[TAG],
        request=None,
        responses=answers(DeliveryRow, 401, 403, 404, 409),
    )
    def post(self, request: Any, uid: str, event_uid: str) -> Response:
        row = actions.redeliver(actor=self.actor, delivery=self.find_delivery(uid, event_uid))
        return Response(delivery_row(row))


class RedeliverDeadView(WebhookView):
    scopes = {"POST": ADMIN}

    @extend_schema(
        operation_id="webhooks_redeliver",
        summary="Send again what was given up, the oldest first",
        tags=[TAG],
        request=None,
        responses=answers(Redelivered, 401, 403, 404, 409),
    )
    def post(self, request: Any, uid: str) -> Response:
        count = actions.redeliver_dead(actor=self.actor, endpoint=self.find_endpoint(uid))
        return Response({"count": count})

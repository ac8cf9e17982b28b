"""The bodies of `/api/webhooks`: their form; which types there are and where one may send is judged by
the actions."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from webhooks.models import WebhookDelivery, WebhookEndpoint

from .serializers import StrictSwitch, StrictText


class NewEndpoint(serializers.Serializer[Any]):
    url = StrictText(max_length=2_000, help_text="https and a public name.")
    event_types = serializers.ListField(
        child=StrictText(max_length=60),
        max_length=200,
        help_text="Names of docs/webhooks.md, or `*` for all.",
    )
    description = StrictText(required=False, allow_blank=True, max_length=2_000)


class ChangedEndpoint(serializers.Serializer[Any]):
    url = StrictText(required=False, max_length=2_000)
    event_types = serializers.ListField(
        required=False, child=StrictText(max_length=60), max_length=200
    )
    description = StrictText(required=False, allow_blank=True, max_length=2_000)
    enabled = StrictSwitch(required=False, help_text="What waited is sent when it goes on.")


class Rotation(serializers.Serializer[Any]):
    grace_hours = serializers.IntegerField(
        required=False,
        min_value=0,
        max_value=168,
        help_text="How long the old secret still signs; 0 if it became known to somebody.",
    )


class EndpointRow(serializers.Serializer[Any]):
    id = serializers.CharField()
    url = serializers.CharField()
    description = serializers.CharField(allow_blank=True)
    event_types = serializers.ListField(child=serializers.CharField())
    enabled = serializers.BooleanField()
    disabled_reason = serializers.ChoiceField(
        choices=WebhookEndpoint.Reason.values, allow_blank=True
    )
    failing_since = serializers.DateTimeField(
        allow_null=True, help_text="When the first attempt failed after which none succeeded."
    )
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()


class IssuedEndpoint(EndpointRow):
    secret = serializers.CharField(help_text="Signs deliveries; answered this once.")


class DeliveryRow(serializers.Serializer[Any]):
    id = serializers.CharField(help_text="`webhook-id` of every attempt.")
    event_type = serializers.CharField()
    subject = serializers.CharField(help_text="Id of what it is about.")
    state = serializers.ChoiceField(choices=WebhookDelivery.State.values)
    attempts = serializers.IntegerField()
    last_result = serializers.CharField(allow_blank=True)
    next_attempt_at = serializers.DateTimeField(allow_null=True)
    created_at = serializers.DateTimeField()
    settled_at = serializers.DateTimeField(allow_null=True)


class AttemptRow(serializers.Serializer[Any]):
    started_at = serializers.DateTimeField()
    milliseconds = serializers.IntegerField()
    status = serializers.IntegerField(allow_null=True)
    error = serializers.CharField(allow_blank=True)
    excerpt = serializers.CharField(allow_blank=True)


class DeliveryDetail(DeliveryRow):
    body = serializers.CharField()
    attempt_log = AttemptRow(many=True)


class Redelivered(serializers.Serializer[Any]):
    count = serializers.IntegerField()

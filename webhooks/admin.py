"""Webhooks in the admin: every organisation's endpoints and deliveries, to look at, switch and send again.

Made and changed they are on the organisation's own page, where the secret is shown. The actions call
what that page calls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext
from unfold.contrib.filters.admin import AutocompleteSelectFilter

from accounts.administration.readonly import ReadOnlyAdmin
from accounts.administration.requests import actor_of
from accounts.staff import has_staff_permission
from harness.errors import Declined

from .actions import endpoints as actions
from .models import CHANGE, WebhookDelivery, WebhookEndpoint


class WebhookEndpointAdmin(ReadOnlyAdmin):
    actions = ["switch_on", "switch_off", "send_test"]  # type: ignore[assignment]
    list_display = ["url", "organisation", "disabled_reason", "failing_since", "created_at"]
    list_filter = ["disabled_reason", ("organisation", AutocompleteSelectFilter)]
    list_filter_submit = True
    list_select_related = ["organisation"]
    search_fields = ["=uid", "url"]
    search_help_text = _("The id of an endpoint, or a part of its address")
    ordering = ["-id"]
    fields = readonly_fields = [
        "uid",
        "organisation",
        "url",
        "description",
        "types",
        "disabled_at",
        "disabled_reason",
        "failing_since",
        "created_by",
        "created_at",
    ]

    @admin.display(description=_("event types"))
    def types(self, obj: WebhookEndpoint) -> str:
        return ", ".join(obj.event_types)

    def has_settle_permission(self, request: HttpRequest) -> bool:
        return has_staff_permission(actor_of(request), CHANGE)

    @admin.action(description=_("Switch on"), permissions=["settle"])
    def switch_on(self, request: HttpRequest, endpoints: QuerySet[WebhookEndpoint]) -> None:
        _each(
            request,
            endpoints,
            lambda actor, one: actions.enable_endpoint(actor=actor, endpoint=one),
        )

    @admin.action(description=_("Switch off"), permissions=["settle"])
    def switch_off(self, request: HttpRequest, endpoints: QuerySet[WebhookEndpoint]) -> None:
        _each(
            request,
            endpoints,
            lambda actor, one: actions.disable_endpoint(actor=actor, endpoint=one),
        )

    @admin.action(description=_("Send a test event"), permissions=["settle"])
    def send_test(self, request: HttpRequest, endpoints: QuerySet[WebhookEndpoint]) -> None:
        _each(request, endpoints, lambda actor, one: actions.send_test(actor=actor, endpoint=one))


class WebhookDeliveryAdmin(ReadOnlyAdmin):
    actions = ["send_again"]  # type: ignore[assignment]
    list_display = [
        "created_at",
        "event_type",
        "subject",
        "endpoint",
        "state",
        "attempts",
        "last_result",
    ]
    list_filter = ["state", "event_type"]
    list_select_related = ["endpoint"]
    search_fields = ["=event_id", "=subject", "=endpoint__uid"]
    search_help_text = _("The id of an event, of what it is about, or of an endpoint")
    ordering = ["-id"]
    fields = readonly_fields = [
        "event_id",
        "event_type",
        "subject",
        "endpoint",
        "state",
        "attempts",
        "next_attempt_at",
        "created_at",
        "settled_at",
        "body",
        "attempt_list",
    ]

    @admin.display(description=_("attempts"))
    def attempt_list(self, obj: WebhookDelivery) -> SafeString:
        rows = (
            (one.started_at.isoformat(" ", "seconds"), one.status or one.error, one.milliseconds)
            for one in obj.attempt_log.all()
        )
        return format_html_join("", "<div>{} · {} · {} ms</div>", rows)

    def has_settle_permission(self, request: HttpRequest) -> bool:
        return has_staff_permission(actor_of(request), CHANGE)

    @admin.action(description=_("Send again"), permissions=["settle"])
    def send_again(self, request: HttpRequest, deliveries: QuerySet[WebhookDelivery]) -> None:
        _each(
            request,
            deliveries.select_related("endpoint"),
            lambda actor, one: actions.redeliver(actor=actor, delivery=one),
        )


def _each(request: HttpRequest, rows: QuerySet[Any], do: Callable[..., object]) -> None:
    """Do it with each; a refusal is told and keeps no other from it."""
    count = 0
    for row in rows.order_by("pk"):
        try:
            do(actor_of(request), row)
        except Declined as refusal:
            messages.warning(request, f"{row}: {refusal.words}")
        else:
            count += 1
    message = ngettext("Done with %(count)d.", "Done with %(count)d.", count)
    messages.success(request, message % {"count": count})


admin.site.register(WebhookEndpoint, WebhookEndpointAdmin)
admin.site.register(WebhookDelivery, WebhookDeliveryAdmin)

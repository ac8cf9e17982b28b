"""Runs, the journal of claims and traces, for reading only: who worked on a conversation, and what exactly
a model was sent."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from accounts.administration.readonly import ReadOnlyAdmin, pretty_json
from conversations.administration.log import conversation_link, may_read
from conversations.models import Activation, ModelTrace, Run


class RunAdmin(ReadOnlyAdmin):
    list_display = [
        "id",
        "conversation_uid",
        "state",
        "stop_reason",
        "worker",
        "started_at",
        "duration",
        "lease_until",
    ]
    list_filter = ["state"]
    list_select_related = ["conversation"]
    search_fields = ["=conversation__uid", "worker"]
    search_help_text = _("The id of a conversation, or a worker")
    fields = readonly_fields = [
        "conversation_uid",
        "state",
        "stop_reason",
        "error",
        "worker",
        "lease_until",
        "started_at",
        "ended_at",
        "duration",
    ]

    @admin.display(description=_("conversation"))
    def conversation_uid(self, obj: Run) -> SafeString | str:
        return conversation_link(obj.conversation)

    @admin.display(description=_("duration"))
    def duration(self, obj: Run) -> str:
        """Until now for one that has not ended, to the second."""
        spent = (obj.ended_at or timezone.now()) - obj.started_at
        return str(timedelta(seconds=round(spent.total_seconds())))


class ModelTraceAdmin(ReadOnlyAdmin):
    """A trace holds all that was said, so it takes the permission to view events as well."""

    list_display = ["model_request_id", "conversation_uid", "created_at"]
    list_select_related = ["conversation"]
    search_fields = ["=model_request_id", "=conversation__uid"]
    search_help_text = _("The id of a model request or a conversation")
    ordering = ["-id"]
    fields = readonly_fields = [
        "model_request_id",
        "conversation_uid",
        "created_at",
        "sent",
        "received",
    ]

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(super().has_view_permission(request, obj)) and may_read(request)

    def get_queryset(self, request: HttpRequest) -> QuerySet[ModelTrace]:
        rows: QuerySet[ModelTrace] = super().get_queryset(request)
        return rows.defer("request", "response")  # read only for the page of one

    @admin.display(description=_("conversation"))
    def conversation_uid(self, obj: ModelTrace) -> SafeString | str:
        return conversation_link(obj.conversation)

    @admin.display(description=_("sent"))
    def sent(self, obj: ModelTrace) -> SafeString:
        return pretty_json(obj.request)

    @admin.display(description=_("received"))
    def received(self, obj: ModelTrace) -> SafeString | str:
        if obj.response is None:
            return str(_("Nothing: it is under way, or failed before the first piece."))
        return pretty_json(obj.response)


class ActivationAdmin(ReadOnlyAdmin):
    list_display = ["created_at", "conversation_uid", "run_id", "step", "cause", "detail", "worker"]
    list_filter = ["step", "cause"]
    list_select_related = ["conversation"]
    search_fields = ["=conversation__uid", "worker"]
    search_help_text = _("The id of a conversation, or a worker")
    ordering = ["-id"]
    fields = readonly_fields = [
        "created_at",
        "conversation_uid",
        "run",
        "step",
        "cause",
        "detail",
        "worker",
    ]

    @admin.display(description=_("conversation"))
    def conversation_uid(self, obj: Activation) -> SafeString | str:
        return conversation_link(obj.conversation)

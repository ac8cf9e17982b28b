"""Schedules in the admin: everybody's, with their runs, to look at. Their owners change them on the pages."""

from __future__ import annotations

from django.contrib import admin
from unfold.contrib.filters.admin import AutocompleteSelectFilter

from accounts.administration.readonly import ReadOnlyAdmin

from .models import Arrival, Delivery, OrderRun, QueueItem, StandingOrder


class StandingOrderAdmin(ReadOnlyAdmin):
    list_display = ["uid", "organisation", "owner", "next_due_at", "pause", "failures"]
    list_filter = ["pause", ("organisation", AutocompleteSelectFilter)]
    list_filter_submit = True
    list_select_related = ["organisation", "owner"]
    search_fields = ["=uid"]
    ordering = ["-id"]
    # What it is to do is its owner's: staff see when, not what.
    fields = readonly_fields = [
        "uid",
        "organisation",
        "owner",
        "agent_version",
        "environment",
        "provider",
        "model",
        "cron",
        "timezone",
        "missed",
        "overlap",
        "paused_at",
        "pause",
        "pause_words",
        "failures",
        "next_due_at",
        "last_run_at",
        "created_at",
        "archived_at",
    ]


class OrderRunAdmin(ReadOnlyAdmin):
    list_display = ["uid", "order", "trigger", "due_at", "state", "skip", "error", "cost"]
    list_filter = ["state", "trigger"]
    list_select_related = ["order"]
    search_fields = ["=uid", "=order__uid", "=session_uid"]
    ordering = ["-id"]
    fields = readonly_fields = [
        "uid",
        "order",
        "trigger",
        "due_at",
        "state",
        "skip",
        "skipped",
        "session_uid",
        "error",
        "cost",
        "created_at",
        "started_at",
        "ended_at",
    ]


class QueueItemAdmin(ReadOnlyAdmin):
    list_display = ["uid", "order", "source", "state", "depth", "tries", "error", "created_at"]
    list_filter = ["state", "source"]
    list_select_related = ["order"]
    search_fields = ["=uid", "=order__uid"]
    ordering = ["-id"]
    # What it says is its owner's.
    fields = readonly_fields = [
        "uid",
        "order",
        "source",
        "state",
        "depth",
        "tries",
        "not_before",
        "error",
        "created_at",
        "ended_at",
    ]


class DeliveryAdmin(ReadOnlyAdmin):
    list_display = ["uid", "run", "way", "user", "state", "why", "tries", "created_at"]
    list_filter = ["state", "way", "why"]
    list_select_related = ["run", "user"]
    search_fields = ["=uid", "=run__uid", "=run__order__uid"]
    ordering = ["-id"]
    fields = readonly_fields = [
        "uid",
        "run",
        "way",
        "user",
        "state",
        "why",
        "tries",
        "created_at",
        "changed_at",
    ]


class ArrivalAdmin(ReadOnlyAdmin):
    list_display = ["id", "order", "refusal", "run", "created_at"]
    list_filter = ["refusal"]
    list_select_related = ["order", "run"]
    search_fields = ["=order__uid", "=run__uid"]
    ordering = ["-id"]
    # Who wrote and what about is its owner's.
    fields = readonly_fields = ["order", "refusal", "run", "created_at"]


admin.site.register(Arrival, ArrivalAdmin)
admin.site.register(Delivery, DeliveryAdmin)
admin.site.register(QueueItem, QueueItemAdmin)
admin.site.register(StandingOrder, StandingOrderAdmin)
admin.site.register(OrderRun, OrderRunAdmin)

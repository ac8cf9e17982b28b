"""Briefs in the admin: who gets one and when, and whether it was mailed. What they say is their owner's."""

from __future__ import annotations

from django.contrib import admin
from unfold.contrib.filters.admin import AutocompleteSelectFilter

from accounts.administration.readonly import ReadOnlyAdmin

from .models import Brief, BriefWish


class BriefWishAdmin(ReadOnlyAdmin):
    list_display = ["user", "organisation", "is_on", "at", "timezone", "days", "next_at"]
    list_filter = ["is_on", ("organisation", AutocompleteSelectFilter)]
    list_filter_submit = True
    list_select_related = ["user", "organisation"]
    search_fields = ["=user__username"]
    ordering = ["-id"]
    fields = readonly_fields = [
        "user",
        "organisation",
        "is_on",
        "at",
        "timezone",
        "days",
        "by_mail",
        "by_webhook",
        "is_quiet",
        "is_written",
        "provider",
        "model",
        "effort",
        "next_at",
    ]


class BriefAdmin(ReadOnlyAdmin):
    list_display = ["uid", "user", "organisation", "due_at", "writing", "mail", "tries"]
    list_filter = ["mail", "writing", ("organisation", AutocompleteSelectFilter)]
    list_filter_submit = True
    list_select_related = ["user", "organisation"]
    search_fields = ["=uid", "=user__username"]
    ordering = ["-id"]
    fields = readonly_fields = [
        "uid",
        "user",
        "organisation",
        "due_at",
        "since",
        "until",
        "writing",
        "provider",
        "model",
        "asked_at",
        "mail",
        "tries",
        "created_at",
    ]


admin.site.register(BriefWish, BriefWishAdmin)
admin.site.register(Brief, BriefAdmin)

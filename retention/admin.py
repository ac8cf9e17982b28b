"""Rules in the admin, for reading: an organisation's managers make them on their page."""

from __future__ import annotations

from django.contrib import admin

from accounts.administration.readonly import ReadOnlyAdmin

from .models import RetentionRule


@admin.register(RetentionRule)
class RetentionRuleAdmin(ReadOnlyAdmin):
    list_display = ["organisation", "days", "only_archived", "in_force_at"]
    list_select_related = ["organisation"]
    fields = readonly_fields = [
        "organisation",
        "days",
        "only_archived",
        "in_force_at",
        "saved_by",
        "saved_at",
    ]

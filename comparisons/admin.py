"""Comparisons in the admin, for reading. What was asked and answered stands in the conversations."""

from __future__ import annotations

from django.contrib import admin

from accounts.administration.readonly import ReadOnlyAdmin

from .models import Comparison


@admin.register(Comparison)
class ComparisonAdmin(ReadOnlyAdmin):
    list_display = ["uid", "state", "judged", "started_at", "ended_at"]
    search_fields = ["=uid"]
    fields = readonly_fields = [
        "uid",
        "state",
        "judged",
        "judge_provider",
        "judge_model",
        "started_at",
        "ended_at",
    ]

"""Readings of conversations in the admin, for reading: they hold no word of a conversation."""

from __future__ import annotations

from django.contrib import admin

from accounts.administration.readonly import ReadOnlyAdmin

from .models import Analysis


@admin.register(Analysis)
class AnalysisAdmin(ReadOnlyAdmin):
    list_display = ["at", "outcome", "provider", "model"]
    list_filter = ["outcome", "provider", "model"]
    fields = readonly_fields = [
        "at",
        "outcome",
        "provider",
        "model",
        "model_request_id",
        "prompt_tokens_at_most",
        "output_tokens_at_most",
    ]

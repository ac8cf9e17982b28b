"""Named prompts in the admin, for reading: they are changed on their pages, in versions."""

from __future__ import annotations

from django.contrib import admin

from accounts.administration.readonly import ReadOnlyAdmin

from .models import Prompt, PromptVersion


@admin.register(Prompt)
class PromptAdmin(ReadOnlyAdmin):
    list_display = ["name", "organisation", "uid", "updated_at"]
    list_select_related = ["organisation"]
    search_fields = ["=uid", "name"]
    fields = readonly_fields = [
        "uid",
        "organisation",
        "name",
        "description",
        "created_by",
        "created_at",
        "updated_at",
    ]


@admin.register(PromptVersion)
class PromptVersionAdmin(ReadOnlyAdmin):
    list_display = ["prompt", "number", "created_by", "created_at", "note"]
    list_select_related = ["prompt", "created_by"]
    search_fields = ["=prompt__uid", "=prompt__name"]
    fields = readonly_fields = [
        "prompt",
        "number",
        "text",
        "stored_variables",
        "digest",
        "note",
        "created_by",
        "created_at",
    ]

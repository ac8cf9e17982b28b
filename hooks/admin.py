"""Hooks in the admin, for reading: they are changed on their pages."""

from __future__ import annotations

from django.contrib import admin

from accounts.administration.readonly import ReadOnlyAdmin

from .models import Hook


@admin.register(Hook)
class HookAdmin(ReadOnlyAdmin):
    list_display = ["name", "organisation", "kind", "tool", "position", "enabled"]
    list_select_related = ["organisation"]
    search_fields = ["=uid", "name"]
    fields = readonly_fields = [
        "uid",
        "organisation",
        "name",
        "kind",
        "target",
        "tool",
        "position",
        "deadline",
        "on_failure",
        "enabled",
        "asked",
        "held_back",
        "failed",
        "milliseconds",
        "created_by",
        "created_at",
    ]

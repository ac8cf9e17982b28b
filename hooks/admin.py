"""Hooks in the admin, for reading: they are changed on their pages."""

from __future__ import annotations

from django.contrib import admin
from django.utils.translation import gettext_lazy as _

from accounts.administration.readonly import ReadOnlyAdmin

from .models import Hook


@admin.register(Hook)
class HookAdmin(ReadOnlyAdmin):
    list_display = ["name", "organisation", "kind", "points", "tool", "position", "enabled"]
    list_select_related = ["organisation"]
    search_fields = ["=uid", "name"]
    fields = readonly_fields = [
        "uid",
        "organisation",
        "name",
        "kind",
        "target",
        "points",
        "tool",
        "trusted",
        "position",
        "deadline",
        "on_failure",
        "enabled",
        "came_of_it",
        "created_by",
        "created_at",
    ]

    @admin.display(description=_("What came of it"))
    def came_of_it(self, hook: Hook) -> str:
        return "; ".join(
            _(
                "%(point)s: asked %(asked)d times, held back %(held)d, failed %(failed)d, %(ms)d ms each"
            )
            % {
                "point": each.point,
                "asked": each.asked,
                "held": each.held_back,
                "failed": each.failed,
                "ms": each.average,
            }
            for each in hook.counted
        )

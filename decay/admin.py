"""Rules of decay and what passes did in the admin, for reading: who writes in a store rules on its page.

No row holds a word of a memory, and none says how a person calls her store.
"""

from __future__ import annotations

from django.contrib import admin

from accounts.administration.readonly import ReadOnlyAdmin

from .models import DecayRule, DecayRun


class DecayRuleAdmin(ReadOnlyAdmin):
    list_display = ["store", "summary_days", "marker_days", "gone_days", "in_force_at"]
    list_select_related = ["store"]
    search_fields = ["=store__uid"]
    fields = readonly_fields = [
        "store",
        "summary_days",
        "marker_days",
        "gone_days",
        "also_unconfirmed",
        "version",
        "in_force_at",
        "saved_by",
        "saved_at",
    ]


class DecayRunAdmin(ReadOnlyAdmin):
    list_display = ["store", "at", "summaries", "markers", "gone", "tokens_saved"]
    list_select_related = ["store"]
    search_fields = ["=store__uid"]
    ordering = ["-id"]
    fields = readonly_fields = [
        "store",
        "rule_version",
        "at",
        "summaries",
        "markers",
        "gone",
        "tokens_saved",
    ]


admin.site.register(DecayRule, DecayRuleAdmin)
admin.site.register(DecayRun, DecayRunAdmin)

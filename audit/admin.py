"""The audit log in the admin, for reading only."""

from __future__ import annotations

from django.contrib import admin
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _
from unfold.contrib.filters.admin import AutocompleteSelectFilter

from accounts.administration.readonly import ReadOnlyAdmin, pretty_json

from .models import AuditEntry


class AuditEntryAdmin(ReadOnlyAdmin):
    list_display = ["at", "action", "actor_name", "tool", "reason", "organisation", "approval_uid"]
    list_filter = ["action", ("organisation", AutocompleteSelectFilter)]
    list_filter_submit = True
    list_select_related = ["organisation"]
    search_fields = ["=approval_uid", "=conversation_uid", "=rule_uid", "=tool", "=actor_name"]
    ordering = ["-id"]
    fields = readonly_fields = [
        "at",
        "action",
        "actor_name",
        "organisation",
        "conversation_uid",
        "approval_uid",
        "call_uid",
        "rule_uid",
        "tool",
        "input_sha256",
        "reason",
        "details_shown",
    ]

    @admin.display(description=_("details"))
    def details_shown(self, obj: AuditEntry) -> SafeString:
        return pretty_json(obj.details)


admin.site.register(AuditEntry, AuditEntryAdmin)

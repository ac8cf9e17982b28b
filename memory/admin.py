"""Memory stores in the admin: that there are some, whose, and how full. Nothing of what is in them, and
nothing to change: a person's memory is hers alone.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import admin
from django.db.models import Count, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from unfold.contrib.filters.admin import AutocompleteSelectFilter

from accounts.administration.readonly import ReadOnlyAdmin

from .models import MemoryStore


class MemoryStoreAdmin(ReadOnlyAdmin):
    list_display = ["uid", "scope", "organisation", "owner", "agent", "held", "archived_at"]
    list_filter = [("organisation", AutocompleteSelectFilter)]
    list_filter_submit = True
    list_select_related = ["owner", "organisation", "agent"]
    search_fields = ["=uid", "=owner__username"]
    search_help_text = _("The id of a store, or a user name")
    ordering = ["-id"]
    fields = readonly_fields = [
        "uid",
        "scope",
        "shared_name",
        "organisation",
        "owner",
        "agent",
        "held",
        "created_at",
        "updated_at",
        "archived_at",
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[MemoryStore]:
        rows: QuerySet[MemoryStore] = super().get_queryset(request)
        return rows.annotate(memories_held=Count("memories"))

    @admin.display(description=_("memories"))
    def held(self, store: Any) -> str:
        return f"{store.memories_held:,} / {settings.AGENTSITE_MEMORIES:,}"

    @admin.display(description=_("name"))
    def shared_name(self, store: MemoryStore) -> str:
        """Of what is shared: how a person calls her own says what she remembers."""
        return store.name if store.owner_id is None else ""


admin.site.register(MemoryStore, MemoryStoreAdmin)

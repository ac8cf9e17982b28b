"""Collections and documents in the admin: whose they are, how far they are read, and why not further. Nothing
of what stands in them, nor how a person calls her own, and nothing to change.
"""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from unfold.contrib.filters.admin import AutocompleteSelectFilter

from accounts.administration.readonly import ReadOnlyAdmin

from .models import Collection, Document


class CollectionAdmin(ReadOnlyAdmin):
    list_display = [
        "uid",
        "organisation",
        "owner",
        "held",
        "unread",
        "held_back",
        "created_at",
    ]
    list_filter = [("organisation", AutocompleteSelectFilter)]
    list_filter_submit = True
    list_select_related = ["owner", "organisation"]
    search_fields = ["=uid", "=owner__username"]
    search_help_text = _("The id of a collection, or a user name")
    ordering = ["-id"]
    fields = readonly_fields = [
        "uid",
        "shared_name",
        "organisation",
        "owner",
        "held",
        "unread",
        "held_back",
        "created_at",
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Collection]:
        failed = Q(documents__state=Document.State.FAILED)
        rows: QuerySet[Collection] = super().get_queryset(request)
        return rows.annotate(
            documents_held=Count("documents"), documents_failed=Count("documents", filter=failed)
        )

    @admin.display(description=_("documents"))
    def held(self, collection: Any) -> int:
        return int(collection.documents_held)

    @admin.display(description=_("that cannot be read"))
    def unread(self, collection: Any) -> int:
        return int(collection.documents_failed)

    @admin.display(description=_("name"))
    def shared_name(self, collection: Collection) -> str:
        return collection.name if collection.owner_id is None else ""


class DocumentAdmin(ReadOnlyAdmin):
    list_display = ["uid", "collection", "state", "problem_code", "tries", "size", "updated_at"]
    list_filter = ["state"]
    list_select_related = ["collection"]
    search_fields = ["=uid", "=collection__uid"]
    search_help_text = _("The id of a document or its collection")
    ordering = ["-id"]
    fields = readonly_fields = [
        "uid",
        "collection",
        "state",
        "problem_code",
        "tries",
        "progress",
        "size",
        "cut",
        "claimed_at",
        "created_at",
        "updated_at",
    ]


admin.site.register(Collection, CollectionAdmin)
admin.site.register(Document, DocumentAdmin)

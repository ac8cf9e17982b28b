"""The admin's site: unfold's, which makes the list of all models only for a page that shows it, and takes no
expressions from an address, whoever's the page is.

Making the list takes as long as the rest of a page, and the sidebar is a list of ours (`agentsite.sidebar`).
"""

from __future__ import annotations

from typing import Any, cast

from django.contrib import admin
from django.contrib.admin import sites
from django.db.models.constants import LOOKUP_SEP
from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject
from unfold.apps import DefaultAppConfig
from unfold.sites import UnfoldAdminSite

EXPRESSIONS = frozenset({"regex", "iregex"})
"""Lookups by which one parameter could hold the database, and on SQLite this process, for hours."""


class _WithoutExpressions:
    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest | None = None) -> bool:
        """Of those that a list's address names; one that is not is answered with 400."""
        if EXPRESSIONS & set(lookup.lower().split(LOOKUP_SEP)):
            return False
        allowed: bool = super().lookup_allowed(lookup, value, request)  # type: ignore[misc]
        return allowed


class Site(UnfoldAdminSite):
    def register(
        self,
        model_or_iterable: Any,
        admin_class: type[admin.ModelAdmin[Any]] | None = None,
        **options: Any,
    ) -> None:
        """For pages of ours and of other apps alike."""
        given = admin_class or admin.ModelAdmin
        guarded = type(
            given.__name__, (_WithoutExpressions, given), {"__module__": given.__module__}
        )
        super().register(model_or_iterable, guarded, **options)

    def get_app_list(
        self, request: HttpRequest, app_label: str | None = None
    ) -> list[dict[str, Any]]:
        """As unfold's, when it is looked at."""
        made = super().get_app_list
        return cast(
            "list[dict[str, Any]]", SimpleLazyObject(lambda: made(request, app_label=app_label))
        )


class UnfoldConfig(DefaultAppConfig):
    """Unfold's app, with our site."""

    def ready(self) -> None:
        admin.site = sites.site = Site()

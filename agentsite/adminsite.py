"""The admin's site: unfold's, which makes the list of all models only for a page that shows it, and takes
from an address no expressions and nothing of what its pages do not show, whoever's the page is.

Making the list takes as long as the rest of a page, and the sidebar is a list of ours (`agentsite.sidebar`).
"""

from __future__ import annotations

from typing import Any, cast

from django.contrib import admin
from django.contrib.admin import sites
from django.contrib.admin.utils import flatten_fieldsets
from django.core.exceptions import FieldDoesNotExist
from django.db.models.constants import LOOKUP_SEP
from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject
from unfold.apps import DefaultAppConfig
from unfold.sites import UnfoldAdminSite

EXPRESSIONS = frozenset({"regex", "iregex"})
"""Lookups by which one parameter could hold the database, and on SQLite this process, for hours."""


class _Lookups:
    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest | None = None) -> bool:
        """Of those that a list's address names; one that is not is answered with 400."""
        name, *others = lookup.split(LOOKUP_SEP)
        if EXPRESSIONS & {part.lower() for part in others} or not self._may_ask(name, request):
            return False
        allowed: bool = super().lookup_allowed(lookup, value, request)  # type: ignore[misc]
        return allowed

    def _may_ask(self: Any, name: str, request: HttpRequest | None) -> bool:
        """By how many rows begin so, a column is read sign by sign: of those that nobody is shown here, none
        is asked. Which row belongs to which, Django's own judge bounds."""
        try:
            field = self.opts.get_field(self.opts.pk.name if name == "pk" else name)
        except FieldDoesNotExist:
            return True  # the part of a filter that is no column
        if field.is_relation or field.primary_key:
            return True
        return request is not None and field.name in _shown_on(self, request)


def _shown_on(page: Any, request: HttpRequest) -> set[str]:
    """The names that stand in its list, beside it and on the page of one."""
    listed = (*page.get_list_display(request), *page.get_list_filter(request))
    # "=": what is found by the whole of it alone may be the beginning of a secret.
    searched = (name for name in page.get_search_fields(request) if not name.startswith("="))
    of_one = flatten_fieldsets(page.get_fieldsets(request, page.model()))
    names = (each[0] if isinstance(each, tuple | list) else each for each in listed)
    return {name for name in (*names, *searched, *of_one) if isinstance(name, str)}


class Site(UnfoldAdminSite):
    def register(
        self,
        model_or_iterable: Any,
        admin_class: type[admin.ModelAdmin[Any]] | None = None,
        **options: Any,
    ) -> None:
        """For pages of ours and of other apps alike."""
        given = admin_class or admin.ModelAdmin
        guarded = type(given.__name__, (_Lookups, given), {"__module__": given.__module__})
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

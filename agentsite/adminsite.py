"""The admin's site: unfold's, which makes the list of all models only for a page that shows it.

Making it takes as long as the rest of a page, and the sidebar is a list of ours (`agentsite.sidebar`).
"""

from __future__ import annotations

from typing import Any, cast

from django.contrib import admin
from django.contrib.admin import sites
from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject
from unfold.apps import DefaultAppConfig
from unfold.sites import UnfoldAdminSite


class Site(UnfoldAdminSite):
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

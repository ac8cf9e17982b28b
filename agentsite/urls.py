"""Every address of the site."""

from __future__ import annotations

from allauth.account.decorators import secure_admin_login
from django.conf import settings
from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path

admin.site.login = secure_admin_login(admin.site.login)  # type: ignore[method-assign]

urlpatterns: list[URLPattern | URLResolver] = [
    # Those of programs come first: they are asked most, and all before them would be tried each time.
    path("", include("mcpdoor.urls")),
    path("", include("agui.urls")),
    path("v1/", include("v1.urls")),
    path("", include("agentsite.openapi")),
    path("", include("api.urls")),
    path("admin/", admin.site.urls),
    path("accounts/", include("allauth.urls")),
    path("", include("accounts.urls")),
    *(path("", include(f"{app}.urls")) for app in settings.AGENTSITE_PAGES),
]

"""Addresses of the authorisation server, without a slash at the end as clients are given them."""

from __future__ import annotations

from django.urls import path

from . import endpoints, views

app_name = "mcpclients"

urlpatterns = [
    path(".well-known/oauth-protected-resource", endpoints.show_resource, name="resource"),
    path(
        ".well-known/oauth-protected-resource/mcp",
        endpoints.show_resource,
        name="resource-of-mcp",
    ),
    path(".well-known/oauth-authorization-server", endpoints.show_server, name="server"),
    path("oauth/authorize", views.authorise, name="authorise"),
    path("oauth/token", endpoints.token, name="token"),
    path("oauth/revoke", endpoints.revoke, name="revoke"),
    path("oauth/register", endpoints.register, name="register"),
]

"""The OpenAPI document of all doors, and a page that shows it: both from this server alone.

The page keeps the strict content security policy: its script is a file of its own, its styles are
the library's files. Signed-in people and programs with any token may read both.
"""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_required
from django.urls import path
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework.authentication import SessionAuthentication
from rest_framework.renderers import JSONRenderer
from rest_framework.response import Response

from accounts.api.authentication import TokenAuthentication
from api.base import MayUse
from api.errors import handle


class SchemaView(SpectacularAPIView):
    authentication_classes = [TokenAuthentication, SessionAuthentication]
    permission_classes = [MayUse]
    scopes = {"GET": None}

    @extend_schema(exclude=True)
    def get(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        return super().get(request, *args, **kwargs)  # type: ignore[no-untyped-call]

    def get_exception_handler(self) -> Any:
        return handle

    def handle_exception(self, exc: Exception) -> Response:
        """Errors are JSON here too, whatever form of the document was asked for."""
        self.request.accepted_renderer = JSONRenderer()
        self.request.accepted_media_type = JSONRenderer.media_type
        return super().handle_exception(exc)


class DocsView(SpectacularSwaggerSplitView):
    url_name = "schema"
    template_name = "openapi/docs.html"
    authentication_classes = [SessionAuthentication]
    permission_classes = [MayUse]
    throttle_classes: Any = []


urlpatterns = [
    path("api/schema/", SchemaView.as_view(), name="schema"),
    path("api/docs/", login_required(DocsView.as_view()), name="api-docs"),
]

"""`/api/auth` and `/health`: who is asking, how one signs in, and whether the server is well."""

from __future__ import annotations

from typing import Any

from django.db import DatabaseError, connection
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.response import Response

from accounts.api.authentication import Caller

from .base import ApiView
from .schema import answers
from .serializers import AuthConfig, Health, Me


class AuthConfigView(ApiView):
    authentication_classes = []
    permission_classes: Any = []

    @extend_schema(
        operation_id="auth_config_retrieve",
        summary="How one signs in",
        tags=["Who"],
        auth=[],
        responses=answers(AuthConfig),
    )
    def get(self, request: Any) -> Response:
        methods = ["bearer", "x-api-key", "session"]
        return Response({"enabled": True, "google_client_id": "", "methods": methods})


class MeView(ApiView):
    scopes = {"GET": None}

    @extend_schema(
        operation_id="auth_me_retrieve",
        summary="Whom this token or session speaks for",
        tags=["Who"],
        responses=answers(Me, 401),
    )
    def get(self, request: Any) -> Response:
        caller = getattr(request, "caller", None)
        user = self.actor
        return Response(
            {
                "authenticated": True,
                "id": user.uid,
                "email": user.email,
                "name": user.get_full_name() or user.username,
                "picture": None,
                "organisation": self.organisation.uid,
                "scopes": list(caller.token.scopes) if isinstance(caller, Caller) else None,
            }
        )


class HealthView(ApiView):
    """Says as little as it can: everybody may ask."""

    authentication_classes = []
    permission_classes: Any = []

    @extend_schema(
        operation_id="health_retrieve",
        summary="Whether the server reaches its database",
        description="`model` is always `auto`: each conversation's agent and person choose it.",
        tags=["Who"],
        auth=[],
        responses={200: Health, 503: OpenApiResponse(Health)},
    )
    def get(self, request: Any) -> Response:
        try:
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1")
        except DatabaseError:
            return Response({"status": "unavailable", "model": "auto"}, status=503)
        return Response({"status": "ok", "model": "auto"})

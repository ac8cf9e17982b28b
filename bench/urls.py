"""The product's addresses, a view that does nothing but know who asks: what API calls are held to, and one
that tells what the process holds in memory."""

from __future__ import annotations

from django.urls import include, path
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.api.authentication import TokenAuthentication
from bench.held import held_bytes


class Empty(APIView):
    authentication_classes = [TokenAuthentication]
    permission_classes = [IsAuthenticated]
    throttle_classes = []

    def get(self, _request: Request) -> Response:
        return Response({})


class Held(Empty):
    def get(self, _request: Request) -> Response:
        return Response({"bytes": held_bytes()})


urlpatterns = [
    path("bench/empty", Empty.as_view()),
    path("bench/held", Held.as_view()),
    path("", include("agentsite.urls")),
]

"""The product's addresses, and a view that does nothing but know who asks: what API calls are held to."""

from __future__ import annotations

from django.urls import include, path
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.api.authentication import TokenAuthentication


class Empty(APIView):
    authentication_classes = [TokenAuthentication]
    permission_classes = [IsAuthenticated]
    throttle_classes = []

    def get(self, _request: Request) -> Response:
        return Response({})


urlpatterns = [path("bench/empty", Empty.as_view()), path("", include("agentsite.urls"))]

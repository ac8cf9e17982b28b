"""The content security policy by address: strict everywhere, loosened for the admin alone.

The admin's own scripts (unfold brings Alpine) evaluate expressions and set inline styles. Nothing a
model or a visitor wrote is shown there unescaped.
"""

from __future__ import annotations

from csp.constants import SELF, UNSAFE_EVAL, UNSAFE_INLINE
from csp.middleware import CSPMiddleware, PolicyParts
from django.http import HttpRequest, HttpResponseBase
from django.urls import reverse

_ADMIN = {"script-src": [SELF, UNSAFE_EVAL], "style-src": [SELF, UNSAFE_INLINE]}


class ContentSecurityPolicyMiddleware(CSPMiddleware):
    def get_policy_parts(
        self, request: HttpRequest, response: HttpResponseBase, report_only: bool = False
    ) -> PolicyParts:
        parts = super().get_policy_parts(request, response, report_only)
        if request.path.startswith(reverse("admin:index")):
            parts.replace = {**_ADMIN, **(parts.replace or {})}
        return parts

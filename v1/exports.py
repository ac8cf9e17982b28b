"""`/v1/sessions/{id}/export`: a session as a file to keep, the same as on its page.

Ours, not the public API's. What the file says is `keeping.export`'s.
"""

from __future__ import annotations

from typing import Any

from drf_spectacular.types import OpenApiTypes
from rest_framework.request import Request

from chat.views.exports import export_of

from .door import READ, Door, operation
from .paging import choice, parameter
from .sessions import find_session

MARKDOWN, JSON = "markdown", "json"


class ExportSession(Door):
    scopes = {"GET": READ}

    @operation(
        "sessions_export",
        tag="sessions",
        response={
            (200, "application/json"): OpenApiTypes.OBJECT,
            (200, "text/markdown"): OpenApiTypes.STR,
        },
        query=(parameter("format", text="json if left out.", enum=[MARKDOWN, JSON]),),
        summary="Download a session as Markdown or JSON",
    )
    def get(self, request: Request, uid: str) -> Any:
        form = choice(request.query_params, "format", (MARKDOWN, JSON), JSON)
        row = find_session(self.caller, uid)
        return export_of(request, row, "markdown" if form == MARKDOWN else "json")

"""What the addresses of `/api` have in common in the OpenAPI document, and the parts they repeat."""

from __future__ import annotations

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse
from rest_framework.serializers import Serializer

from .errors import CODES
from .serializers import ErrorAnswer

LIMIT = OpenApiParameter(
    "limit",
    {"type": "integer", "minimum": 1, "maximum": 500},
    description="How many at most.",
)
CURSOR = OpenApiParameter(
    "cursor", OpenApiTypes.STR, description="`X-Next-Cursor` of the page before; opaque."
)
SEARCH = OpenApiParameter(
    "q",
    {"type": "string", "maxLength": 200},
    description='What is searched for: words, `"quoted phrases"` and filters, as in the pages\' search box.',
)

LIKENESS = "How near its vector is to the question's, up to 1. Null: it has none, or is far."


def errors(*statuses: int) -> dict[int, OpenApiResponse]:
    """The errors an address may answer with; those that any may are among them by themselves."""
    return {status: _error(status) for status in (*statuses, 429)}


def answers(success: type[Serializer[Any]], *statuses: int) -> dict[Any, Any]:
    return {200: success, **errors(*statuses)}


def listed(row: type[Serializer[Any]], *statuses: int) -> dict[Any, Any]:
    """A plain array; where the next page begins is said in the headers."""
    return {200: OpenApiResponse(row(many=True)), **errors(*statuses)}


def _error(status: int) -> OpenApiResponse:
    known = [(code, words) for code, of, words in CODES if of == status]
    examples = [
        OpenApiExample(code, {"error": {"code": code, "message": words, "hint": "", "field": ""}})
        for code, words in known
    ]
    described = "; ".join(f"`{code}`: {words}" for code, words in known)
    return OpenApiResponse(ErrorAnswer, description=described, examples=examples)

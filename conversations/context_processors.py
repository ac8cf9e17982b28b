"""How many calls wait for the person who looks at a page."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from .approvalqueue import number_to_decide


def approvals(request: HttpRequest) -> dict[str, Any]:
    """`approvals_to_decide`: asked for only when a template shows it."""
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return {"approvals_to_decide": ""}
    return {"approvals_to_decide": SimpleLazyObject(lambda: number_to_decide(user))}

"""What every page may show: how many calls wait for its person, and how many in each list of them."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from .beside import tabs
from .queue import counts, number_to_decide


def approvals(request: HttpRequest) -> dict[str, Any]:
    """`approvals_to_decide`, `approval_counts` and `beside_approvals`: asked for only when a template shows
    them."""
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return {"approvals_to_decide": "", "approval_counts": {}, "beside_approvals": ()}
    return {
        "beside_approvals": SimpleLazyObject(lambda: tuple(tabs(user))),
        "approvals_to_decide": SimpleLazyObject(lambda: number_to_decide(user)),
        "approval_counts": SimpleLazyObject(lambda: counts(user)),
    }

"""What every page may show: how many calls wait for its person, and that no command can run here."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from .approvalqueue import number_to_decide
from .commandtrial import Trial, commands_problem


def approvals(request: HttpRequest) -> dict[str, Any]:
    """`approvals_to_decide`: asked for only when a template shows it."""
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return {"approvals_to_decide": ""}
    return {"approvals_to_decide": SimpleLazyObject(lambda: number_to_decide(user))}


def commands(request: HttpRequest) -> dict[str, Any]:
    """`commands_trial`: a function, why no command can run on this server, or None. What an operator
    does about it is for staff."""

    def commands_trial() -> Trial | None:
        return commands_problem()

    return {"commands_trial": commands_trial}

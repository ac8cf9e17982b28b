"""What a token may be used for: each view says it, and a view that does not is closed.

Whether the token's person may do what they ask is the action's question, not asked here.
"""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from rest_framework.permissions import BasePermission

from accounts.api.authentication import Caller
from accounts.models import TokenScope
from harness.errors import Forbidden


def require_scope(caller: Caller, scope: TokenScope) -> None:
    """Forbidden, naming the scope that is missing."""
    if not caller.token.has_scope(scope):
        raise Forbidden(
            _("This token may not be used for this."),
            hint=_("Make one with the scope “%(scope)s”.") % {"scope": scope.value},
        )


class HasScope(BasePermission):
    """Reads `scopes` of the view: a mapping from HTTP methods to a TokenScope.

    `None` for a method opens it to any valid token.
    """

    def has_permission(self, request: Any, view: Any) -> bool:
        caller = getattr(request, "caller", None)
        if not isinstance(caller, Caller):
            return False
        method = "GET" if request.method == "HEAD" else request.method
        if method == "OPTIONS" or not hasattr(view, method.lower()):
            return True  # nothing is served: the answer is 405
        scopes = getattr(view, "scopes", {})
        if method not in scopes:
            return False
        scope = scopes[method]
        if scope is not None:
            require_scope(caller, scope)
        return True

"""What views that are coroutines share (streams, and what waits for somebody else's server): they hold no
thread, and DRF has none of them. What OpenAPI says of each is in a `Door` of its own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.utils.translation import gettext as _
from rest_framework.exceptions import AuthenticationFailed, NotAuthenticated

from accounts.api.authentication import Caller, caller_with, presented_secret
from accounts.api.request_ids import current_request_id
from accounts.api.scopes import require_scope
from accounts.api.throttling import count_request
from accounts.models import TokenScope

from .door import Door
from .problems import handle


def caller_for(request: HttpRequest, scope: TokenScope, *, writes: bool) -> Caller:
    """Who asks, with a token that has the scope; the request is counted. Raises as a door does."""
    secret = presented_secret(request.headers)
    if not secret:
        raise NotAuthenticated
    caller = caller_with(secret)
    if caller is None:
        raise AuthenticationFailed(_("This token is not valid."))
    require_scope(caller, scope)
    count_request(caller.token, writes=writes)
    return caller


def refused(error: Exception) -> HttpResponse:
    """The answer that a door gives to what was raised."""
    refusal = handle(error, None)
    response = JsonResponse(refusal.data, status=refusal.status_code)
    for name, value in refusal.headers.items():
        if name.lower() not in {"content-type", "content-length"}:
            response[name] = value
    response["request-id"] = current_request_id()
    return response


def described_by(door: type[Door], answer: Callable[..., Awaitable[HttpResponseBase]]) -> Any:
    """`answer` as a view that OpenAPI finds described in `door`."""

    async def view(request: HttpRequest, **parameters: str) -> HttpResponseBase:
        return await answer(request, **parameters)

    view.cls = door  # type: ignore[attr-defined]
    view.initkwargs = {}  # type: ignore[attr-defined]
    view.csrf_exempt = True  # type: ignore[attr-defined]
    return view

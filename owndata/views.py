"""The page on which a person takes her own data along. Everything is decided by the action."""

from __future__ import annotations

from allauth.account.decorators import reauthentication_required
from django.conf import settings
from django.contrib.auth import logout
from django.contrib.auth.decorators import login_required
from django.http import HttpResponseBase, StreamingHttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from accounts.actions.own_account import delete_own_account
from accounts.leaving import is_last_superuser, left_ownerless, only_hers
from accounts.requests import SignedInRequest
from accounts.streaming import streamed
from harness.errors import Conflict, Forbidden, Invalid, LimitReached

from .actions.exporting import export_own_data
from .parts import parts


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@reauthentication_required  # type: ignore[untyped-decorator]
def own_data(request: SignedInRequest) -> HttpResponseBase:
    """What there is; posted, all of it as one archive."""
    if request.method != "POST":
        return _page(request)
    try:
        pieces = export_own_data(actor=request.user)
    except LimitReached as problem:
        return _page(request, problem, status=409)
    day = timezone.now().date().isoformat()
    return StreamingHttpResponse(
        streamed(request, pieces, still=lambda _user: True),
        content_type="application/zip",
        headers={
            "Content-Disposition": f'attachment; filename="agentsite-{day}.zip"',
            "X-Content-Type-Options": "nosniff",
        },
    )


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@reauthentication_required  # type: ignore[untyped-decorator]
def delete_account(request: SignedInRequest) -> HttpResponseBase:
    """What goes and what stays; posted with her user name, it goes."""
    if request.method != "POST":
        return _farewell(request)
    try:
        delete_own_account(actor=request.user, typed=request.POST.get("username", ""))
    except Invalid as problem:
        return _farewell(request, problem, status=422)
    except Conflict as problem:
        return _farewell(request, problem, status=409)
    except Forbidden as problem:
        return _farewell(request, problem, status=403)
    logout(request)
    return render(request, "owndata/account_deleted.html")


def _farewell(
    request: SignedInRequest,
    problem: Invalid | Conflict | Forbidden | None = None,
    status: int = 200,
) -> HttpResponseBase:
    user = request.user
    context = {
        "problem": problem,
        "typed": request.POST.get("username", ""),
        "may": settings.AGENTSITE_OWN_ACCOUNT_DELETION and not user.is_service,
        "last_superuser": is_last_superuser(user),
        "ownerless": left_ownerless(user),
        "gone": only_hers(user),
    }
    return render(request, "owndata/delete_account.html", context, status=status)


def _page(
    request: SignedInRequest, problem: LimitReached | None = None, status: int = 200
) -> HttpResponseBase:
    may_delete = settings.AGENTSITE_OWN_ACCOUNT_DELETION
    context = {"parts": parts(), "problem": problem, "may_delete": may_delete}
    return render(request, "owndata/own_data.html", context, status=status)

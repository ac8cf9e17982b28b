"""The page on which a person takes her own data along. Everything is decided by the action."""

from __future__ import annotations

from allauth.account.decorators import reauthentication_required
from django.contrib.auth.decorators import login_required
from django.http import HttpResponseBase, StreamingHttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from accounts.requests import SignedInRequest
from harness.errors import LimitReached
from wire.streaming import streamed

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
        streamed(request, pieces),
        content_type="application/zip",
        headers={
            "Content-Disposition": f'attachment; filename="agentsite-{day}.zip"',
            "X-Content-Type-Options": "nosniff",
        },
    )


def _page(
    request: SignedInRequest, problem: LimitReached | None = None, status: int = 200
) -> HttpResponseBase:
    context = {"parts": parts(), "problem": problem}
    return render(request, "owndata/own_data.html", context, status=status)

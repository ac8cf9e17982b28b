"""The audit log: a page with filters, and the same as a file."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import render
from django.utils.http import urlencode
from django.views.decorators.http import require_safe

from accounts.requests import SignedInRequest
from accounts.streaming import streamed

from . import listing as auditlog
from .models import AuditEntry


@require_safe
@login_required
def show_audit(request: SignedInRequest) -> HttpResponse:
    chosen = _chosen(request)
    page = auditlog.audit_page(request.user, chosen, request.GET.get("after", ""))
    kept = {name: value for name, value in chosen.items() if value}
    context = {
        "view": "audit",
        "page": page,
        "chosen": chosen,
        "since": chosen["from"],
        "until": chosen["to"],
        "actions": AuditEntry.Action.choices,
        "next_page": urlencode({**kept, "after": page.after}) if page.after else "",
        "export": urlencode(kept),
    }
    return render(request, "audit/audit.html", context)


@require_safe
@login_required
def export_audit(request: SignedInRequest) -> HttpResponseBase:
    # What is wrong with a filter is said before the file begins.
    chosen = _chosen(request)
    auditlog.found(request.user, chosen)
    lines = auditlog.as_csv(request.user, chosen)
    reach = auditlog.reach_of(request.user)
    pieces = streamed(request, lines, still=lambda user: reach <= auditlog.reach_of(user))
    response = StreamingHttpResponse(pieces, content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = 'attachment; filename="audit.csv"'
    return response


def _chosen(request: SignedInRequest) -> dict[str, str]:
    return {name: request.GET.get(name, "") for name in auditlog.FILTERS}

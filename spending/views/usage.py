"""What a person, or for those who manage it an organisation, has spent: as a page and as a table."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from datetime import date
from io import StringIO

from django.contrib.auth.decorators import login_required
from django.db.models import QuerySet
from django.http import HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from accounts.models import Membership, User
from accounts.permissions import may_manage, require_manager
from accounts.requests import SignedInRequest
from accounts.streaming import streamed
from harness.errors import Invalid
from reading.moments import day_of
from spending import reports
from spending.models import Usage

ORGANISATION = "organisation"
"""The value of `whose` for all members together."""


@login_required
@require_safe
@never_cache
def show_usage(request: SignedInRequest) -> HttpResponse:
    span = _span(request)
    rows = _rows(request, span)
    everybody = _wants_everybody(request)
    context = {
        "report": reports.report_of_organisation(rows)
        if everybody
        else reports.report_of_person(rows),
        "span": span,
        "everybody": everybody,
        "may_see_everybody": may_manage(request.user, request.organisation),
        "most_conversations": reports.MOST_CONVERSATIONS,
    }
    return render(request, "spending/usage.html", context)


@login_required
@require_safe
@never_cache
def export_usage(request: SignedInRequest) -> StreamingHttpResponse:
    span = _span(request)
    lines = _as_csv(_rows(request, span))
    organisation, everybody = request.organisation, _wants_everybody(request)

    def still(user: User) -> bool:
        if everybody:
            return may_manage(user, organisation)
        return Membership.objects.role_in(organisation, user) is not None

    name = f"usage-{span.first}-{span.last}.csv"
    return StreamingHttpResponse(
        streamed(request, lines, still=still),
        content_type="text/csv; charset=utf-8",
        headers={
            "Content-Disposition": f'attachment; filename="{name}"',
            "X-Content-Type-Options": "nosniff",
        },
    )


def _rows(request: SignedInRequest, span: reports.Span) -> QuerySet[Usage]:
    """Raises Forbidden for a member who asks for everybody's."""
    if _wants_everybody(request):
        require_manager(request.user, request.organisation)
        return reports.rows_of_organisation(request.organisation, span)
    return reports.rows_of_person(request.user, request.organisation, span)


def _wants_everybody(request: SignedInRequest) -> bool:
    return request.GET.get("whose") == ORGANISATION


def _span(request: SignedInRequest) -> reports.Span:
    latest = reports.Span.latest()
    span = reports.Span(
        first=_day(request, "from") or latest.first, last=_day(request, "to") or latest.last
    )
    if not 1 <= span.days <= reports.LONGEST_DAYS:
        raise Invalid(
            _("The days must be in order, and at most %(days)d.") % {"days": reports.LONGEST_DAYS},
            field="from",
            hint=_("Choose a shorter span."),
        )
    return span


def _day(request: SignedInRequest, name: str) -> date | None:
    text = request.GET.get(name, "")
    if not text:
        return None
    day = day_of(text)
    if day is None or not 1970 <= day.year <= 9000:
        raise Invalid(
            _("“%(name)s” is not a day.") % {"name": name},
            field=name,
            hint=_("Give it as year, month and day: 2026-11-30."),
        )
    return day


def _as_csv(rows: QuerySet[Usage]) -> Iterator[str]:
    buffer = StringIO()
    writer = csv.writer(buffer)
    for line in reports.export_lines(rows):
        writer.writerow(line)
        if buffer.tell() > 16_384:
            yield buffer.getvalue()
            buffer.seek(0)
            buffer.truncate()
    yield buffer.getvalue()

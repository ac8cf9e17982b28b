"""What was spent: model calls for reading, with totals of what the filters let through."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, time, timedelta
from typing import Any

from django.contrib import admin
from django.db.models import Count, Q, QuerySet, Sum
from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _
from unfold.contrib.filters.admin import (
    AutocompleteSelectFilter,
    FieldTextFilter,
    RangeDateFilter,
)

from accounts.administration.readonly import ReadOnlyAdmin
from accounts.provider_labels import provider_label
from conversations.administration.log import OF_CONVERSATION, conversation_link
from providers.table import KINDS
from reading.moments import day_of
from spending.models import Usage

DEFAULT_DAYS = 30
"""Shown and summed when no day is chosen: the table has no end."""
YEARS = range(1970, 9000)
"""Days outside would overflow on the way to the database's time zone."""


class DayFilter(RangeDateFilter):
    """Whole days of the site's time zone, the last one included."""

    def __init__(self, field: Any, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        super().__init__(field, request, *args, **kwargs)
        begin, end = self._names()
        chosen = self.used_parameters.keys() & {begin, end}
        if not chosen and OF_CONVERSATION not in request.GET:
            first = timezone.localdate() - timedelta(days=DEFAULT_DAYS - 1)
            self.used_parameters[begin] = first.isoformat()

    def queryset(self, request: HttpRequest, queryset: QuerySet[Usage]) -> QuerySet[Usage]:
        begin, end = (self._day(name) for name in self._names())
        if begin is not None:
            queryset = queryset.filter(**{f"{self.parameter_name}__gte": begin})
        if end is not None:
            last = datetime.combine(end, time.max, end.tzinfo)
            queryset = queryset.filter(**{f"{self.parameter_name}__lte": last})
        return queryset

    def _names(self) -> tuple[str, str]:
        return f"{self.parameter_name}_from", f"{self.parameter_name}_to"

    def _day(self, name: str) -> datetime | None:
        """Midnight at the beginning of that day; None for none, and for what is no day of ours."""
        day = day_of(str(self.used_parameters.get(name) or ""))
        if day is None or day.year not in YEARS:
            return None
        return timezone.make_aware(datetime.combine(day, time.min))


class ProviderFilter(admin.SimpleListFilter):
    title = _("provider")
    parameter_name = "provider"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterator[tuple[str, str]]:
        return ((kind.name, str(provider_label(kind))) for kind in KINDS.values())

    def queryset(self, request: HttpRequest, queryset: QuerySet[Usage]) -> QuerySet[Usage]:
        return queryset.filter(provider=self.value()) if self.value() else queryset


class UsageAdmin(ReadOnlyAdmin):
    list_display = [
        "when",
        "user",
        "organisation",
        "model",
        "provider",
        "purpose",
        "input_tokens",
        "output_tokens",
        "dollars",
        "conversation_uid",
    ]
    list_filter = [
        ("created_at", DayFilter),
        ("organisation", AutocompleteSelectFilter),
        ("user", AutocompleteSelectFilter),
        ProviderFilter,
        ("model", FieldTextFilter),
        ("purpose", FieldTextFilter),
    ]
    list_filter_submit = True
    list_select_related = ["organisation", "user", "conversation"]
    list_before_template = "admin/spending/usage_totals.html"
    search_fields = ["=conversation__uid", "=model_request_id"]
    search_help_text = _("The id of a conversation or a model request")
    ordering = ["-id"]
    fields = readonly_fields = [
        "model_request_id",
        "created_at",
        "user",
        "organisation",
        "conversation_uid",
        "run",
        "purpose",
        "provider",
        "model",
        "input_tokens",
        "output_tokens",
        "cache_creation_input_tokens",
        "cache_read_input_tokens",
        "dollars",
        "milliseconds",
        "first_delta_milliseconds",
    ]

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> Any:
        answer = super().changelist_view(request, extra_context)
        context = answer.context_data if isinstance(answer, TemplateResponse) else None
        if context and "cl" in context:
            context["totals"] = totals_of(context["cl"].queryset)
        return answer

    @admin.display(description=_("when"))
    def when(self, obj: Usage) -> str:
        return timezone.localtime(obj.created_at).strftime("%Y-%m-%d %H:%M:%S")

    @admin.display(description=_("conversation"))
    def conversation_uid(self, obj: Usage) -> SafeString | str:
        return conversation_link(obj.conversation)

    @admin.display(description=_("cost in US dollars"))
    def dollars(self, obj: Usage) -> str:
        return str(_("unknown")) if obj.cost is None else f"{obj.cost:.6f}"


def totals_of(rows: QuerySet[Usage]) -> dict[str, Any]:
    """Calls, tokens and known cost; `unknown` counts the calls that had no price."""
    return rows.order_by().aggregate(
        calls=Count("pk"),
        input=Sum("input_tokens", default=0),
        output=Sum("output_tokens", default=0),
        written=Sum("cache_creation_input_tokens", default=0),
        read=Sum("cache_read_input_tokens", default=0),
        dollars=Sum("cost", default=0),
        unknown=Count("pk", filter=Q(cost=None)),
    )

"""What the templates of every page draw with: icons and the person's recent conversations."""

from __future__ import annotations

from datetime import datetime
from functools import cache
from typing import Any

from django import template
from django.templatetags.static import static
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.safestring import SafeString

from chat.presentation import failures, reasons
from chat.presentation.paths import as_path
from chat.presentation.recents import drawn
from keeping.listing import ListPage, recent

register = template.Library()


@register.simple_tag
def icon(name: str) -> SafeString:
    """A symbol of `static/img/icons.svg`; decoration only, so the words beside it must suffice."""
    return _icon(name)


@cache
def _icon(name: str) -> SafeString:
    return format_html(
        '<svg class="icon" aria-hidden="true" focusable="false"><use href="{}#{}"/></svg>',
        static("img/icons.svg"),
        name,
    )


register.filter(as_path)
register.filter("why_in_words", reasons.in_words)
register.filter("failure_in_words", failures.in_words)


@register.filter
def short_moment(moment: datetime) -> str:
    """As short as it is clear: the time today, the day this year, else the date."""
    local, now = timezone.localtime(moment), timezone.localtime()
    if local.date() == now.date():
        return date_format(local, "H:i")
    return date_format(local, "MONTH_DAY_FORMAT" if local.year == now.year else "DATE_FORMAT")


@register.simple_tag(takes_context=True)
def recent_conversations(context: dict[str, Any]) -> ListPage:
    """The beginning of the list of the organisation the person works in."""
    request = context["request"]
    return recent(request.user, request.organisation)


@register.simple_tag
def recent_rows(page: ListPage, open_uid: str | None) -> SafeString:
    return drawn(page, open_uid or "")

"""Tables that staff read and nobody edits: the log and what runs and models left behind.

They grow without end, so no page of theirs counts the rows.
"""

from __future__ import annotations

from typing import Any

from django.contrib.admin import ShowFacets
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from unfold.admin import ModelAdmin
from unfold.paginator import InfinitePaginator

from reading.unseen import visible_json

MOST_CHARACTERS = 200_000
"""Of one stored value on a page; the rest is counted."""


class ReadOnlyAdmin(ModelAdmin):
    """Lists and pages for whoever may view; adding, changing and deleting are refused to all."""

    actions = None
    paginator = InfinitePaginator
    show_full_result_count = False
    show_facets = ShowFacets.NEVER
    list_per_page = 50
    list_max_show_all = 0
    sortable_by: tuple[str, ...] = ()
    """No column is sorted by on request: most have no index."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


def is_shown_whole(value: Any) -> bool:
    """Whether `pretty_json` shows it to its end."""
    return len(visible_json(value)) <= MOST_CHARACTERS


def pretty_json(value: Any) -> SafeString:
    """A stored value as indented text, escaped and bounded."""
    text = visible_json(value)
    more = len(text) - MOST_CHARACTERS
    note = _("… and %(count)d more characters") % {"count": more} if more > 0 else ""
    return format_html(
        '<pre class="agentsite-json">{}</pre><p>{}</p>', text[:MOST_CHARACTERS], note
    )

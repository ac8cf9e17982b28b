"""The rows of a person's recent conversations, as they stand beside every page.

A row is drawn from what a `Row` says and from nothing else, so that the process can keep what it has drawn:
forty of them were a third of what a page costs. Which conversations these are is `keeping.listing`'s part.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from django.template.loader import render_to_string
from django.urls import get_script_prefix
from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import get_language

from conversations.models import Conversation
from keeping.listing import ListPage
from keeping.unread import is_unread

KEPT = 4_096
"""Drawn rows, some hundred bytes each."""


@dataclass(frozen=True, slots=True)
class Row:
    """All that a row shows, as the template asks for it."""

    uid: str
    title: str
    mark: str
    unread: bool
    pinned: bool
    is_open: bool


def drawn(page: ListPage, open_uid: str) -> SafeString:
    """The rows of that page; `open_uid` is the conversation that is shown beside them."""
    place = get_script_prefix(), get_language()
    rows = [
        _drawn(_row(each, open_uid, pinned=pinned), *place)
        for pinned, group in ((True, page.pinned), (False, page.others))
        for each in group
    ]
    return format_html_join("", "{}", ((row,) for row in rows))


def _row(each: Conversation, open_uid: str, *, pinned: bool) -> Row:
    is_open = each.uid == open_uid
    return Row(
        uid=each.uid,
        title=each.title,
        mark=_mark(each),
        unread=is_unread(each) and not is_open,
        pinned=pinned,
        is_open=is_open,
    )


def _mark(each: Conversation) -> str:
    if each.is_running:
        return "running"
    if each.waits_for_person:
        return "waits"
    if each.waits_for_worker:
        return "waits for others"
    return "stopped short" if each.has_stopped_short else ""


@lru_cache(KEPT)
def _drawn(row: Row, _prefix: str, _language: str | None) -> SafeString:
    return render_to_string("chat/_sidebar_row.html", {"row": row})

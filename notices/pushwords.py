"""What a push says: what waits and in which conversation, or only that something does, as its person chose.

Also over a lock screen nothing of what a call holds is told.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.urls import reverse
from django.utils import translation
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.languages import language_of
from accounts.models import User

from .models import Channel, Kind, NoticeWish, Push, When
from .waiting import Item

MOST_NAMED = 3
"""Conversations that one push names; more are counted."""
SITE = "Agentsite"
_ALIVE = frozenset({Kind.TEST, Kind.BRIEF})


def words_of(push: Push, user: User, wish: NoticeWish, items: list[Item]) -> dict[str, Any]:
    """As the page's worker reads it (`static/js/worker.js`), in her language."""
    language = language_of(user)
    with translation.override(language):
        title, body, path = _said(push, items, tells=wish.tells_contents)
        always = push.kind in _ALIVE or wish.when(push.kind, Channel.PUSH) == When.ALWAYS
        return {
            "title": title,
            "body": body,
            "url": path,
            "tag": push.batch or f"{push.kind}{push.pk}",
            # Whether it is left out where she looks at the site just then.
            "away": not always,
            "lang": language,
            "dir": "rtl" if translation.get_language_bidi() else "ltr",
        }


def _said(push: Push, items: list[Item], *, tells: bool) -> tuple[str, str, str]:
    if push.kind == Kind.TEST:
        return SITE, _("This is a test: pushes reach this browser."), push.path
    if push.kind == Kind.BRIEF:
        return SITE, _("Your brief is ready."), push.path
    count = len(items)
    if push.kind == Kind.WAITS:
        waits = ngettext(
            "Something waits for your answer", "%(count)d things wait for your answer", count
        )
        summary, page = waits % {"count": count}, reverse("approvals:approvals")
    else:
        ended = ngettext("A conversation has ended", "%(count)d conversations have ended", count)
        summary, page = ended % {"count": count}, reverse("conversations:list")
    if count == 1:
        page = items[0].link.removeprefix(settings.AGENTSITE_BASE_URL)
    if not tells:
        return SITE, summary, page
    if count > 1:
        names = list(dict.fromkeys(_title(item) for item in items))
        more = "" if len(names) <= MOST_NAMED else " …"
        return summary, " · ".join(names[:MOST_NAMED]) + more, page
    (item,) = items
    if push.kind == Kind.WAITS:
        return _title(item), _("Waits for your answer: %(what)s") % {"what": item.tool}, page
    if item.conversation.has_stopped_short:
        return _title(item), _("It stopped short."), page
    return _title(item), _("The agent is done."), page


def _title(item: Item) -> str:
    return item.conversation.title or _("Untitled")

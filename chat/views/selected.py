"""Several conversations of the list at once: archived, tagged, moved, deleted, after a question."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST

from accounts.requests import SignedInRequest
from harness.errors import AgentError, Invalid
from keeping.actions.many import Outcome, at_work, change_many, chosen

from .answers import safe_next

NAMED = 12
"""Conversations that a question or an answer names."""


@login_required
@require_POST
def selected(request: SignedInRequest) -> HttpResponse:
    """Deletion is asked about first, on a page that says how many and which stay."""
    act, uids = request.POST.get("act", ""), request.POST.getlist("chosen")
    back = safe_next(request) or reverse("conversations:list")
    try:
        if act == "delete" and request.POST.get("confirmed") != "1":
            return _question(request, uids, back)
        outcome = change_many(
            actor=request.user, uids=uids, act=act, value=request.POST.get(act, "")
        )
    except Invalid as problem:
        messages.error(request, problem.words)
    else:
        _tell(request, act, outcome)
    return redirect(back)


def _question(request: SignedInRequest, uids: list[str], back: str) -> HttpResponse:
    rows = chosen(request.user, uids)
    busy = at_work(rows)
    doomed = [row for row in rows if row.pk not in busy]
    context = {
        "uids": [row.uid for row in doomed],
        "count": len(doomed),
        "named": doomed[:NAMED],
        "more": max(0, len(doomed) - NAMED),
        "busy": [row for row in rows if row.pk in busy],
        "next": back,
    }
    return render(request, "chat/delete_selected.html", context)


def _tell(request: SignedInRequest, act: str, outcome: Outcome) -> None:
    if outcome.done:
        messages.success(request, _done(act, outcome.done))
    for title, problem in outcome.refused[:NAMED]:
        messages.error(request, f"{title or _('Untitled')}: {_words(problem)}")
    more = len(outcome.refused) - NAMED
    if more > 0:
        messages.error(request, _("And %(count)d more were left as they are.") % {"count": more})
    if outcome.missing:
        messages.error(
            request,
            ngettext(
                "%(count)d conversation was not found.",
                "%(count)d conversations were not found.",
                outcome.missing,
            )
            % {"count": outcome.missing},
        )


def _words(problem: AgentError) -> str:
    return problem.words


def _done(act: str, count: int) -> str:
    words = {
        "archive": ngettext("%(count)d archived.", "%(count)d archived.", count),
        "bring-back": ngettext("%(count)d brought back.", "%(count)d brought back.", count),
        "delete": ngettext("%(count)d deleted.", "%(count)d deleted.", count),
        "seen": ngettext("%(count)d marked as seen.", "%(count)d marked as seen.", count),
        "tag": ngettext("%(count)d tagged.", "%(count)d tagged.", count),
        "move": ngettext("%(count)d moved.", "%(count)d moved.", count),
    }
    return words.get(act, ngettext("%(count)d changed.", "%(count)d changed.", count)) % {
        "count": count
    }

"""The operators' page: what waits, runs, is put off and has failed; replay, discard, cancel.

For staff only; for anybody else there is no such page.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_POST, require_safe

from accounts.models import User
from accounts.requests import SignedInRequest
from accounts.staff import has_staff_permission
from chat.views.answers import done
from conversations.actions.wakes import cancel_wake
from conversations.models import Wake
from conversations.sandboxing import known_sandboxes
from deadletters import projection as deadletters
from deadletters.actions import letters as actions
from deadletters.models import CHANGE, DeadLetter
from harness.errors import Invalid, NotFound
from reading.digits import number_of

from . import listing as operations

READ = "conversations.view_event"
CHANGE_WAKES = "conversations.change_wake"

LABELS = {
    "backlog": gettext_lazy("Backlog"),
    "running": gettext_lazy("Running"),
    "rescheduling": gettext_lazy("Trying again"),
    "waiting": gettext_lazy("Waiting for people"),
    "wakes": gettext_lazy("Delayed wakes"),
    "background": gettext_lazy("Background commands"),
    "teams": gettext_lazy("Teams"),
    "subagents": gettext_lazy("Subagents"),
    "letters": gettext_lazy("Dead letters"),
    "journal": gettext_lazy("Journal"),
}
FILTERS = ("state", "code", "cause", "organisation")
REFUSALS_TOLD = 5

View = Callable[..., HttpResponse]


def for_staff(view: View) -> View:
    @login_required
    @wraps(view)
    def guarded(request: SignedInRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if not request.user.is_staff:
            raise NotFound(_("There is no such page."))
        return view(request, *args, **kwargs)

    return guarded


@require_safe
@for_staff
def show(request: SignedInRequest, section: str = "backlog") -> HttpResponse:
    """One section behind `after`, under the figures of all."""
    chosen = {name: request.GET.get(name, "") for name in FILTERS} if section == "letters" else {}
    page = operations.LISTS[section](request.GET.get("after", ""), **chosen)
    kept = {name: value for name, value in chosen.items() if value}
    context = {
        "section": section,
        "heading": LABELS[section],
        "template": f"operations/operations_{section}.html",
        "page": page,
        "next_page": urlencode({**kept, "after": page.after}) if page.after else "",
        "may_read": has_staff_permission(request.user, READ),
        "figures": _figures(),
    }
    if section == "letters":
        context |= {
            "chosen": kept,
            "states": DeadLetter.State.choices,
            "counts": deadletters.counts(),
            "may_change": has_staff_permission(request.user, CHANGE),
        }
    if section == "background":
        context["hosts"] = known_sandboxes()
    if section == "wakes":
        context["may_change"] = has_staff_permission(request.user, CHANGE_WAKES)
    return render(request, "operations/operations.html", context)


@require_safe
@for_staff
def figures(request: SignedInRequest) -> HttpResponse:
    """The figures alone, which the page asks for again and again."""
    context = {"figures": _figures(), "section": request.GET.get("section", "")}
    return render(request, "operations/operations_figures.html", context)


@require_POST
@for_staff
def replay(request: SignedInRequest) -> HttpResponse:
    """One or several letters, with the same choices for all."""
    outcome = actions.replay_many(
        actor=request.user,
        letters=_letters(request.user, request.POST.getlist("letter")),
        mode=request.POST.get("mode", actions.STEP),
        model=request.POST.get("model", ""),
        token_budget=_number(request.POST.get("token_budget", "")),
    )
    for letter, refusal in outcome.refused[:REFUSALS_TOLD]:
        messages.warning(request, f"{letter.conversation.uid}: {refusal.words}")
    count = len(outcome.letters)
    message = ngettext("%(count)d is being done again.", "%(count)d are being done again.", count)
    return done(request, message % {"count": count}, to=_address("letters"))


@require_POST
@for_staff
def discard(request: SignedInRequest) -> HttpResponse:
    letters = _letters(request.user, request.POST.getlist("letter"))
    actions.discard_many(actor=request.user, letters=letters, reason=request.POST.get("reason", ""))
    message = ngettext("%(count)d letter discarded.", "%(count)d letters discarded.", len(letters))
    return done(request, message % {"count": len(letters)}, to=_address("letters"))


@require_POST
@for_staff
def cancel(request: SignedInRequest) -> HttpResponse:
    pk = number_of(request.POST.get("wake"))
    wake = None if pk is None else Wake.objects.filter(pk=pk).first()
    if wake is None:
        raise NotFound(_("There is no such wake."))
    cancel_wake(actor=request.user, wake=wake)
    return done(request, _("The wake is cancelled."), to=_address("wakes"))


def _figures() -> list[dict[str, Any]]:
    found = operations.figures()
    return [
        {"section": name, "label": label, "address": _address(name), "figure": found.get(name)}
        for name, label in LABELS.items()
    ]


def _letters(user: User, pks: list[str]) -> list[DeadLetter]:
    """The letters of a form, oldest first; NotFound if one of them is not the person's to manage."""
    if not pks:
        raise Invalid(_("No letter is chosen."), field="letter", hint=_("Choose at least one."))
    wanted = {number for pk in pks if (number := number_of(pk)) is not None}
    found = DeadLetter.objects.manageable_by(user).select_related("conversation")
    letters = list(found.filter(pk__in=wanted).order_by("pk"))
    if len(letters) < len(set(pks)):
        raise NotFound(_("There is no such dead letter."))
    return letters


def _number(text: str) -> int | None:
    text = text.strip()
    if not text:
        return None
    number = number_of(text)
    if number is None:
        raise Invalid(
            _("“%(text)s” is not a number of tokens.") % {"text": text[:50]},
            field="token_budget",
            hint=_("Leave it empty for the agent's own."),
        )
    return number


def _address(section: str) -> str:
    return reverse(f"operations:operations-{section}")

"""The page of timers, and what its buttons do: now, later, cancel."""

from __future__ import annotations

from datetime import timedelta

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from accounts.requests import SignedInRequest
from chat.views.answers import done
from chat.views.lookup import find_conversation
from conversations.actions.background import cancel_background
from conversations.actions.wakes import drop_wake, hasten_wake, put_off_wake
from conversations.models import BackgroundCommand, Wake
from harness.errors import Conflict, Invalid, NotFound
from reading.digits import number_of
from schedules.actions.orders import pause_order, put_off_order
from schedules.actions.runs import run_now
from schedules.models import StandingOrder
from subagents.actions.subagents import stop_subagent

from .listing import timers_of
from .strip import draw_strip

LATER = timedelta(hours=1)


@login_required
@require_safe
def show_timers(request: SignedInRequest) -> HttpResponse:
    context = {"timers": timers_of(request.user, request.organisation)}
    return render(request, "timers/timers.html", context)


@login_required
@require_POST
def change(request: SignedInRequest, kind: str, key: str) -> HttpResponse:
    """By the button that was pressed. A conversation's strip is answered with what it shows now."""
    act = request.POST.get("act", "")
    try:
        match kind:
            case "wake":
                return _change_wake(request, key, act)
            case "schedule":
                text = _change_schedule(request, key, act)
            case "command" | "subagent" if act == "cancel":
                text = _end(request, kind, key)
            case _:
                raise NotFound(_("There is no such timer."))
    except (Conflict, Invalid) as problem:
        messages.error(request, problem.words)
        return redirect("timers:timers")
    return done(request, text, to=reverse("timers:timers"))


def _change_wake(request: SignedInRequest, key: str, act: str) -> HttpResponse:
    wakes = Wake.objects.visible_to(request.user).select_related("conversation")
    pk = number_of(key)
    wake = None if pk is None else wakes.filter(pk=pk).first()
    if wake is None:
        raise NotFound(_("There is no such timer."))
    refusal: Conflict | None = None
    text = _("It waits no more.")
    try:
        match act:
            case "now":
                hasten_wake(actor=request.user, wake=wake)
                text = _("It is woken now.")
            case "later":
                put_off_wake(actor=request.user, wake=wake, by=LATER)
                text = _("It is woken an hour later.")
            case "cancel":
                drop_wake(actor=request.user, wake=wake)
            case _:
                raise _no_button()
    except Conflict as problem:
        refusal = problem
    if getattr(request, "htmx", False):
        return HttpResponse(draw_strip(wake.conversation))
    if refusal is not None:
        raise refusal
    return done(request, text, to=reverse("timers:timers"))


def _change_schedule(request: SignedInRequest, key: str, act: str) -> str:
    order = StandingOrder.objects.visible_to(request.user).filter(uid=key).first()
    if order is None:
        raise NotFound(_("There is no such timer."))
    match act:
        case "now":
            run = run_now(actor=request.user, order=order)
            if not run.began:
                raise Conflict(_("It could not begin: %(why)s") % {"why": run.words})
            return _("It has begun.")
        case "later":
            put_off_order(actor=request.user, order=order, by=LATER)
            return _("It is due an hour later.")
        case "cancel":
            pause_order(actor=request.user, order=order)
            return _("The schedule is paused.")
    raise _no_button()


def _end(request: SignedInRequest, kind: str, key: str) -> str:
    if kind == "subagent":
        stop_subagent(actor=request.user, conversation=find_conversation(request.user, key))
    else:
        rows = BackgroundCommand.objects.visible_to(request.user).select_related("conversation")
        row = rows.filter(uid=key).first()
        if row is None:
            raise NotFound(_("There is no such timer."))
        cancel_background(actor=request.user, conversation=row.conversation, background_uid=row.uid)
    return _("It is being stopped.")


def _no_button() -> Invalid:
    return Invalid(_("This is no button of the page."), field="act")

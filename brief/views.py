"""The pages of briefs: what happened since the last one, each that was sent, and when they are."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from accounts.current_organisation import require_shown_organisation
from accounts.forms import add_error
from accounts.requests import SignedInRequest
from chat.modelpicker import picker, wish_of
from conversations.actions.choosing import Wish
from harness.agentconfig import AgentConfig
from harness.errors import Invalid, NotFound

from .actions.wishes import set_brief
from .choosing import usual_writer
from .compiling import compile_brief
from .forms import WishForm
from .models import Brief, BriefWish
from .sending import since_when

SHOWN = 30


@login_required
@require_safe
def show_now(request: SignedInRequest) -> HttpResponse:
    """What the next brief would say if it were due now, and those that were."""
    wish, now = _wish(request), timezone.now()
    since = since_when(wish, now)
    mine = Brief.objects.visible_to(request.user).filter(organisation=request.organisation)
    context = {
        "contents": compile_brief(request.user, request.organisation, since=since, until=now),
        "since": since,
        "wish": wish,
        "briefs": mine.defer("stored_contents")[:SHOWN],
    }
    return render(request, "brief/now.html", context)


@login_required
@require_safe
def show_one(request: SignedInRequest, uid: str) -> HttpResponse:
    brief = Brief.objects.visible_to(request.user).filter(uid=uid).first()
    if brief is None:
        raise NotFound(_("There is no such brief."))
    return render(request, "brief/one.html", {"brief": brief, "contents": brief.contents})


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def change_wish(request: SignedInRequest) -> HttpResponse:
    wish = _wish(request)
    names = list(WishForm.base_fields)
    form = WishForm(
        request.POST if request.method == "POST" else None,
        initial={name: getattr(wish, name) for name in names},
    )
    if request.method == "POST":
        require_shown_organisation(request)
        if form.is_valid():
            given = dict(form.cleaned_data)
            given["zone"] = given.pop("timezone")
            given["writer"] = wish_of(request.POST) or Wish(wish.provider, wish.model, wish.effort)
            try:
                set_brief(actor=request.user, organisation=request.organisation, **given)
            except Invalid as problem:
                add_error(form, problem)
            else:
                messages.success(request, _("Saved."))
                return redirect("brief:settings")
    context = {
        "form": form,
        "wish": wish,
        "mails_are_sent": settings.AGENTSITE_EMAIL_CONFIGURED and bool(settings.AGENTSITE_BASE_URL),
        **_models(request, wish),
    }
    return render(request, "brief/settings.html", context, status=422 if form.errors else 200)


def _models(request: SignedInRequest, wish: BriefWish) -> dict[str, Any]:
    """What the fold of models shows: what was sent just now, else what holds."""
    usual = usual_writer(request.user, request.organisation)
    own = usual or AgentConfig()
    chosen = wish_of(request.POST) or Wish(wish.provider, wish.model, wish.effort)
    now = own.model_copy(
        update={
            "provider": chosen.provider or own.provider,
            "model": chosen.model if chosen.provider else own.model,
            "effort": chosen.effort,
        }
    )
    shown = picker(request.user, request.organisation, own, now)
    if usual is None:
        shown["own"] = None
    return {
        **shown,
        "own_words": _("The server's choice"),
        "may_be_written": settings.AGENTSITE_BRIEF_TOKENS_PER_DAY > 0,
    }


def _wish(request: SignedInRequest) -> BriefWish:
    """What she wished for, or how it is without."""
    found = BriefWish.objects.filter(user=request.user, organisation=request.organisation).first()
    return found or BriefWish(
        user=request.user,
        organisation=request.organisation,
        timezone=str(timezone.get_current_timezone()),
    )

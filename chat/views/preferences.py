"""A person's settings: defaults for new conversations, the language and the theme."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from accounts.actions.languages import set_language
from accounts.permissions import may_manage, require_manager
from accounts.requests import SignedInRequest
from chat.forms import PreferenceForm
from conversations.actions.preferences import (
    put_away_first_steps,
    set_defaults,
    set_shared_defaults,
)
from conversations.models import Defaults, Preference
from harness.errors import Invalid

from .answers import safe_next

THEMES = ("auto", "light", "dark")
THEME_SECONDS = 365 * 24 * 3600


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def settings(request: SignedInRequest) -> HttpResponse:
    kept = _kept(request)
    form = _form(request, kept, request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        set_defaults(
            actor=request.user,
            agent=form.cleaned_data["default_agent"],
            environment=form.cleaned_data["default_environment"],
        )
        messages.success(request, _("Saved."))
        return redirect("conversations:settings")
    return _page(request, form)


@login_required
@require_POST
def organisation_defaults(request: SignedInRequest) -> HttpResponse:
    """What everybody in the organisation begins with who has not chosen."""
    require_manager(request.user, request.organisation)
    form = _shared_form(request, request.POST)
    if form.is_valid():
        set_shared_defaults(
            actor=request.user,
            organisation=request.organisation,
            agent=form.cleaned_data["default_agent"],
            environment=form.cleaned_data["default_environment"],
        )
        messages.success(request, _("Saved."))
        return redirect("conversations:settings")
    return _page(request, _form(request, _kept(request)), form)


def _shared_form(request: SignedInRequest, posted: QueryDict | None = None) -> PreferenceForm:
    kept = Defaults.objects.filter(organisation=request.organisation).first() or Defaults()
    return PreferenceForm(
        posted,
        initial={"default_agent": kept.agent, "default_environment": kept.environment},
        user=request.user,
        organisation=request.organisation,
        auto_id="shared_%s",
    )


@login_required
@require_POST
def language(request: SignedInRequest) -> HttpResponse:
    """Of pages and mails. What comes next is drawn in it (`accounts.middleware`)."""
    set_language(actor=request.user, language=request.POST.get("language", ""))
    return redirect(safe_next(request) or reverse("conversations:settings"))


@login_required
@require_POST
def put_away(request: SignedInRequest) -> HttpResponse:
    """The list of first steps."""
    put_away_first_steps(actor=request.user)
    return redirect("conversations:list")


def _kept(request: SignedInRequest) -> Preference:
    """What the person chose, or how it is without."""
    found = Preference.objects.select_related("default_agent", "default_environment")
    return found.filter(user=request.user).first() or Preference()


def _form(
    request: SignedInRequest, kept: Preference, posted: QueryDict | None = None
) -> PreferenceForm:
    return PreferenceForm(
        posted,
        initial={
            "default_agent": kept.default_agent,
            "default_environment": kept.default_environment,
        },
        user=request.user,
        organisation=request.organisation,
    )


def _page(
    request: SignedInRequest,
    form: PreferenceForm,
    shared_form: PreferenceForm | None = None,
) -> HttpResponse:
    if shared_form is None and may_manage(request.user, request.organisation):
        shared_form = _shared_form(request)
    context = {"shared_form": shared_form, "form": form}
    wrong = form.errors or (shared_form and shared_form.errors)
    status = 422 if wrong else 200
    return render(request, "chat/settings.html", context, status=status)


@require_POST
def theme(request: SignedInRequest) -> HttpResponse:
    """Remembered by the browser, so that it holds on the sign-in page too."""
    wanted = request.POST.get("theme", "")
    if wanted not in THEMES:
        raise Invalid(
            _("There is no such theme."),
            field="theme",
            hint=_("Choose from: %(names)s.") % {"names": ", ".join(THEMES)},
        )
    response = redirect(safe_next(request) or reverse("conversations:list"))
    response.set_cookie("theme", wanted, max_age=THEME_SECONDS, samesite="Lax")
    return response

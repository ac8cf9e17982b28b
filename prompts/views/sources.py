"""The pages of sources of prompts: those there are, how each stands, and what waits to be allowed."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from accounts.current_organisation import require_shown_organisation
from accounts.forms import refuse
from accounts.requests import SignedInRequest
from harness.errors import AgentError, Forbidden, NotFound
from prompts.access import may_change
from prompts.actions.sources import (
    add_source,
    allow_pulled,
    ask_source,
    change_source,
    remove_source,
)
from prompts.forms import ChangeSourceForm, SourceForm
from prompts.models import PromptSource, PulledLabel
from prompts.standing import compared, standings
from reading.digits import number_of


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def show_sources(request: SignedInRequest) -> HttpResponse:
    """Those of the organisation one works in, and a form for a new one."""
    if not may_change(request.user, request.organisation):
        raise Forbidden(_("Owners and administrators look after sources of prompts."))
    form = SourceForm(request.POST if request.method == "POST" else None)
    status = 200
    if request.method == "POST":
        status = 422
        try:
            require_shown_organisation(request)
            if form.is_valid():
                made = add_source(
                    actor=request.user, organisation=request.organisation, **form.values()
                )
                messages.success(request, _("The source is added. Ask it what it has."))
                return redirect("prompts:source", source_uid=made.uid)
        except AgentError as problem:
            status = refuse(form, problem)
    rows = PromptSource.objects.visible_to(request.user).filter(organisation=request.organisation)
    context = {"sources": rows, "form": form}
    return render(request, "prompts/sources.html", context, status=status)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def show_source(request: SignedInRequest, source_uid: str) -> HttpResponse:
    """How it stands and what of it is not followed here; a POST changes its rule."""
    source = _source(request, source_uid)
    initial = {"moves_labels": source.moves_labels, "commit": source.commit}
    form = ChangeSourceForm(request.POST if request.method == "POST" else None, initial=initial)
    if source.kind != PromptSource.Kind.GIT:
        del form.fields["commit"]
    status = 200
    if request.method == "POST":
        status = 422
        try:
            if form.is_valid():
                change_source(actor=request.user, source=source, **form.cleaned_data)
                messages.success(request, _("Saved."))
                return redirect("prompts:source", source_uid=source_uid)
        except AgentError as problem:
            status = refuse(form, problem)
    context = {"source": source, "form": form, "pulled": compared(standings(source))}
    return render(request, "prompts/source.html", context, status=status)


@login_required
@require_POST
def ask(request: SignedInRequest, source_uid: str) -> HttpResponse:
    source = ask_source(actor=request.user, source=_source(request, source_uid))
    if source.problem:
        messages.error(request, source.problem)
    else:
        messages.success(request, _("The source has answered."))
    return redirect("prompts:source", source_uid=source_uid)


@login_required
@require_POST
def allow(request: SignedInRequest, source_uid: str) -> HttpResponse:
    """What the page showed: `pulled` by its number, at the version that was compared; `reason`, where agents
    whose suites are not green are given it all the same."""
    source = _source(request, source_uid)
    rows = PulledLabel.objects.filter(source=source).select_related("source", "prompt")
    pulled, number = (number_of(request.POST.get(name)) for name in ("pulled", "number"))
    found = rows.filter(pk=pulled or 0).first()
    if found is None:
        raise NotFound(_("There is no such text."))
    try:
        reason = request.POST.get("reason", "").replace("\0", "")
        allow_pulled(actor=request.user, pulled=found, number=number or 0, reason=reason)
    except AgentError as problem:
        if problem.code != "conflict":
            raise
        messages.error(request, problem.words)
    else:
        messages.success(request, _("New conversations follow the label from now on."))
    return redirect("prompts:source", source_uid=source_uid)


@login_required
@require_POST
def remove(request: SignedInRequest, source_uid: str) -> HttpResponse:
    remove_source(actor=request.user, source=_source(request, source_uid))
    messages.success(request, _("The source is taken away; what was fetched stays."))
    return redirect("prompts:sources")


def _source(request: SignedInRequest, uid: str) -> PromptSource:
    rows = PromptSource.objects.visible_to(request.user)
    found = rows.select_related("organisation", "created_by").filter(uid=uid).first()
    if found is None:
        raise NotFound(_("There is no such source."))
    return found

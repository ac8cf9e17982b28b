"""The pages of prompts: all that one may name, one with its labels and versions, and its file."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts.current_organisation import require_shown_organisation
from accounts.forms import refuse
from accounts.requests import SignedInRequest
from chat.forms import as_typed
from harness.errors import AgentError, Forbidden
from prompts.access import may_change
from prompts.actions.prompts import (
    add_version,
    create_prompt,
    delete_prompt,
    import_prompt,
    move_label,
    remove_label,
    spec_of,
)
from prompts.files import read_prompt, written_prompt
from prompts.forms import ImportForm, LabelForm, PromptForm, VersionForm
from prompts.models import Prompt
from prompts.spec import read_variables, written_variables
from prompts.using import agents_with, conversations_with

from .lookup import prompt_at

MOST_SHOWN = 200
MOVING, IMPORTING = "move_%s", "import_%s"
"""Ids of fields on pages that have another form with such fields."""


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def show_prompts(request: SignedInRequest) -> HttpResponse:
    """Those that agents of the organisation one works in may name, and a form for a new one."""
    form = PromptForm(
        request.POST if request.method == "POST" else None, initial={"label": "production"}
    )
    status = 200
    if request.method == "POST":
        status = 422
        try:
            require_shown_organisation(request)
            if form.is_valid():
                made = create_prompt(
                    actor=request.user,
                    organisation=request.organisation,
                    name=form.cleaned_data["name"],
                    description=form.cleaned_data["description"],
                    **_version(form),
                )
                messages.success(request, _("The prompt is made."))
                return redirect("prompts:prompt", uid=made.uid)
        except AgentError as problem:
            status = refuse(form, problem)
    return _prompts(request, form, ImportForm(auto_id=IMPORTING), status)


@login_required
@require_POST
def import_text(request: SignedInRequest) -> HttpResponse:
    form = ImportForm(request.POST, auto_id=IMPORTING)
    status = 422
    try:
        require_shown_organisation(request)
        if form.is_valid():
            spec = read_prompt(as_typed(form.cleaned_data["file"]))
            prompt, added = import_prompt(
                actor=request.user,
                organisation=request.organisation,
                spec=spec,
                reason=form.cleaned_data["reason"],
            )
            told = _("Imported. New versions: %(count)d.") % {"count": added}
            messages.success(request, told)
            return redirect("prompts:prompt", uid=prompt.uid)
    except AgentError as problem:
        status = refuse(form, problem)
    return _prompts(request, PromptForm(initial={"label": "production"}), form, status)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def show_prompt(request: SignedInRequest, uid: str) -> HttpResponse:
    """Its labels, its versions and where it is used; a POST adds a version."""
    prompt = prompt_at(request.user, uid)
    newest = prompt.versions.order_by("-number").first()
    initial = (
        {"text": newest.text, "variables": written_variables(newest.variables)} if newest else {}
    )
    form = VersionForm(request.POST if request.method == "POST" else None, initial=initial)
    status = 200
    if request.method == "POST":
        status = 422
        try:
            if form.is_valid():
                made = add_version(actor=request.user, prompt=prompt, **_version(form))
                messages.success(
                    request, _("This is version %(number)d.") % {"number": made.number}
                )
                return redirect("prompts:prompt", uid=uid)
        except AgentError as problem:
            status = refuse(form, problem)
    return _prompt(request, prompt, form, LabelForm(auto_id=MOVING), status)


@login_required
@require_POST
def label(request: SignedInRequest, uid: str) -> HttpResponse:
    """Move a label, or with `remove` take it away."""
    prompt = prompt_at(request.user, uid)
    if "remove" in request.POST:
        remove_label(actor=request.user, prompt=prompt, label=request.POST["remove"])
        messages.success(request, _("The label is gone."))
        return redirect("prompts:prompt", uid=uid)
    form = LabelForm(request.POST, auto_id=MOVING)
    status = 422
    try:
        if form.is_valid():
            move_label(actor=request.user, prompt=prompt, **form.cleaned_data)
            messages.success(request, _("New conversations follow the label from now on."))
            return redirect("prompts:prompt", uid=uid)
    except AgentError as problem:
        if isinstance(problem, Forbidden) or not may_change(request.user, prompt.organisation):
            raise
        form.add_error(None, problem.words)
    return _prompt(request, prompt, VersionForm(), form, status)


@login_required
@require_safe
def export(request: SignedInRequest, uid: str) -> HttpResponse:
    prompt = prompt_at(request.user, uid)
    return HttpResponse(
        written_prompt(spec_of(prompt)),
        content_type="application/yaml; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{prompt.name}.yaml"'},
    )


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def delete(request: SignedInRequest, uid: str) -> HttpResponse:
    """Asks on GET; nothing is deleted by following a link."""
    prompt = prompt_at(request.user, uid)
    if request.method != "POST":
        return render(request, "prompts/delete.html", {"prompt": prompt})
    delete_prompt(actor=request.user, prompt=prompt)
    messages.success(request, _("The prompt is deleted."))
    return redirect("prompts:prompts")


def _version(form: Any) -> dict[str, Any]:
    given = form.cleaned_data
    return {
        "text": as_typed(given["text"]),
        "variables": read_variables(given["variables"]),
        "note": given["note"],
        "label": given["label"],
        "reason": given["reason"],
    }


def _prompts(request: SignedInRequest, form: Any, importing: Any, status: int) -> HttpResponse:
    rows = Prompt.objects.visible_to(request.user).usable_in(request.organisation)
    context = {
        "prompts": rows.select_related("organisation").prefetch_related("labels__version")[
            :MOST_SHOWN
        ],
        "form": form,
        "import_form": importing,
        "manages": may_change(request.user, request.organisation),
    }
    return render(request, "prompts/prompts.html", context, status=status)


def _prompt(
    request: SignedInRequest, prompt: Prompt, form: Any, label_form: Any, status: int
) -> HttpResponse:
    versions = prompt.versions.defer("text").select_related("created_by").order_by("-number")
    context = {
        "prompt": prompt,
        "labels": prompt.labels.select_related("version", "moved_by").order_by("name"),
        "versions": versions[:MOST_SHOWN],
        "agents": list(agents_with(prompt, request.user)),
        "used": conversations_with(prompt, request.user),
        "form": form,
        "label_form": label_form,
        "manages": may_change(request.user, prompt.organisation),
    }
    return render(request, "prompts/prompt.html", context, status=status)

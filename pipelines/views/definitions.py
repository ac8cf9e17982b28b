"""The pages of pipelines: all there are, one with its graph and versions, and its file."""

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
from harness.errors import AgentError
from pipelines.access import may_change
from pipelines.actions.definitions import archive_pipeline, save_pipeline
from pipelines.actions.runs import start_run
from pipelines.drawing import drawn, rule_words
from pipelines.driving import missing, name_of
from pipelines.files import read_pipeline, written_pipeline
from pipelines.forms import DefinitionForm, StartForm
from pipelines.graph.following import most_steps
from pipelines.models import Pipeline, PipelineRun, PipelineVersion
from pipelines.scripting import has_scripts_alone
from pipelines.shipped import example_pipelines
from spending.amounts import units_of

from .lookup import pipeline_at, version_at

MOST_SHOWN = 100


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def show_pipelines(request: SignedInRequest) -> HttpResponse:
    """Those of the organisation one works in, the newest runs one sees, and a form for a new one."""
    example = example_pipelines().get(request.GET.get("example", ""), "")
    given = request.POST if request.method == "POST" else None
    form = DefinitionForm(given, initial={"text": example})
    status = 200
    if request.method == "POST":
        status = 422
        try:
            require_shown_organisation(request)
            if form.is_valid():
                made = save_pipeline(
                    actor=request.user,
                    organisation=request.organisation,
                    spec=read_pipeline(as_typed(form.cleaned_data["text"])),
                    note=form.cleaned_data["note"],
                )
                messages.success(request, _("The pipeline is saved."))
                return redirect("pipelines:pipeline", uid=made.pipeline.uid)
        except AgentError as problem:
            status = refuse(form, problem)
    runs = PipelineRun.objects.visible_to(request.user).filter(
        root__organisation=request.organisation
    )
    rows = Pipeline.objects.visible_to(request.user).filter(organisation=request.organisation)
    context = {
        "pipelines": rows.on_offer()[:MOST_SHOWN],
        "put_away": rows.exclude(archived_at=None)[:MOST_SHOWN],
        "runs": runs.in_lists()[:MOST_SHOWN],
        "examples": list(example_pipelines()),
        "form": form,
        "manages": may_change(request.user, request.organisation),
        "opens": bool(example) or status != 200,
    }
    return render(request, "pipelines/pipelines.html", context, status=status)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def show_pipeline(request: SignedInRequest, uid: str) -> HttpResponse:
    """Its graph, and a form that starts a run."""
    pipeline = pipeline_at(request.user, uid)
    newest = pipeline.newest()
    newest.pipeline = pipeline
    form = StartForm(
        request.POST if request.method == "POST" else None,
        initial={"scripted": has_scripts_alone(newest, request.user)},
        user=request.user,
        organisation=pipeline.organisation,
    )
    status = 200
    if request.method == "POST":
        status = 422
        try:
            if form.is_valid():
                given = form.cleaned_data
                run = start_run(
                    actor=request.user,
                    pipeline=pipeline,
                    question=as_typed(given["question"]),
                    environment=given["environment"],
                    limit=None if given["limit"] is None else units_of(given["limit"]),
                    scripted=given["scripted"],
                )
                return redirect("pipelines:run", uid=run.uid)
        except AgentError as problem:
            status = refuse(form, problem)
    context = {**_of_version(newest), "form": form}
    return _page(request, pipeline, context, status)


@login_required
@require_safe
def show_version(request: SignedInRequest, uid: str, number: int) -> HttpResponse:
    version = version_at(request.user, uid, number)
    return _page(request, version.pipeline, {**_of_version(version), "form": None}, 200)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def change(request: SignedInRequest, uid: str) -> HttpResponse:
    """A POST adds a version."""
    pipeline = pipeline_at(request.user, uid)
    text = written_pipeline(pipeline.newest().spec)
    form = DefinitionForm(
        request.POST if request.method == "POST" else None, initial={"text": text}
    )
    status = 200
    if request.method == "POST":
        status = 422
        try:
            if form.is_valid():
                made = save_pipeline(
                    actor=request.user,
                    organisation=pipeline.organisation,
                    spec=read_pipeline(as_typed(form.cleaned_data["text"])),
                    note=form.cleaned_data["note"],
                    pipeline=pipeline,
                )
                messages.success(
                    request, _("This is version %(number)d.") % {"number": made.number}
                )
                return redirect("pipelines:pipeline", uid=uid)
        except AgentError as problem:
            status = refuse(form, problem)
    context = {"pipeline": pipeline, "form": form}
    return render(request, "pipelines/change.html", context, status=status)


@login_required
@require_POST
def archive(request: SignedInRequest, uid: str) -> HttpResponse:
    pipeline = pipeline_at(request.user, uid)
    archived = request.POST.get("back") is None
    archive_pipeline(actor=request.user, pipeline=pipeline, archived=archived)
    return redirect("pipelines:pipelines")


@login_required
@require_safe
def export(request: SignedInRequest, uid: str) -> HttpResponse:
    pipeline = pipeline_at(request.user, uid)
    return HttpResponse(
        written_pipeline(pipeline.newest().spec),
        content_type="application/yaml; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{pipeline.uid}.yaml"'},
    )


def _of_version(version: PipelineVersion) -> dict[str, Any]:
    spec, pinned = version.spec, version.pinned()
    return {
        "version": version,
        "spec": spec,
        "drawing": drawn(spec),
        "most": most_steps(spec),
        "engine": name_of(spec.engine),
        "missing": missing(spec),
        "steps": [
            {
                "spec": step,
                "agent": pinned.get(step.name),
                "rules": rule_words(spec, step.name),
            }
            for step in spec.steps
        ],
    }


def _page(
    request: SignedInRequest, pipeline: Pipeline, context: dict[str, Any], status: int
) -> HttpResponse:
    runs = PipelineRun.objects.visible_to(request.user).filter(version__pipeline=pipeline)
    versions = pipeline.versions.defer("stored_spec").select_related("created_by")
    whole = {
        "pipeline": pipeline,
        "versions": versions.order_by("-number")[:MOST_SHOWN],
        "runs": runs.in_lists()[:MOST_SHOWN],
        "manages": may_change(request.user, pipeline.organisation),
        **context,
    }
    return render(request, "pipelines/pipeline.html", whole, status=status)

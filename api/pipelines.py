"""`/api/pipelines`: pipelines as files, and runs of them: started, stopped, let go on and decided."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from accounts.models import TokenScope
from conversations.actions.conversations import find_environment
from pipelines.access import find_pipeline, find_run
from pipelines.actions.definitions import archive_pipeline, save_pipeline
from pipelines.actions.runs import continue_run, decide_step, delete_run, start_run, stop_run
from pipelines.files import read_pipeline, written_pipeline
from pipelines.models import Pipeline, PipelineRun
from pipelines.showing import as_json

from .base import ApiView
from .bodies import read_body
from .schema import answers, errors, listed
from .serializers import Deleted, Dollars, StrictNumber, StrictText

TAG = "Pipelines"
READ, WRITE = TokenScope.CONVERSATIONS_READ, TokenScope.CONVERSATIONS_WRITE
MANAGE, DECIDE = TokenScope.AGENTS_MANAGE, TokenScope.APPROVALS_DECIDE
MOST = 200
"""Pipelines, or runs of one, that are listed."""
STATES = ["running", "waits", "done", "failed", "stopped"]
STEP_STATES = ["running", "waits", "asking", "done", "failed", "stopped"]


class PipelineFile(serializers.Serializer[Any]):
    file = StrictText(max_length=200_000, help_text="YAML, as docs/pipelines.md shows.")
    note = StrictText(required=False, allow_blank=True, max_length=500)


class PipelineRow(serializers.Serializer[Any]):
    id = serializers.CharField()
    name = serializers.CharField()
    description = serializers.CharField(allow_blank=True)
    version = serializers.IntegerField(help_text="The newest.")
    archived_at = serializers.DateTimeField(allow_null=True)


class PipelineStep(serializers.Serializer[Any]):
    step = serializers.CharField()
    agent = serializers.CharField(allow_null=True, help_text="Its id; null: a person is asked.")
    version = serializers.IntegerField(allow_null=True)


class PipelineContent(PipelineRow):
    file = serializers.CharField(help_text="The newest version, as YAML.")
    steps = PipelineStep(many=True)


class NewPipelineRun(serializers.Serializer[Any]):
    question = StrictText(max_length=20_000)
    version = serializers.IntegerField(required=False, min_value=1, help_text="Else the newest.")
    environment = StrictText(required=False, max_length=100, help_text="Id or name.")
    limit = Dollars(
        required=False,
        help_text="US dollars that all of it may cost.",
    )
    scripted = serializers.BooleanField(required=False, help_text="Play the steps' scripts.")


class PipelineRunRow(serializers.Serializer[Any]):
    id = serializers.CharField()
    version = serializers.IntegerField()
    state = serializers.ChoiceField(choices=PipelineRun.State.values)
    question = serializers.CharField()
    started_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True)


class PipelineRunStep(serializers.Serializer[Any]):
    place = serializers.IntegerField()
    step = serializers.CharField()
    state = serializers.ChoiceField(choices=STEP_STATES)
    answer = serializers.CharField(allow_blank=True)
    outcome = serializers.DictField(
        help_text="The word, the fields that rules look at, or an orchestrator's calls."
    )
    problem = serializers.CharField(allow_blank=True)
    conversation = serializers.CharField(allow_blank=True, help_text="For its owner alone.")
    started_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True)


class PipelineRunFigures(serializers.Serializer[Any]):
    steps = serializers.IntegerField()
    model_calls = serializers.IntegerField()
    tokens = serializers.IntegerField()
    cost_usd = StrictNumber(allow_null=True, help_text="Null: a price is unknown.")
    seconds = StrictNumber()


class PipelineRunContent(serializers.Serializer[Any]):
    id = serializers.CharField()
    pipeline = serializers.CharField()
    version = serializers.IntegerField()
    state = serializers.ChoiceField(
        choices=STATES, help_text="waits: for a person, for money, or for a service."
    )
    problem = serializers.CharField(allow_blank=True)
    question = serializers.CharField()
    answer = serializers.CharField(allow_blank=True)
    conversation = serializers.CharField(help_text="Whose budget caps all of it.")
    asks = serializers.IntegerField(allow_null=True, help_text="The place that waits for a word.")
    asked = serializers.CharField(allow_blank=True)
    steps = PipelineRunStep(many=True)
    figures = PipelineRunFigures()
    started_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True)


class ContinuedPipelineRun(serializers.Serializer[Any]):
    limit = Dollars(
        required=False,
        help_text="US dollars that all of it may cost from now on.",
    )


class DecidedPipelineStep(serializers.Serializer[Any]):
    place = serializers.IntegerField(min_value=1, max_value=32_767)
    approved = serializers.BooleanField()
    comment = StrictText(required=False, allow_blank=True, max_length=2_000)


class ArchivedPipeline(serializers.Serializer[Any]):
    archived = serializers.BooleanField()


def _row(pipeline: Pipeline) -> dict[str, Any]:
    newest = pipeline.versions.order_by("-number").values_list("number", flat=True).first()
    return {
        "id": pipeline.uid,
        "name": pipeline.name,
        "description": pipeline.description,
        "version": newest or 0,
        "archived_at": pipeline.archived_at,
    }


def _content(pipeline: Pipeline) -> dict[str, Any]:
    version = pipeline.newest()
    pinned = version.pinned()
    steps = []
    for step in version.spec.steps:
        pin = pinned.get(step.name)
        steps.append(
            {
                "step": step.name,
                "agent": pin.agent.uid if pin is not None else None,
                "version": pin.number if pin is not None else None,
            }
        )
    return {**_row(pipeline), "file": written_pipeline(version.spec), "steps": steps}


class PipelineView(ApiView):
    def found(self, uid: str) -> Pipeline:
        return find_pipeline(self.actor, self.organisation, uid)

    def run(self, uid: str) -> PipelineRun:
        rows = PipelineRun.objects.filter(root__organisation=self.organisation)
        return find_run(self.actor, uid, rows)


class PipelinesView(PipelineView):
    scopes = {"GET": READ, "POST": MANAGE}

    @extend_schema(
        operation_id="pipelines_list",
        summary="List the pipelines of the organisation, by name",
        tags=[TAG],
        responses=listed(PipelineRow, 401, 403),
    )
    def get(self, request: Any) -> Response:
        rows = Pipeline.objects.visible_to(self.actor).filter(organisation=self.organisation)
        return Response([_row(each) for each in rows[:MOST]])

    @extend_schema(
        operation_id="pipelines_save",
        summary="Save a version of the pipeline of a file's name, which is made if there is none",
        tags=[TAG],
        request=PipelineFile,
        responses=answers(PipelineContent, 401, 403, 404, 409, 413, 422),
    )
    def post(self, request: Any) -> Response:
        body = read_body(PipelineFile, request.data)
        version = save_pipeline(
            actor=self.actor,
            organisation=self.organisation,
            spec=read_pipeline(body["file"]),
            note=body.get("note", ""),
        )
        return Response(_content(version.pipeline))


class OnePipelineView(PipelineView):
    scopes = {"GET": READ, "POST": MANAGE}

    @extend_schema(
        operation_id="pipelines_retrieve",
        summary="Read a pipeline, by id or name, with its newest version as a file",
        tags=[TAG],
        responses=answers(PipelineContent, 401, 403, 404),
    )
    def get(self, request: Any, uid: str) -> Response:
        return Response(_content(self.found(uid)))

    @extend_schema(
        operation_id="pipelines_archive",
        summary="Put a pipeline away, or offer it again",
        tags=[TAG],
        request=ArchivedPipeline,
        responses=answers(PipelineRow, 401, 403, 404, 422),
    )
    def post(self, request: Any, uid: str) -> Response:
        pipeline = self.found(uid)
        archived = read_body(ArchivedPipeline, request.data)["archived"]
        found = archive_pipeline(actor=self.actor, pipeline=pipeline, archived=archived)
        return Response(_row(found))


class PipelineRunsView(PipelineView):
    scopes = {"GET": READ, "POST": WRITE}

    @extend_schema(
        operation_id="pipelines_runs_list",
        summary="List the runs of a pipeline that one sees, newest first",
        tags=[TAG],
        responses=listed(PipelineRunRow, 401, 403, 404),
    )
    def get(self, request: Any, uid: str) -> Response:
        rows = PipelineRun.objects.visible_to(self.actor).filter(version__pipeline=self.found(uid))
        return Response(
            [
                {
                    "id": run.uid,
                    "version": run.version.number,
                    "state": run.state,
                    "question": run.question,
                    "started_at": run.started_at,
                    "ended_at": run.ended_at,
                }
                for run in rows.select_related("version").defer("version__stored_spec")[:MOST]
            ]
        )

    @extend_schema(
        operation_id="pipelines_runs_create",
        summary="Start a run",
        tags=[TAG],
        request=NewPipelineRun,
        responses={201: PipelineRunContent, **errors(401, 403, 404, 409, 413, 422, 429)},
    )
    def post(self, request: Any, uid: str) -> Response:
        pipeline = self.found(uid)
        given = read_body(NewPipelineRun, request.data)
        wanted = given.get("environment", "")
        environment = None
        if wanted:
            environment = find_environment(
                actor=self.actor, organisation=self.organisation, wanted=wanted
            )
        run = start_run(
            actor=self.actor,
            pipeline=pipeline,
            question=given["question"],
            number=given.get("version"),
            environment=environment,
            limit=given.get("limit"),
            scripted=given.get("scripted", False),
            caller=getattr(request, "caller", None),
        )
        return Response(as_json(run, self.actor), status=201)


class OnePipelineRunView(PipelineView):
    scopes = {"GET": READ, "DELETE": WRITE}

    @extend_schema(
        operation_id="pipelines_runs_retrieve",
        summary="Read how a run stands, step by step",
        tags=[TAG],
        responses=answers(PipelineRunContent, 401, 403, 404),
    )
    def get(self, request: Any, uid: str) -> Response:
        return Response(as_json(self.run(uid), self.actor))

    @extend_schema(
        operation_id="pipelines_runs_destroy",
        summary="Delete a run that has ended, with its conversations",
        tags=[TAG],
        responses=answers(Deleted, 401, 403, 404, 409),
    )
    def delete(self, request: Any, uid: str) -> Response:
        delete_run(actor=self.actor, run=self.run(uid))
        return Response({"status": "deleted"})


class StopPipelineRunView(PipelineView):
    scopes = {"POST": WRITE}

    @extend_schema(
        operation_id="pipelines_runs_stop",
        summary="End what is under way of a run and begin nothing more",
        tags=[TAG],
        request=None,
        responses=answers(PipelineRunContent, 401, 403, 404),
    )
    def post(self, request: Any, uid: str) -> Response:
        run = stop_run(actor=self.actor, run=self.run(uid))
        return Response(as_json(run, self.actor))


class ContinuePipelineRunView(PipelineView):
    scopes = {"POST": WRITE}

    @extend_schema(
        operation_id="pipelines_runs_continue",
        summary="Have a run go on that stopped short, perhaps with more money",
        tags=[TAG],
        request=ContinuedPipelineRun,
        responses=answers(PipelineRunContent, 401, 403, 404, 409, 422),
    )
    def post(self, request: Any, uid: str) -> Response:
        run = self.run(uid)
        limit = read_body(ContinuedPipelineRun, request.data).get("limit")
        run = continue_run(actor=self.actor, run=run, limit=limit)
        return Response(as_json(run, self.actor))


class DecidePipelineRunView(PipelineView):
    scopes = {"POST": DECIDE}

    @extend_schema(
        operation_id="pipelines_runs_decide",
        summary="Say whether a run that asks goes on",
        tags=[TAG],
        request=DecidedPipelineStep,
        responses=answers(PipelineRunContent, 401, 403, 404, 409, 413, 422),
    )
    def post(self, request: Any, uid: str) -> Response:
        run = self.run(uid)
        body = read_body(DecidedPipelineStep, request.data)
        run = decide_step(actor=self.actor, run=run, **body)
        return Response(as_json(run, self.actor))

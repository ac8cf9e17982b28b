"""`/api/comparisons`: one question put to several pipelines and agents, and which of them won."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from accounts.models import TokenScope
from comparisons.access import find_comparison
from comparisons.actions.comparisons import (
    MOST,
    continue_comparison,
    delete_comparison,
    start_comparison,
    stop_comparison,
)
from comparisons.models import Comparison
from comparisons.showing import as_json
from conversations.actions.conversations import find_agent, find_environment
from harness.faults import place
from pipelines.access import find_pipeline
from wire.fieldnames import written

from .base import ApiView
from .bodies import read_body
from .pipelines import ContinuedPipelineRun, PipelineRunFigures
from .schema import answers, errors, listed
from .serializers import Deleted, Dollars, StrictNumber, StrictText

TAG = "Pipelines"
READ, WRITE = TokenScope.CONVERSATIONS_READ, TokenScope.CONVERSATIONS_WRITE
MOST_LISTED = 200


class NewComparison(serializers.Serializer[Any]):
    question = StrictText(max_length=20_000)
    pipelines = serializers.ListField(
        child=StrictText(max_length=100), required=False, max_length=MOST, help_text="Ids or names."
    )
    agents = serializers.ListField(
        child=StrictText(max_length=100), required=False, max_length=MOST, help_text="Ids or names."
    )
    environment = StrictText(required=False, max_length=100, help_text="Id or name.")
    limit = Dollars(
        required=False,
        help_text="US dollars that all of it may cost.",
    )
    scripted = serializers.BooleanField(required=False, help_text="Pipelines play their scripts.")
    judged = serializers.BooleanField(
        required=False, help_text="A model judges the answers; so it is unless this says no."
    )
    judge_provider = StrictText(required=False, allow_blank=True, max_length=50)
    judge_model = StrictText(required=False, allow_blank=True, max_length=100)


class ComparisonRow(serializers.Serializer[Any]):
    id = serializers.CharField()
    state = serializers.ChoiceField(choices=["running", "done", "stopped"])
    question = serializers.CharField(help_text="Its beginning.")
    entries = serializers.ListField(child=serializers.CharField(), help_text="Their names.")
    started_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True)


class ComparisonEntry(serializers.Serializer[Any]):
    place = serializers.IntegerField()
    name = serializers.CharField()
    state = serializers.ChoiceField(
        choices=["running", "waits", "judging", "done", "failed", "stopped"]
    )
    answer = serializers.CharField(allow_blank=True)
    points = StrictNumber(allow_null=True, help_text="Of its judge; null: not known.")
    most_points = serializers.IntegerField()
    reason = serializers.CharField(allow_blank=True, help_text="What its judge said.")
    problem = serializers.CharField(allow_blank=True)
    run = serializers.CharField(allow_blank=True, help_text="Of a pipeline.")
    conversation = serializers.CharField(allow_blank=True, help_text="An agent's, for its owner.")
    figures = PipelineRunFigures()


class ComparisonContent(serializers.Serializer[Any]):
    id = serializers.CharField()
    state = serializers.ChoiceField(choices=["running", "waits", "done", "stopped"])
    question = serializers.CharField()
    judged = serializers.BooleanField()
    conversation = serializers.CharField(help_text="Whose budget caps all of it.")
    entries = ComparisonEntry(many=True)
    winner = serializers.IntegerField(allow_null=True, help_text="Its place.")
    won_by = serializers.ChoiceField(choices=["quality", "tokens", "alone", "tie"], allow_null=True)
    figures = PipelineRunFigures(help_text="Of all, the judges' as well.")
    started_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True)


class ComparisonView(ApiView):
    def found(self, uid: str) -> Comparison:
        rows = Comparison.objects.filter(root__organisation=self.organisation)
        return find_comparison(self.actor, uid, rows)


class ComparisonsView(ComparisonView):
    scopes = {"GET": READ, "POST": WRITE}

    @extend_schema(
        operation_id="comparisons_list",
        summary="List the comparisons that one sees, newest first",
        tags=[TAG],
        responses=listed(ComparisonRow, 401, 403),
    )
    def get(self, request: Any) -> Response:
        here = Comparison.objects.visible_to(self.actor).filter(
            root__organisation=self.organisation
        )
        rows: Any = here.in_lists()[:MOST_LISTED]
        return Response(
            [
                {
                    "id": each.uid,
                    "state": each.state,
                    "question": each.beginning,
                    "entries": [entry.name for entry in each.entries.all()],
                    "started_at": each.started_at,
                    "ended_at": each.ended_at,
                }
                for each in rows
            ]
        )

    @extend_schema(
        operation_id="comparisons_create",
        summary="Put one question to several pipelines and agents",
        tags=[TAG],
        request=NewComparison,
        responses={201: ComparisonContent, **errors(401, 403, 404, 409, 413, 422, 429)},
    )
    def post(self, request: Any) -> Response:
        given = read_body(NewComparison, request.data)
        actor, here = self.actor, self.organisation
        pipelines = [find_pipeline(actor, here, each) for each in given.get("pipelines", [])]
        agents = []
        for number, each in enumerate(given.get("agents", [])):
            with written({"agent": place("agents", number)}):
                agents.append(find_agent(actor=actor, organisation=here, wanted=each))
        wanted, environment = given.get("environment", ""), None
        if wanted:
            environment = find_environment(actor=actor, organisation=here, wanted=wanted)
        comparison = start_comparison(
            actor=actor,
            organisation=here,
            question=given["question"],
            pipelines=pipelines,
            agents=agents,
            environment=environment,
            limit=given.get("limit"),
            scripted=given.get("scripted", False),
            judged=given.get("judged", True),
            judge_provider=given.get("judge_provider", ""),
            judge_model=given.get("judge_model", ""),
            caller=getattr(request, "caller", None),
        )
        return Response(as_json(comparison, actor), status=201)


class OneComparisonView(ComparisonView):
    scopes = {"GET": READ, "DELETE": WRITE}

    @extend_schema(
        operation_id="comparisons_retrieve",
        summary="Read the answers side by side, with what each took and which one won",
        tags=[TAG],
        responses=answers(ComparisonContent, 401, 403, 404),
    )
    def get(self, request: Any, uid: str) -> Response:
        return Response(as_json(self.found(uid), self.actor))

    @extend_schema(
        operation_id="comparisons_destroy",
        summary="Delete a comparison that has ended, with its runs and conversations",
        tags=[TAG],
        responses=answers(Deleted, 401, 403, 404, 409),
    )
    def delete(self, request: Any, uid: str) -> Response:
        delete_comparison(actor=self.actor, comparison=self.found(uid))
        return Response({"status": "deleted"})


class StopComparisonView(ComparisonView):
    scopes = {"POST": WRITE}

    @extend_schema(
        operation_id="comparisons_stop",
        summary="End what is under way of a comparison and begin nothing more",
        tags=[TAG],
        request=None,
        responses=answers(ComparisonContent, 401, 403, 404),
    )
    def post(self, request: Any, uid: str) -> Response:
        found = stop_comparison(actor=self.actor, comparison=self.found(uid))
        return Response(as_json(found, self.actor))


class ContinueComparisonView(ComparisonView):
    scopes = {"POST": WRITE}

    @extend_schema(
        operation_id="comparisons_continue",
        summary="Have what stopped short go on, perhaps with more money",
        tags=[TAG],
        request=ContinuedPipelineRun,
        responses=answers(ComparisonContent, 401, 403, 404, 409, 422),
    )
    def post(self, request: Any, uid: str) -> Response:
        comparison = self.found(uid)
        limit = read_body(ContinuedPipelineRun, request.data).get("limit")
        found = continue_comparison(actor=self.actor, comparison=comparison, limit=limit)
        return Response(as_json(found, self.actor))

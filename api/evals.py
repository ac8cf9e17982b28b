"""`/api/evals`: suites as files, their evaluations, and what does worse in one than in another."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from accounts.models import TokenScope
from agents.models import AgentVersion
from conversations.actions.conversations import find_agent, find_environment
from conversations.defaults import default_environment
from evals.actions.deleting import delete_suite
from evals.actions.evaluations import start_evaluation, stop_evaluation
from evals.actions.grades import MOST_NOTE, grade_trial
from evals.actions.suites import import_suite, spec_of
from evals.exporting import as_json, grades_of
from evals.files import read_suite, written_suite
from evals.models import Evaluation, Grade, Suite
from evals.reports import compare
from harness.errors import NotFound

from .base import ApiView
from .bodies import read_body
from .schema import answers, errors, listed
from .serializers import Deleted, Dollars, StrictText

TAG = "Evals"
READ, MANAGE = TokenScope.CONVERSATIONS_READ, TokenScope.AGENTS_MANAGE
MOST = 200
"""Suites, or evaluations of one, that are listed."""
WITH = OpenApiParameter("with", str, description="The id of the earlier one.", required=True)


class SuiteFile(serializers.Serializer[Any]):
    file = StrictText(max_length=10_000_000, help_text="YAML or JSON, as docs/evals.md shows.")


class SuiteRow(serializers.Serializer[Any]):
    id = serializers.CharField()
    name = serializers.CharField()
    description = serializers.CharField(allow_blank=True)
    cases = serializers.IntegerField()


class SuiteContent(SuiteRow):
    file = serializers.CharField(help_text="All of it, as YAML.")


class NewEvaluation(serializers.Serializer[Any]):
    """Which version of which agent is tried, and how often."""

    agent = StrictText(max_length=100, help_text="Id or name.")
    version = serializers.IntegerField(required=False, min_value=1, help_text="Else the newest.")
    environment = StrictText(required=False, max_length=100, help_text="Id or name.")
    provider = StrictText(required=False, allow_blank=True, max_length=50)
    model = StrictText(required=False, allow_blank=True, max_length=100)
    skills = serializers.DictField(child=StrictText(max_length=50), required=False)
    prompts = serializers.DictField(
        child=StrictText(max_length=50),
        required=False,
        help_text="Versions or labels by name, where they differ from those the agent names.",
    )
    scripted = serializers.BooleanField(required=False, help_text="Play the cases' scripts.")
    repetitions = serializers.IntegerField(required=False, min_value=1, max_value=100)
    parallel = serializers.IntegerField(required=False, min_value=1, max_value=1_000)
    limit = Dollars(
        required=False,
        help_text="US dollars that all of it may cost.",
    )
    uses_cache = serializers.BooleanField(required=False)
    note = StrictText(required=False, allow_blank=True, max_length=200)


class EvaluationRow(serializers.Serializer[Any]):
    id = serializers.CharField()
    state = serializers.ChoiceField(choices=Evaluation.State.values)
    agent = serializers.CharField()
    version = serializers.IntegerField()
    note = serializers.CharField(allow_blank=True)
    started_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True)


class EvaluationContent(serializers.Serializer[Any]):
    """What the page of an evaluation downloads as JSON."""

    id = serializers.CharField()
    state = serializers.ChoiceField(choices=Evaluation.State.values)
    suite = serializers.DictField()
    agent = serializers.DictField()
    summary = serializers.DictField()
    trials = serializers.ListField(child=serializers.DictField())


class GivenGrade(serializers.Serializer[Any]):
    """How well a try did, as its reader finds."""

    case = StrictText(max_length=100)
    repetition = serializers.IntegerField(required=False, min_value=1, max_value=100, default=1)
    points = serializers.IntegerField(
        allow_null=True, min_value=1, max_value=Grade.SCALE, help_text="null takes them back."
    )
    note = StrictText(required=False, allow_blank=True, max_length=MOST_NOTE)


class TrialGrades(serializers.Serializer[Any]):
    case = serializers.CharField()
    repetition = serializers.IntegerField()
    grades = serializers.ListField(child=serializers.DictField())


class ComparedCase(serializers.Serializer[Any]):
    case = serializers.CharField()
    change = serializers.ChoiceField(
        choices=["regressed", "improved", "same", "new", "gone", "not_tried"]
    )
    case_changed = serializers.BooleanField(help_text="It asks something else by now.")
    why = serializers.ListField(child=serializers.CharField(), help_text="What did not pass.")


def _row(suite: Suite) -> dict[str, Any]:
    return {
        "id": suite.uid,
        "name": suite.name,
        "description": suite.description,
        "cases": suite.cases.count(),
    }


def _run_row(evaluation: Evaluation) -> dict[str, Any]:
    return {
        "id": evaluation.uid,
        "state": evaluation.state,
        "agent": evaluation.agent_version.agent.uid,
        "version": evaluation.agent_version.number,
        "note": evaluation.note,
        "started_at": evaluation.started_at,
        "ended_at": evaluation.ended_at,
    }


class EvalView(ApiView):
    def suites(self) -> Any:
        rows = Suite.objects.visible_to(self.actor).filter(organisation=self.organisation)
        return rows.select_related("organisation")

    def find_suite(self, uid: str) -> Suite:
        found = self.suites().filter(uid=uid).first()
        if not isinstance(found, Suite):
            raise NotFound(
                _("There is no such suite."), hint=_("GET /api/evals/suites lists those there are.")
            )
        return found

    def find_evaluation(self, uid: str) -> Evaluation:
        rows = Evaluation.objects.visible_to(self.actor).filter(
            uid=uid, suite__organisation=self.organisation
        )
        found = rows.select_related("suite", "agent_version__agent").first()
        if found is None:
            raise NotFound(_("There is no such evaluation."))
        return found


class SuitesView(EvalView):
    scopes = {"GET": READ, "POST": MANAGE}

    @extend_schema(
        operation_id="evals_suites_list",
        summary="List the suites of the organisation, by name",
        tags=[TAG],
        responses=listed(SuiteRow, 401, 403),
    )
    def get(self, request: Any) -> Response:
        return Response([_row(each) for each in self.suites()[:MOST]])

    @extend_schema(
        operation_id="evals_suites_import",
        summary="Make the suite of a file's name what the file says",
        tags=[TAG],
        request=SuiteFile,
        responses=answers(SuiteRow, 401, 403, 404, 409, 413, 422),
    )
    def post(self, request: Any) -> Response:
        spec = read_suite(read_body(SuiteFile, request.data)["file"])
        suite = import_suite(actor=self.actor, organisation=self.organisation, spec=spec)
        return Response(_row(suite))


class OneSuiteView(EvalView):
    scopes = {"GET": READ, "DELETE": MANAGE}

    @extend_schema(
        operation_id="evals_suites_retrieve",
        summary="Read a suite, with its cases as a file",
        tags=[TAG],
        responses=answers(SuiteContent, 401, 403, 404),
    )
    def get(self, request: Any, uid: str) -> Response:
        suite = self.find_suite(uid)
        return Response({**_row(suite), "file": written_suite(spec_of(suite))})

    @extend_schema(
        operation_id="evals_suites_destroy",
        summary="Delete a suite with all that was tried by it",
        tags=[TAG],
        responses=answers(Deleted, 401, 403, 404, 409),
    )
    def delete(self, request: Any, uid: str) -> Response:
        delete_suite(actor=self.actor, suite=self.find_suite(uid))
        return Response({"status": "deleted"})


class EvaluationsView(EvalView):
    scopes = {"GET": READ, "POST": MANAGE}

    @extend_schema(
        operation_id="evals_runs_list",
        summary="List the evaluations of a suite, newest first",
        tags=[TAG],
        responses=listed(EvaluationRow, 401, 403, 404),
    )
    def get(self, request: Any, uid: str) -> Response:
        rows = self.find_suite(uid).evaluations.select_related("agent_version__agent")
        return Response([_run_row(each) for each in rows.order_by("-id")[:MOST]])

    @extend_schema(
        operation_id="evals_runs_create",
        summary="Try a suite with a version of an agent",
        tags=[TAG],
        request=NewEvaluation,
        responses={201: EvaluationRow, **errors(401, 403, 404, 409, 422)},
    )
    def post(self, request: Any, uid: str) -> Response:
        suite = self.find_suite(uid)
        given = dict(read_body(NewEvaluation, request.data))
        person, organisation = self.actor, self.organisation
        wanted = given.pop("agent")
        agent = find_agent(actor=person, organisation=organisation, wanted=wanted)
        number = given.pop("version", None)
        seen = AgentVersion.objects.visible_to(self.actor).filter(agent=agent)
        rows = seen.select_related("agent__current").order_by("-number")
        version = (rows if number is None else rows.filter(number=number)).first()
        if version is None:
            raise NotFound(_("%(agent)s has no such version.") % {"agent": agent.name})
        wanted = given.pop("environment", "")
        environment = (
            find_environment(actor=person, organisation=organisation, wanted=wanted)
            if wanted
            else default_environment(person, organisation)
        )
        started = start_evaluation(
            actor=self.actor,
            suite=suite,
            version=version,
            environment=environment,
            **given,
        )
        return Response(_run_row(started), status=201)


class OneEvaluationView(EvalView):
    scopes = {"GET": READ}

    @extend_schema(
        operation_id="evals_runs_retrieve",
        summary="Read an evaluation, with every try",
        tags=[TAG],
        responses=answers(EvaluationContent, 401, 403, 404),
    )
    def get(self, request: Any, uid: str) -> Response:
        return Response(as_json(self.find_evaluation(uid)))


class StopEvaluationView(EvalView):
    scopes = {"POST": MANAGE}

    @extend_schema(
        operation_id="evals_runs_stop",
        summary="End what is under way and begin nothing more of it",
        tags=[TAG],
        request=None,
        responses=answers(EvaluationRow, 401, 403, 404),
    )
    def post(self, request: Any, uid: str) -> Response:
        evaluation = self.find_evaluation(uid)
        return Response(_run_row(stop_evaluation(actor=self.actor, evaluation=evaluation)))


class GradesView(EvalView):
    scopes = {"POST": MANAGE}

    @extend_schema(
        operation_id="evals_runs_grade",
        summary="Give points to a try, beside what its judges say",
        tags=[TAG],
        request=GivenGrade,
        responses=answers(TrialGrades, 401, 403, 404, 422),
    )
    def post(self, request: Any, uid: str) -> Response:
        evaluation = self.find_evaluation(uid)
        given = read_body(GivenGrade, request.data)
        trial = grade_trial(actor=self.actor, evaluation=evaluation, **given)
        return Response(
            {"case": trial.name, "repetition": trial.repetition, "grades": grades_of(trial)}
        )


class ComparisonView(EvalView):
    scopes = {"GET": READ}

    @extend_schema(
        operation_id="evals_runs_compare",
        summary="Case by case, what differs from an earlier evaluation; what does worse first",
        tags=[TAG],
        parameters=[WITH],
        responses=listed(ComparedCase, 401, 403, 404, 422),
    )
    def get(self, request: Any, uid: str) -> Response:
        after = self.find_evaluation(uid)
        before = self.find_evaluation(request.query_params.get("with", "").replace("\0", ""))
        return Response(
            [
                {
                    "case": pair.name,
                    "change": pair.change,
                    "case_changed": pair.case_changed,
                    "why": list(pair.after.why) if pair.after else [],
                }
                for pair in compare(before, after, answers=False)
            ]
        )

"""`/api/skills/…/trials`: having a version tried in a sandbox that is watched, and what was seen of it.

Who may is `skills_app.actions.trialruns`' part, what is seen `skills_app.trialrun`'s.
"""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from skills_app.actions.trialruns import begin_trial_run, trial_runs_of
from skills_app.models import SkillTrialRun
from skills_app.trialrun.report import Report

from .schema import errors, listed
from .skills import MANAGE, READ, TAG, SkillView


class TrialStep(serializers.Serializer[Any]):
    case = serializers.CharField(allow_blank=True, help_text="Empty: a script that no case runs.")
    kind = serializers.CharField(help_text="`command` or `tool`.")
    what = serializers.CharField()
    exit_code = serializers.IntegerField(allow_null=True)
    ended_by = serializers.CharField(
        allow_blank=True, help_text="Why it did not come to its own end."
    )
    seconds = serializers.FloatField()
    output = serializers.CharField(allow_blank=True)


class TrialHost(serializers.Serializer[Any]):
    host = serializers.CharField()
    port = serializers.IntegerField()
    times = serializers.IntegerField()
    declared = serializers.BooleanField()


class TrialProgram(serializers.Serializer[Any]):
    name = serializers.CharField()
    arguments = serializers.CharField(allow_blank=True)
    declared = serializers.BooleanField()


class TrialFile(serializers.Serializer[Any]):
    area = serializers.CharField(help_text="`workspace`, `home`, `tmp` or `skill`.")
    path = serializers.CharField()
    how = serializers.CharField(help_text="`read`, `written` or `removed`.")
    bait = serializers.BooleanField(help_text="It was laid there for whoever looks for secrets.")
    declared = serializers.BooleanField()


class TrialCall(serializers.Serializer[Any]):
    tool = serializers.CharField()
    declared = serializers.BooleanField()


class TrialReport(serializers.Serializer[Any]):
    """The first of each kind, what is not declared before what is; `more` counts the others."""

    undeclared = serializers.IntegerField()
    steps = TrialStep(many=True)
    hosts = TrialHost(many=True)
    programs = TrialProgram(many=True)
    files = TrialFile(many=True)
    calls = TrialCall(many=True)
    more = serializers.DictField(child=serializers.IntegerField())
    unused = serializers.ListField(
        child=serializers.CharField(), help_text="Declared, and not seen."
    )
    left_out = serializers.ListField(child=serializers.CharField())
    files_whole = serializers.BooleanField(help_text="False: more happened than could be followed.")
    programs_whole = serializers.BooleanField()
    out_of_time = serializers.BooleanField()


class SkillTrial(serializers.Serializer[Any]):
    state = serializers.CharField(
        help_text="`running`, `done`, `failed`, or `lost` with its process."
    )
    started_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True)
    problem = serializers.CharField(allow_blank=True, help_text="Why it failed.")
    report = TrialReport(allow_null=True)


def _row(run: SkillTrialRun) -> dict[str, Any]:
    lost = run.state == SkillTrialRun.State.RUNNING and not run.under_way
    return {
        "state": "lost" if lost else run.state,
        "started_at": run.started_at,
        "ended_at": run.ended_at,
        "problem": run.problem,
        "report": _report(Report.model_validate(run.report))
        if run.state == SkillTrialRun.State.DONE
        else None,
    }


def _report(seen: Report) -> dict[str, Any]:
    whole = seen.model_dump(mode="json")
    more = {kind: whole.pop(f"more_{kind}") for kind in ("hosts", "programs", "files", "calls")}
    for step in whole["steps"]:
        step["case"] = step.pop("course")
    return {"undeclared": seen.undeclared, "more": more, **whole}


class SkillTrialsView(SkillView):
    scopes = {"GET": READ, "POST": MANAGE}

    @extend_schema(
        operation_id="skills_trials_list",
        summary="List what the last trial runs of a version saw, newest first",
        description="Empty for who neither writes nor manages the skill.",
        tags=[TAG],
        responses=listed(SkillTrial, 401, 403, 404),
    )
    def get(self, request: Any, uid: str, label: str) -> Response:
        runs = trial_runs_of(self.actor, self.find_version(uid, label))
        return Response([_row(each) for each in runs])

    @extend_schema(
        operation_id="skills_trials_create",
        summary="Have the cases and scripts of a version run in a sandbox that is watched",
        tags=[TAG],
        request=None,
        responses={201: SkillTrial, **errors(401, 403, 404, 409, 422)},
    )
    def post(self, request: Any, uid: str, label: str) -> Response:
        run = begin_trial_run(actor=self.actor, version=self.find_version(uid, label))
        return Response(_row(run), status=201)

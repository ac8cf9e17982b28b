"""A person's runs of pipelines among what she takes along."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from accounts.models import User
from owndata.parts import File, as_lines, in_pages

from .models import PipelineRun, StepRun


def files(user: User) -> Iterator[File]:
    mine = PipelineRun.objects.owned_by(user).select_related("version__pipeline", "root")
    brief = mine.defer("version__stored_spec")
    yield File("runs.jsonl", as_lines(map(_told, in_pages(brief))))
    decided = StepRun.objects.filter(decided_by=user).select_related("run")
    yield File("decisions.jsonl", as_lines(map(_decided, in_pages(decided))))


def _told(run: PipelineRun) -> dict[str, Any]:
    return {
        "id": run.uid,
        "pipeline": run.version.pipeline.name,
        "version": run.version.number,
        "question": run.question,
        "state": run.state,
        "problem": run.problem,
        "conversation": run.root.uid,
        "started_at": run.started_at,
        "ended_at": run.ended_at,
    }


def _decided(step: StepRun) -> dict[str, Any]:
    return {
        "run": step.run.uid,
        "step": step.name,
        "decision": step.outcome.get("word", ""),
        "comment": step.comment,
        "at": step.ended_at,
    }

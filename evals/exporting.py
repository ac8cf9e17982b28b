"""An evaluation as others read it: JSON with every try, and JUnit's XML for CI."""

from __future__ import annotations

from typing import Any
from xml.etree.ElementTree import Element, SubElement, tostring

from .models import Evaluation, Trial
from .reports import case_lines, summary

_UNFIT = {code: "\N{REPLACEMENT CHARACTER}" for code in range(32) if code not in {9, 10, 13}}
"""What XML 1.0 cannot hold."""


def as_json(evaluation: Evaluation) -> dict[str, Any]:
    """All of it. Money in US dollars as text; null where a price is unknown."""
    lines = case_lines(evaluation)
    told = summary(evaluation, lines)
    version = evaluation.agent_version
    return {
        "id": evaluation.uid,
        "suite": {"id": evaluation.suite.uid, "name": evaluation.suite.name},
        "agent": {
            "id": version.agent.uid,
            "name": version.agent.name,
            "version": version.number,
        },
        "overrides": evaluation.overrides,
        "skills": evaluation.skills,
        "scripted": evaluation.scripted,
        "repetitions": evaluation.repetitions,
        "state": evaluation.state,
        "digest": evaluation.digest,
        "note": evaluation.note,
        "started_at": evaluation.started_at.isoformat(),
        "ended_at": evaluation.ended_at.isoformat() if evaluation.ended_at else None,
        "summary": {
            "cases": told.cases,
            "trials": told.trials,
            "passed": told.passed,
            "failed": told.failed,
            "broken": told.broken,
            "open": told.open,
            "share": told.share,
            "interval": [told.interval.low, told.interval.high],
            "k": told.k,
            "pass_at_k": told.pass_at_k,
            "pass_hat_k": told.pass_hat_k,
            "flaky": list(told.flaky),
            "graded": told.graded,
            "agreed": told.agreed,
            "cost": _money(told.cost),
            "saved": _money(told.saved),
            "model_calls": told.model_calls,
            "cached_calls": told.cached_calls,
            "hit_rate": told.hit_rate,
            "seconds": told.seconds,
        },
        "trials": [_trial(trial) for trial in _trials(evaluation)],
    }


def as_junit(evaluation: Evaluation) -> str:
    """One test case for each try; a check that did not pass is a failure, what was not tried an error."""
    told = summary(evaluation)
    root = Element("testsuites")
    suite = SubElement(
        root,
        "testsuite",
        name=_fit(evaluation.suite.name),
        tests=str(told.trials),
        failures=str(told.failed),
        errors=str(told.broken),
        skipped=str(told.open),
        time=f"{told.seconds:.3f}",
        timestamp=evaluation.started_at.isoformat(),
    )
    for trial in _trials(evaluation):
        case = SubElement(
            suite,
            "testcase",
            classname=_fit(evaluation.suite.name),
            name=f"{trial.name} #{trial.repetition}",
            time=f"{trial.seconds:.3f}",
        )
        if trial.state == Trial.State.FAILED:
            failed = [each for each in trial.outcomes if not each["passed"]]
            told_why = "\n".join(f"{each['name']}: {each['why']}" for each in failed)
            failure = SubElement(case, "failure", message=_fit(failed[0]["name"]))
            failure.text = _fit(told_why)
        elif trial.state == Trial.State.BROKEN:
            SubElement(case, "error", message=_fit(trial.problem))
        elif trial.state != Trial.State.PASSED:
            SubElement(case, "skipped")
    return tostring(root, encoding="unicode", xml_declaration=True)


def _trials(evaluation: Evaluation) -> Any:
    rows = Trial.objects.filter(evaluation=evaluation).defer("stored_spec")
    return rows.select_related("conversation").prefetch_related("grades__by").order_by("id")


def _trial(trial: Trial) -> dict[str, Any]:
    return {
        "case": trial.name,
        "digest": trial.digest,
        "repetition": trial.repetition,
        "state": trial.state,
        "answer": trial.answer,
        "outcomes": trial.outcomes,
        "grades": grades_of(trial),
        "problem": trial.problem,
        "steps": trial.steps,
        "cost": _money(trial.cost),
        "saved": _money(trial.saved),
        "model_calls": trial.model_calls,
        "cached_calls": trial.cached_calls,
        "seconds": trial.seconds,
        "conversation": trial.conversation.uid if trial.conversation else None,
    }


def grades_of(trial: Trial) -> list[dict[str, Any]]:
    """What people say of it, the first first."""
    return [
        {"by": str(each.by), "points": each.points, "of": each.SCALE, "note": each.note}
        for each in trial.grades.all()
    ]


def _money(amount: Any) -> str | None:
    return None if amount is None else f"{amount:f}"


def _fit(text: str) -> str:
    return text.translate(_UNFIT)

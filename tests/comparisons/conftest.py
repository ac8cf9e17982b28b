"""Two pipelines of alice's and an agent, and a judge that plays a script."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from accounts.models import Organisation, User
from comparisons.actions.comparisons import start_comparison
from comparisons.models import Comparison
from conversations.models import Run
from pipelines.actions.definitions import save_pipeline
from pipelines.models import Pipeline
from providers.scripted import registered, reply
from tests.conversations.conftest import environment, make_agent, until
from tests.pipelines.conftest import QUESTION, spec_of, step, worker

__all__ = ["QUESTION", "environment", "make_agent", "step", "worker"]

Line = Callable[..., Pipeline]
Compare = Callable[..., Comparison]
JUDGE = {"judge_provider": "scripted", "judge_model": "judge"}


@pytest.fixture(autouse=True)
def with_what_works(environment):
    """Every test here has somewhere to work, and ends with nothing under way."""


@pytest.fixture
def line(alice: User, acme: Organisation, worker) -> Line:
    def save(name: str, *steps: dict[str, Any]) -> Pipeline:
        spec = spec_of(*(steps or (step("a", f"{name} says 660 m."),)), name=name)
        return save_pipeline(actor=alice, organisation=acme, spec=spec).pipeline

    return save


@pytest.fixture
def compare(alice: User, acme: Organisation, environment) -> Compare:
    def start(*pipelines: Pipeline, **more: Any) -> Comparison:
        given = {"judged": False, "scripted": True, "environment": environment, **more}
        return start_comparison(
            actor=alice, organisation=acme, question=QUESTION, pipelines=pipelines, **given
        )

    return start


@pytest.fixture
def judge() -> Iterator[None]:
    """Gives five points to what says 660 m, and two to all else."""

    def judged(request: Any) -> Any:
        points = 5 if "660" in str(request.messages[-1].parts) else 2
        return reply(f'{{"reason": "By the facts.", "points": {points}}}')

    with registered("judge", judged):
        yield


def over(comparison: Comparison) -> Comparison:
    until(lambda: Comparison.objects.filter(pk=comparison.pk).exclude(state="running").exists())
    until(lambda: not Run.objects.filter(state=Run.State.RUNNING).exists())
    comparison.refresh_from_db()
    return comparison

"""Alice's suites, tried by the scripted model in the real engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from accounts.models import User
from agents.models import Agent
from evals.actions.evaluations import start_evaluation
from evals.actions.suites import create_suite, save_case
from evals.checks.spec import CaseSpec
from evals.models import Evaluation, Suite
from harness.agentconfig import AgentConfig
from tests.conversations.conftest import environment, make_agent, until
from tests.sandbox.conftest import needs_bubblewrap

__all__ = ["environment", "make_agent", "needs_bubblewrap"]

Try = Callable[..., Evaluation]


@pytest.fixture(autouse=True)
def with_what_is_tried(environment):
    """Every test here has somewhere to work, and ends with nothing under way."""


@pytest.fixture
def suite(alice, acme) -> Suite:
    made: Suite = create_suite(actor=alice, organisation=acme, name="Manners")
    return made


def spec(name: str = "greets", **given: Any) -> CaseSpec:
    body = {
        "name": name,
        "input": "Hello",
        "told_date": "2026-01-02",
        "script": {"replies": [{"say": "Good morning"}]},
        "checks": [{"type": "text", "all": ["morning"]}],
    }
    return CaseSpec.model_validate({**body, **given})


@pytest.fixture
def add_cases(alice: User, suite: Suite) -> Callable[..., Suite]:
    def add(*specs: CaseSpec) -> Suite:
        for each in specs or (spec(),):
            save_case(actor=alice, suite=suite, spec=each)
        return suite

    return add


@pytest.fixture
def agent(make_agent) -> Agent:
    made: Agent = make_agent("Clerk", instructions="Be polite.", provider="demo")
    return made


@pytest.fixture
def try_it(alice, suite, agent, environment) -> Try:
    """Start an evaluation by the scripts and wait for its end."""

    def begin(**given: Any) -> Evaluation:
        defaults = {
            "actor": alice,
            "suite": suite,
            "version": agent.current,
            "environment": environment,
            "scripted": True,
            "parallel": 2,
        }
        return ended(start_evaluation(**{**defaults, **given}))

    return begin


def ended(evaluation: Evaluation) -> Evaluation:
    until(lambda: Evaluation.objects.filter(pk=evaluation.pk).exclude(state="running").exists())
    evaluation.refresh_from_db()
    return evaluation


def states(evaluation: Evaluation) -> Sequence[str]:
    return list(evaluation.trials.order_by("id").values_list("state", flat=True))


def next_version(agent: Agent, **config: Any) -> Any:
    """Another version of the agent, which is not in use."""
    assert agent.current is not None
    stored = AgentConfig(**{**agent.current.stored_config, **config}).model_dump(mode="json")
    return agent.versions.create(number=agent.versions.count() + 1, stored_config=stored)

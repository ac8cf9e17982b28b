"""Alice's pipelines, whose agents play scripts in the real engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from accounts.models import Organisation, User
from agents.models import Environment
from conversations.models import Run
from pipelines.actions.definitions import save_pipeline
from pipelines.actions.runs import start_run
from pipelines.files import read_pipeline
from pipelines.graph.spec import PipelineSpec
from pipelines.models import PipelineRun, PipelineVersion
from pipelines.shipped import example_pipelines
from spending.models import ModelPrice
from tests.conversations.conftest import environment, make_agent, until

__all__ = ["environment", "make_agent"]

Start = Callable[..., PipelineRun]
EXAMPLE = "reviewed-answer"
QUESTION = "How high are two towers?"


@pytest.fixture(autouse=True)
def with_what_works(environment):
    """Every test here has somewhere to work, and ends with nothing under way."""


@pytest.fixture
def worker(make_agent):
    return make_agent("General work", provider="demo", instructions="Work well.")


def spec_of(*steps: dict[str, Any], **more: Any) -> PipelineSpec:
    return PipelineSpec.model_validate(
        {"name": "Line", "agent": "General work", "steps": list(steps), **more}
    )


def step(name: str, *script: str, **more: Any) -> dict[str, Any]:
    said = {"prompt": "Do it: {{question}}", "script": list(script) or [f"{name} is done."]}
    return {"name": name, **said, **more}


@pytest.fixture
def example(alice: User, acme: Organisation, worker) -> PipelineVersion:
    return save_pipeline(
        actor=alice, organisation=acme, spec=read_pipeline(example_pipelines()[EXAMPLE])
    )


@pytest.fixture
def start(alice: User, acme: Organisation, environment: Environment, worker) -> Start:
    """Save a pipeline of these steps and start it, by its scripts."""

    def begin(*steps: dict[str, Any], scripted: bool = True, **more: Any) -> PipelineRun:
        version = save_pipeline(actor=alice, organisation=acme, spec=spec_of(*steps, **more))
        return start_run(
            actor=alice,
            pipeline=version.pipeline,
            question=QUESTION,
            environment=environment,
            scripted=scripted,
        )

    return begin


def ended(run: PipelineRun) -> PipelineRun:
    until(lambda: PipelineRun.objects.filter(pk=run.pk).exclude(state="running").exists())
    # Its steps have said all; their runs come to an end right behind that.
    until(lambda: not Run.objects.filter(state=Run.State.RUNNING).exists())
    run.refresh_from_db()
    return run


def names(run: PipelineRun) -> list[str]:
    return list(run.steps.order_by("place").values_list("name", flat=True))


def asked(run: PipelineRun, place: int) -> str:
    """What the step there was asked."""
    conversation = run.steps.get(place=place).conversation
    row = conversation.events.get(type="user.message")
    return "".join(part["text"] for part in row.payload["content"])


@pytest.fixture
def prices() -> None:
    """Scripts cost something."""
    million = dict.fromkeys(("input", "output", "cache_write", "cache_read"), 1_000)
    ModelPrice.objects.create(provider="scripted", model="", **million)

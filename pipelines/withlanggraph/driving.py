"""Has LangGraph say what is due of a run: it goes on at its last checkpoint with how the last step ended."""

from __future__ import annotations

from collections.abc import Sequence

from langgraph.types import Command
from langsmith.run_helpers import tracing_context

from pipelines.graph.following import Done, Ends, Go, most_steps, rules_that_hold
from pipelines.models import PipelineRun

from .building import build, due
from .saving import TableSaver


def following(run: PipelineRun, steps: Sequence[Done]) -> Go | Ends:
    """What is due once all of these have ended. Needs the transaction in which it is begun, under the run's
    lock: the checkpoint and the step stand together or not at all."""
    spec = run.version.spec
    saver = TableSaver(run)
    graph = build(spec).compile(checkpointer=saver)
    config = saver.config()
    config["recursion_limit"] = most_steps(spec) + 2
    if steps and saver.is_empty:
        raise RuntimeError(f"run {run.uid} has steps and no checkpoint")
    last = steps[-1] if steps else None
    told = {
        "usable": last is not None and last.outcome is not None,
        "final": last is not None and last.final,
        "holds": rules_that_hold(spec, steps),
    }
    with tracing_context(enabled=False):  # whatever the environment says: nothing is sent anywhere
        found = graph.invoke(Command(resume=told) if steps else {"trail": []}, config)
    saver.store()
    asked = found.get("__interrupt__")
    if asked:
        return Go(asked[0].value["step"], asked[0].value["came_by"])
    led = due(spec, found["trail"])
    return led if isinstance(led, Ends) else Ends()

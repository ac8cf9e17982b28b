"""A pipeline's definition as a graph of LangGraph: a node for each step, an edge for each rule.

A node does nothing itself: it interrupts with the step that is due, and goes on with what came of that. So
LangGraph holds no word of anybody's, waits in no process, and its checkpoints are small.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt

from pipelines.graph.following import Done, Ends, Go, Outcome, following
from pipelines.graph.spec import END as TO_END
from pipelines.graph.spec import FAIL, PipelineSpec, StepSpec, rules_of


class Came(TypedDict):
    """What came of one step, as far as edges look at it."""

    name: str
    came_by: str
    usable: bool
    final: bool
    holds: list[bool]
    """Of each of its rules."""


class State(TypedDict):
    trail: Annotated[list[Came], operator.add]
    """One for each time that a step was come to: a loop is counted by it."""


def build(spec: PipelineSpec) -> StateGraph[State]:
    graph = StateGraph(State)
    for step in spec.steps:
        graph.add_node(step.name, _node(spec, step))
        graph.add_conditional_edges(step.name, _edges(spec), _targets(spec, step))
    graph.add_edge(START, spec.steps[0].name)
    return graph


def due(spec: PipelineSpec, trail: list[Came]) -> Go | Ends:
    """What the edges behind the last of these lead to."""
    done = [
        Done(
            came["name"],
            came["came_by"],
            Outcome() if came["usable"] else None,
            final=came["final"],
        )
        for came in trail
    ]
    return following(spec, done, holds=trail[-1]["holds"] if trail else ())


def _node(spec: PipelineSpec, step: StepSpec) -> Callable[[State], dict[str, Any]]:
    def wait(state: State) -> dict[str, Any]:
        led = due(spec, state["trail"])
        came_by = led.came_by if isinstance(led, Go) else ""
        said = interrupt({"step": step.name, "came_by": came_by})
        came = Came(
            name=step.name,
            came_by=came_by,
            usable=said["usable"],
            final=said["final"],
            holds=said["holds"],
        )
        return {"trail": [came]}

    return wait


def _edges(spec: PipelineSpec) -> Callable[[State], str]:
    def lead(state: State) -> str:
        led = due(spec, state["trail"])
        return led.name if isinstance(led, Go) else END

    return lead


def _targets(spec: PipelineSpec, step: StepSpec) -> list[str]:
    targets = [END if rule.to in {TO_END, FAIL} else rule.to for rule in rules_of(spec, step.name)]
    again = [step.name] if step.tries > 1 else []
    return list(dict.fromkeys([*targets, *again, END]))

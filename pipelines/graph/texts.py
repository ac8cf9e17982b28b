"""What a step is asked: its prompt with the question and earlier answers in their places. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from prompts.filling import filled, places_in

from .checking import PROBLEM, QUESTION, TASK, TRY
from .spec import STRANDS, PipelineSpec, StepSpec

ANSWER_LIMIT = 20_000
"""Characters of an answer that a later prompt repeats."""


def template_of(step: StepSpec, *, times: int) -> str:
    """Which of its texts it is asked with, when it is asked for the `times`-th time."""
    if step.approval:
        return step.approval
    return step.again if times > 1 and step.again.strip() else step.prompt


def asked(
    spec: PipelineSpec,
    step: StepSpec,
    *,
    question: str,
    answers: Mapping[str, str],
    times: int,
    problem: str = "",
    task: str = "",
) -> str:
    """Of a step that has not run the place stays empty; what is filled in is not read again."""
    known = {each.name: bounded(answers.get(each.name, "")) for each in spec.steps}
    known |= {QUESTION: question, TRY: str(times), PROBLEM: problem}
    if spec.engine == STRANDS:
        known[TASK] = task
    return filled(template_of(step, times=times), (), {}, known)


def steps_in(spec: PipelineSpec, step: StepSpec, *, times: int) -> set[str]:
    """The steps whose answers its text repeats."""
    names = {each.name for each in spec.steps}
    return names & set(places_in(template_of(step, times=times)))


def bounded(text: str, limit: int = ANSWER_LIMIT) -> str:
    if len(text) <= limit:
        return text
    left = len(text) - limit
    return f"{text[:limit]}\n[{left:,} characters are left out here.]"

"""What the steps of a model-driven pipeline are asked: its orchestrator with what was asked and answered by
now, a specialist with its task. Which of it, and in which order, says who drives it; the words stand in our
logs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.conf import settings

from conversations.forgetting import BEGINNING
from prompts.filling import filled

from .graph.answers import ASK, tasks_in
from .graph.checking import QUESTION
from .graph.following import RETRY, Go
from .graph.spec import PipelineSpec
from .graph.texts import ANSWER_LIMIT, asked, bounded, steps_in
from .models import PipelineRun, StepRun
from .standing import answer_of, last_answers

HOW = """\
You can have specialists work for you. Each knows nothing but what you tell it{more}:

{specialists}

To ask some of them, answer with JSON alone, and with nothing else: \
{{"{ask}": [{{"specialist": "{first}", "task": "what it is to do"}}]}}. They work one after another, and you \
are asked again with what they said. Whatever else you answer is the final answer."""


@dataclass(frozen=True, slots=True)
class Asking:
    text: str
    repeated: tuple[StepRun, ...]
    """The steps whose words it repeats."""


def asking(run: PipelineRun, steps: Sequence[StepRun], due: Go, *, times: int) -> Asking:
    """`due`, which is told references, as the step is asked for the `times`-th time."""
    spec = run.version.spec
    problem = steps[-1].problem if due.came_by == RETRY else ""
    if due.name == spec.steps[0].name:
        return _orchestrator(run, spec, steps, due, problem)
    place, number = _call(due.told[0])
    caller = steps[place - 1]
    said = last_answers(step for step in steps if step.name != spec.steps[0].name)
    known = {name: answer_of(step) for name, step in said.items()}
    text = asked(
        spec,
        spec.step(due.name),
        question=run.question,
        answers=known,
        times=times,
        problem=problem,
        task=caller.outcome["calls"][number]["task"],
    )
    names = steps_in(spec, spec.step(due.name), times=times)
    others = (step for name, step in said.items() if name in names)
    return Asking(text, (caller, *others))


def _orchestrator(
    run: PipelineRun, spec: PipelineSpec, steps: Sequence[StepRun], due: Go, problem: str
) -> Asking:
    prompt = filled(spec.steps[0].prompt, (), {}, {QUESTION: run.question})
    parts, repeated = [prompt, how(spec)], dict[int, StepRun]()
    told = [each for each in due.told if each != QUESTION]
    room = settings.AGENTSITE_MESSAGE_CHARACTERS // 2
    share = max(BEGINNING, min(ANSWER_LIMIT, room // max(1, len(told))))
    for each in told:
        place, number = _call(each) if each.startswith("call:") else (_answer(each), None)
        step = steps[place - 1]
        repeated[step.place] = step
        if number is not None:
            call = step.outcome["calls"][number]
            parts.append(f"You asked {call['to']}:\n{bounded(call['task'], share)}")
        elif step.state == StepRun.State.DONE:
            parts.append(f"{step.name} answered:\n{bounded(answer_of(step), share)}")
        else:
            parts.append(f"{step.name} came to no answer: {step.problem}")
    if problem:
        parts.append(f"Your last answer could not be used: {problem}")
    return Asking("\n\n".join(parts), tuple(repeated.values()))


def how(spec: PipelineSpec) -> str:
    specialists = "\n".join(f"- {each.name}: {each.about}" for each in spec.steps[1:])
    reads_question = any("{{question}}" in each.prompt for each in spec.steps[1:])
    return HOW.format(
        specialists=specialists,
        ask=ASK,
        first=spec.steps[1].name,
        more=" and the question" if reads_question else "",
    )


def said_by(step: StepRun, text: str) -> list[str]:
    """What others may repeat of what it answered: that itself, and each task in it."""
    return [text, *(tasks_in(text) if step.is_orchestrator else ())]


def readable(step: StepRun, text: str) -> str:
    """Its answer for people: whom it asks for what, where it does."""
    calls: Sequence[Mapping[str, str]] = step.outcome.get("calls", ())
    return "\n\n".join(f"**{call['to']}**: {call['task']}" for call in calls) or text


def _call(reference: str) -> tuple[int, int]:
    place, _dot, number = reference.removeprefix("call:").partition(".")
    return int(place), int(number)


def _answer(reference: str) -> int:
    return int(reference.removeprefix("answer:"))

"""What the steps of a run said and read, from their logs, and whether one of them rests."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.utils.translation import gettext as _

from conversations.branches import counting
from conversations.judging import history_of
from conversations.models import Conversation, Event
from harness.content import text_of
from harness.events import (
    WAITS_FOR_WORKER,
    AgentMessage,
    SessionStatusIdle,
)

from .graph.texts import asked
from .models import PipelineRun, StepRun


@dataclass(frozen=True, slots=True)
class Rest:
    """How the conversation of a step stands that works no more."""

    ended: bool
    """Else it waits: for somebody's answer, for money, for a service that is away."""
    interrupted: bool = False
    words: str = ""
    """What it waits for."""


def rest_of(conversation: Conversation) -> Rest | None:
    """None: it is at work, or about to be."""
    if conversation.status == Conversation.Status.TERMINATED:
        return Rest(ended=True, interrupted=True)
    if conversation.status != Conversation.Status.IDLE or not conversation.stop_reason:
        return None
    if conversation.stop_reason == WAITS_FOR_WORKER:
        return None
    if conversation.owes_run:
        return None
    row = counting(conversation).filter(type="session.status_idle").order_by("-seq").first()
    value = row.value if row is not None else None
    if not isinstance(value, SessionStatusIdle):
        return None
    if value.interrupted:
        return Rest(ended=True, interrupted=True)
    if conversation.stop_reason == "requires_action":
        return Rest(ended=False, words=_("A call of its agent waits for an answer."))
    if conversation.has_stopped_short:
        details = value.stop_details
        words = details.message if details is not None else ""
        return Rest(ended=False, words=words or _("It stopped short."))
    return Rest(ended=True)


def answer_of(step: StepRun) -> str:
    """The agent's last words in the step, or the person's who decided."""
    if step.conversation_id is None or step.conversation is None:
        return step.comment or str(step.outcome.get("word", ""))
    row = answering_event(step)
    value = row.value if row is not None else None
    return text_of(value.content) if isinstance(value, AgentMessage) else ""


def answering_event(step: StepRun) -> Event | None:
    if step.conversation is None:
        return None
    said = counting(step.conversation).filter(type="agent.message")
    if step.ended_seq:
        said = said.filter(seq__lte=step.ended_seq)
    return said.order_by("-seq").first()


def last_answers(steps: Iterable[StepRun]) -> dict[str, StepRun]:
    """By name the last time that each step came to something, also if that could not be used: what is done
    anew takes the place of what it was before."""
    return {step.name: step for step in steps if not step.is_open}


def brought_by(steps: Iterable[StepRun]) -> str:
    """What strangers' words these answers may hold, in words; empty: none."""
    found: dict[str, None] = {}
    for step in steps:
        if step.conversation is not None and (
            source := history_of(step.conversation).read_anywhere
        ):
            found[f"{source}, by way of the step {step.name}"] = None
        elif step.conversation is None and step.asked_event:
            found[
                f"nobody knows what, by way of the step {step.name}, whose words were deleted"
            ] = None
    return "; ".join(found)[:500]


def text_for(run: PipelineRun, steps: Iterable[StepRun], name: str, times: int) -> str:
    """What the step is asked when it is come to for the `times`-th time."""
    spec = run.version.spec
    before = last_answers(steps)
    own = before.get(name)
    return asked(
        spec,
        spec.step(name),
        question=run.question,
        answers={each: answer_of(step) for each, step in before.items()},
        times=times,
        problem=own.problem if own is not None and own.state == StepRun.State.FAILED else "",
    )


def final_answer(run: PipelineRun, steps: Iterable[StepRun]) -> StepRun | None:
    """The step whose answer is the run's, as far as it has come."""
    wanted = run.version.spec.answering
    return next(
        (
            step
            for step in reversed(list(steps))
            if step.name == wanted
            and step.state == StepRun.State.DONE
            and not step.outcome.get("calls")
        ),
        None,
    )

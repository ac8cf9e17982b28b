"""Takes out of runs of pipelines what was taken out of the conversations of their steps, and finds where the
logs of other steps say the same: a step is asked with the question and with what others answered.

Where it may stand is known by ids; which of it is a copy, by the words, since a prompt says more besides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from conversations.forgetting import Place, Removed, repeats
from conversations.models import Event
from harness.content import text_of
from harness.events import AgentMessage, UserMessage
from harness.redacted import REMOVED

from .graph.texts import steps_in
from .models import PipelineRun, StepRun
from .orchestrating import said_by
from .standing import answering_event


def forget(removed: Removed) -> None:
    asked = {uid: text_of(event.content) for uid, event in removed.of(UserMessage).items()}
    answered = bool(removed.of(AgentMessage))
    for step in StepRun.objects.filter(conversation=removed.conversation):
        if answered:
            _forget_fields(step)
        text = asked.get(step.asked_event, "")
        if not text:
            continue
        # Who begins the next step waits for the run's conversation; a decision is made under this lock.
        run = PipelineRun.objects.select_for_update(of=("self",)).get(pk=step.run_id)
        if repeats(text, [run.question]):
            run.question = REMOVED
            run.save(update_fields=["question"])
        for decided in StepRun.objects.filter(run=run).exclude(comment=""):
            if repeats(text, [decided.comment]):
                decided.comment = REMOVED
                decided.save(update_fields=["comment"])


def _forget_fields(step: StepRun) -> None:
    """Texts of its JSON; a number is none of anybody's words, and a rule may look at it still."""
    calls = step.outcome.get("calls")
    if calls:
        step.outcome = {**step.outcome, "calls": [{**call, "task": REMOVED} for call in calls]}
        step.save(update_fields=["outcome"])
    fields = step.outcome.get("fields", {})
    if any(isinstance(value, str) for value in fields.values()):
        kept = {name: REMOVED if isinstance(v, str) else v for name, v in fields.items()}
        step.outcome = {**step.outcome, "fields": kept}
        step.save(update_fields=["outcome"])


def said_elsewhere(removed: Removed) -> Iterator[Place]:
    asked = {uid: text_of(event.content) for uid, event in removed.of(UserMessage).items()}
    answers = [text_of(event.content) for event in removed.of(AgentMessage).values()]
    steps = StepRun.objects.filter(conversation=removed.conversation)
    for step in steps.select_related("run__version"):
        text = asked.get(step.asked_event, "")
        said = [each for answer in answers for each in said_by(step, answer)]
        if not text and not said:
            continue
        others = list(
            StepRun.objects.filter(run=step.run_id)
            .exclude(pk=step.pk)
            .exclude(conversation=None)
            .select_related("conversation", "run__version")
        )
        yield from _asked_with(others, said)
        if text:
            if repeats(text, [step.run.question]):
                yield from _asked_with(others, [step.run.question])
            yield from _told_why(step, others, text)
            yield from _answered(others, text)


def _told_why(step: StepRun, others: Iterable[StepRun], text: str) -> Iterator[Place]:
    """Other steps whose prompts repeat what a person who decided said, where this one does."""
    for decided in StepRun.objects.filter(run=step.run_id).exclude(comment=""):
        if decided.name in _repeated(step) and repeats(text, [decided.comment]):
            told = [each for each in others if decided.name in _repeated(each)]
            yield from _asked_with(told, [decided.comment])


def _repeated(step: StepRun) -> set[str]:
    """The steps whose answers its prompt has a place for."""
    spec = step.run.version.spec
    return steps_in(spec, spec.step(step.name), times=step.times)


def _asked_with(steps: Iterable[StepRun], said: list[str]) -> Iterator[Place]:
    """Other steps whose prompts repeat one of these."""
    for step in steps:
        row = Event.objects.filter(conversation=step.conversation_id, uid=step.asked_event).first()
        value = row.value if row is not None else None
        if step.conversation is None or not isinstance(value, UserMessage):
            continue
        if repeats(text_of(value.content), said):
            yield step.conversation, step.asked_event


def _answered(steps: Iterable[StepRun], text: str) -> Iterator[Place]:
    """Steps whose answer this prompt repeats."""
    for step in steps:
        row = answering_event(step)
        value = row.value if row is not None else None
        if step.conversation is None or row is None or not isinstance(value, AgentMessage):
            continue
        if repeats(text, said_by(step, text_of(value.content))):
            yield step.conversation, row.subject

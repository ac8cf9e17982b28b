"""Takes out of comparisons what was taken out of their conversations, and finds where the others say the
same: each is asked the same question, and a judge is shown it with an answer.

Which of it is a copy is known by the words, since a judge is told more besides.
"""

from __future__ import annotations

from collections.abc import Iterator

from django.db.models import Q, QuerySet

from conversations.forgetting import Place, Removed, repeats
from conversations.models import Conversation, Event
from harness.content import text_of
from harness.events import AgentMessage, UserMessage
from harness.redacted import REMOVED
from pipelines.models import PipelineRun, StepRun

from .models import Comparison, Entry


def forget(removed: Removed) -> None:
    texts = [text_of(event.content) for event in removed.of(UserMessage).values()]
    for entry in _entries(removed.conversation):
        held = Comparison.objects.select_for_update(of=("self",)).get(pk=entry.comparison_id)
        if any(repeats(text, [held.question]) for text in texts):
            _forget_question(held)


def _forget_question(comparison: Comparison) -> None:
    """In the runs of pipelines as well: where no step was asked with it by now, no log says it."""
    runs = PipelineRun.objects.select_for_update(of=("self",)).filter(
        compared__comparison=comparison, question=comparison.question
    )
    for run in runs.order_by("pk"):
        run.question = REMOVED
        run.save(update_fields=["question"])
    comparison.question = REMOVED
    comparison.save(update_fields=["question"])


def said_elsewhere(removed: Removed) -> Iterator[Place]:
    asked = [text_of(event.content) for event in removed.of(UserMessage).values()]
    said = [text_of(event.content) for event in removed.of(AgentMessage).values()]
    if not asked and not said:
        return
    for entry in _entries(removed.conversation):
        others = Entry.objects.filter(comparison=entry.comparison_id).select_related(
            "conversation", "judge", "run"
        )
        # The entry's own log says it no more.
        questions = {each for other in others for each in _question_of(other)}
        known = [each for each in questions if any(repeats(text, [each]) for text in asked)]
        for other in others:
            yield from _asking(other, known)
            yield from _judging(other, said)


def _entries(conversation: Conversation) -> QuerySet[Entry]:
    """Of which it is the agent's or a step's. What a judge was told is made of these, and nothing of it."""
    steps = StepRun.objects.filter(conversation=conversation).values("run")
    return Entry.objects.filter(Q(conversation=conversation) | Q(run__in=steps))


def _question_of(entry: Entry) -> Iterator[str]:
    """As the run of a pipeline keeps it, or the message to an agent says it."""
    if entry.run is not None and entry.run.question != REMOVED:
        yield entry.run.question
    if entry.conversation is not None:
        row = Event.objects.filter(conversation=entry.conversation, uid=entry.asked_event).first()
        value = row.value if row is not None else None
        if isinstance(value, UserMessage) and (text := text_of(value.content)) != REMOVED:
            yield text


def _asking(entry: Entry, words: list[str]) -> Iterator[Place]:
    """Where the entry, or its judge, was told these."""
    yield from _told(entry.conversation, words)
    yield from _judging(entry, words)
    if entry.run is not None:
        steps = StepRun.objects.filter(run=entry.run).exclude(conversation=None)
        for step in steps.select_related("conversation"):
            yield from _told(step.conversation, words)


def _judging(entry: Entry, words: list[str]) -> Iterator[Place]:
    """With what its judge said, which may quote them."""
    told = list(_told(entry.judge, words))
    yield from told
    if told and entry.judge is not None:
        for row in Event.objects.filter(conversation=entry.judge, type="agent.message"):
            yield entry.judge, row.subject


def _told(conversation: Conversation | None, words: list[str]) -> Iterator[Place]:
    if conversation is None or not words:
        return
    row = Event.objects.filter(conversation=conversation, type="user.message").first()
    value = row.value if row is not None else None
    if row is None or not isinstance(value, UserMessage):
        return
    if repeats(text_of(value.content), words):
        yield conversation, row.subject

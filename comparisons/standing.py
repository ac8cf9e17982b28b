"""What an entry of a comparison has answered, from the logs."""

from __future__ import annotations

from conversations.branches import counting
from conversations.models import Event
from harness.content import text_of
from harness.events import AgentMessage
from pipelines.models import StepRun
from pipelines.standing import answer_of as answer_of_step
from pipelines.standing import final_answer

from .models import Entry


def answer_of(entry: Entry) -> str:
    """As far as it has come; empty: nothing."""
    if entry.run is not None:
        step = final_step(entry)
        return answer_of_step(step) if step is not None else ""
    row = answering_event(entry)
    value = row.value if row is not None else None
    return text_of(value.content) if isinstance(value, AgentMessage) else ""


def final_step(entry: Entry) -> StepRun | None:
    """Of a pipeline, the step whose answer is its own."""
    if entry.run is None:
        return None
    return final_answer(entry.run, entry.run.steps.select_related("conversation").order_by("place"))


def answering_event(entry: Entry) -> Event | None:
    """Of an agent; a pipeline's answers are its steps'."""
    if entry.conversation is None:
        return None
    said = counting(entry.conversation).filter(type="agent.message")
    if entry.ended_seq:
        said = said.filter(seq__lte=entry.ended_seq)
    return said.order_by("-seq").first()

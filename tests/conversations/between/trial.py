"""One trial: a scenario is played, outsiders act at a moment or two, and life goes on to the end."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from conversations import claims
from conversations.models import Wake
from conversations.wakes import wake
from harness.history import History
from jobs.engine import engine
from tests.patience import PATIENCE
from workers.models import HandedCall

from . import people
from .moments import When
from .people import Act, World
from .scenarios import Scenario
from .verdict import at_end, at_rest, rows_of

STEPS = 14
"""What people do at most before a conversation counts as endless."""

ALLOWING = (people.allow, people.allow_edited, people.allow_for_longer)
OTHERS = (people.allow, people.allow_as_reviewer, people.allow_as_another_reviewer)


@dataclass(frozen=True)
class Point:
    """Something is done at one moment of a scenario."""

    append: int
    when: When
    act: Act

    def __str__(self) -> str:
        return f"{self.act.__name__} {self.when} append {self.append}"


def play(scenario: Scenario, world: World) -> list[str]:
    """Go on, as people who look would, until nothing waits; what is wrong, in words."""
    if scenario.rules:
        people.want_two_people(world)
    for text in scenario.messages:
        people.say(world, text)
    for _ in range(STEPS):
        if unsettled := _unsettled():
            return [f"after {PATIENCE:.0f} s something is still under way: {unsettled}"]
        if world.has_died:
            # As the sweep does, which finds what a process left.
            world.has_died = False
            for pk in claims.lost_conversations():
                wake(pk)
            continue
        if problems := list(at_rest(world)):
            return problems
        step = _next_step(world)
        if step is None:
            return list(at_end(world))
        known_seq = world.conversation.last_seq
        if not _take(step, scenario, world) and _last_seq(world) == known_seq:
            return [f"nobody may {step.__name__}: {world.declined}"]
    return ["people are asked for ever"]


def _last_seq(world: World) -> int:
    """Where others were faster, declining somebody is no fault."""
    world.conversation.refresh_from_db()
    return world.conversation.last_seq


def _unsettled() -> str:
    """Wait until nothing is under way in this process; what still is."""
    try:
        engine.submit(partial(engine.settle, PATIENCE)).result()
    except TimeoutError as problem:
        return str(problem) or "its loop does not answer"
    return ""


def _take(step: Act, scenario: Scenario, world: World) -> bool:
    if step is people.worker_answers and scenario.worker_vanishes and not world.vanished:
        step = people.worker_vanishes
    if step is people.allow and scenario.edits and not world.edited:
        step = people.allow_edited
    if step is people.allow and scenario.for_longer:
        step = people.allow_for_longer
    return any(world.attempt(each) for each in (step, *(OTHERS if step in ALLOWING else ())))


def _next_step(world: World) -> Act | None:
    conversation = world.conversation
    conversation.refresh_from_db()
    history = History(row.entry() for row in rows_of(world))
    if conversation.status == "rescheduling":
        return people.time_passes
    if any(card.asks and not card.questions for card in world.cards()):
        return people.allow
    if any(call.use.type == "agent.custom_tool_use" for call in history.unanswered()):
        return people.answer_for_program
    if HandedCall.objects.filter(conversation=conversation).exists():
        return people.worker_answers
    if conversation.stop_reason == "budget_reached":
        return people.raise_budget
    if conversation.has_stopped_short:
        return people.retry
    if Wake.objects.waiting().filter(conversation=conversation).exists():
        return people.time_passes
    return None

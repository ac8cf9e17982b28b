"""A lead and a subagent below it, and what outsiders do to either at a moment of a run of either.

What holds of a conversation by itself is `verdict`'s; here it is what holds between the two.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from conversations.judging import history_of
from conversations.models import Conversation, Event, Run
from harness.content import Text
from harness.events import AgentToolUse, BackgroundFinished, InputTaken, UserMessage
from harness.messages import ModelRequest, ToolAnswer
from jobs.engine import engine
from providers.scripted import Answer, call, reply
from subagents.models import Subagent
from tests.patience import PATIENCE

from . import people
from .people import Act, World
from .scenarios import OVER, THIS, ran
from .trial import OTHERS, STEPS
from .verdict import at_rest

BELOW = "Do it below."
ACTS: tuple[Act, ...] = (
    people.interrupt,
    people.say_more,
    people.say_more_at_once,
    people.allow,
    people.deny,
    people.lower_budget,
    people.raise_budget,
    people.retry,
)
"""Stop, message, approve, budgets: of the one above, and of the one below."""


@dataclass(frozen=True)
class Deed:
    """An act done to the lead, or to the subagent once there is one."""

    below: bool
    act: Act

    def __str__(self) -> str:
        return f"{self.act.__name__} {'below' if self.below else 'above'}"

    def do(self, world: World) -> None:
        target = child_of(world) if self.below else world
        if target is not None:
            target.attempt(self.act)


DEEDS = tuple(Deed(below, act) for below in (False, True) for act in ACTS)


def script(background: bool, request: ModelRequest) -> Answer:
    parts = [part for message in request.messages for part in message.parts]
    below = any(isinstance(part, Text) and part.text.startswith(BELOW) for part in parts)
    if any(isinstance(part, ToolAnswer) for part in parts):
        return reply(OVER)
    if below:
        return reply(call("act", **THIS))
    given: dict[str, Any] = {"description": "A piece", "prompt": BELOW, "background": background}
    return reply(call("subagent", **given))


def child_of(world: World) -> World | None:
    found = Conversation.objects.filter(parent=world.conversation).first()
    return None if found is None else replace(world, conversation=found, declined=[])


def play_family(world: World) -> list[str]:
    """Go on, as people who look would, until nothing waits; what is wrong, in words."""
    people.say(world, "Go.")
    for _ in range(STEPS):
        try:
            engine.submit(partial(engine.settle, PATIENCE)).result()
        except TimeoutError as problem:
            return [f"something is still under way: {problem}"]
        child = child_of(world)
        if child is not None and (problems := list(at_rest(child))):
            return [f"below: {each}" for each in problems]
        step = _next_step(world, child)
        if step is None:
            return list(_at_end(world, child))
        if not step():
            return [f"nobody may go on: {world.declined} {child.declined if child else ''}"]
    return ["people are asked for ever"]


def _next_step(world: World, child: World | None) -> Any:
    for each in (child, world):
        if each is None:
            continue
        each.conversation.refresh_from_db()
        if any(card.asks for card in each.cards()):
            return partial(_any_of, each, (people.allow, *OTHERS))
    everybody = [each for each in (world, child) if each is not None]
    for each in everybody:
        if each.conversation.stop_reason == "budget_reached":
            return partial(_given_room, everybody)
    return None


def _given_room(everybody: Sequence[World]) -> bool:
    """Whose budget it was that was reached does not matter. Who goes on by itself needs no retry."""
    for each in everybody:
        people.raise_budget(each)
    for each in everybody:
        each.attempt(people.retry)
    return True


def _any_of(world: World, acts: tuple[Act, ...]) -> bool:
    return any(world.attempt(act) for act in acts)


def _at_end(world: World, child: World | None) -> Iterator[str]:
    lead = world.conversation
    everybody = [each.conversation for each in (world, child) if each is not None]
    for each in everybody:
        yield from _of_a_log(each)
    if Run.objects.filter(conversation__in=everybody, state=Run.State.RUNNING).exists():
        yield "somebody runs for ever"
    if history_of(lead).turn.reserved:
        yield "tokens are held for somebody who has ended"
    rows = Subagent.objects.filter(parent=lead)
    if rows.live().exists() or rows.filter(told_at=None).exists():
        yield f"subagents were left: {list(rows.values_list('state', 'told_at'))}"
    log = list(Event.objects.filter(conversation=lead).order_by("seq"))
    kinds = Counter((row.subject, row.type) for row in log)
    for row in log:
        if isinstance(row.value, AgentToolUse) and kinds[row.uid, "agent.tool_result"] != 1:
            yield f"a call has {kinds[row.uid, 'agent.tool_result']} answers"
    for one in rows:
        begun, ended = (kinds[one.call_uid, f"x.subagent_{how}"] for how in ("started", "ended"))
        if begun > 1 or ended > 1 or begun > ended:
            yield f"a subagent began {begun} times and ended {ended} times"
        announced = [v for row in log if isinstance(v := row.value, BackgroundFinished)]
        if one.background and begun and len(announced) != 1:
            yield f"the end of one in the background was announced {len(announced)} times"
    if repeated := [uid for uid, times in Counter(uid for uid, _given in ran).items() if times > 1]:
        yield f"{repeated} ran more than once"


def _of_a_log(conversation: Conversation) -> Iterator[str]:
    conversation.refresh_from_db()
    if conversation.status != Conversation.Status.IDLE or conversation.queued_count:
        yield f"it ended {conversation.status} with {conversation.queued_count} that wait"
    rows = list(Event.objects.filter(conversation=conversation).order_by("seq"))
    taken = Counter(
        uid for row in rows if isinstance(v := row.value, InputTaken) for uid in v.event_ids
    )
    withdrawn = {row.subject for row in rows if row.type == "x.message_withdrawn"}
    for row in rows:
        waited = isinstance(row.value, UserMessage | BackgroundFinished)
        if waited and taken[row.uid] + (row.uid in withdrawn) != 1:
            yield f"{row.type} was taken {taken[row.uid]} times"

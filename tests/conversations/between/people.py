"""What outsiders may do at any moment, each through the action that every door calls.

Somebody who may not at this moment is declined, which is as good an outcome as any.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.utils import timezone

from accounts.models import User
from approvals.actions.approvals import decide_approval, expire_approvals
from approvals.actions.rules import revoke_rule, save_rule
from approvals.models import Approval, PolicyRule
from chat.presentation.calls import Card, card_of
from conversations.actions.answers import answer_custom_tool
from conversations.actions.conversations import archive_conversation
from conversations.actions.deciding import decide_call
from conversations.actions.messages import (
    post_message,
    request_retry,
    set_feature,
    steer_message,
    stop,
    withdraw_message,
)
from conversations.models import Conversation, Event, Run, Wake
from conversations.wakes import wake
from harness.content import as_blocks
from harness.errors import Declined, LeaseLost
from harness.events import AgentCustomToolUse, ToolUse
from spending.actions.budgets import set_budget
from spending.models import Budget
from workers import items as work
from workers.actions.items import (
    acknowledge_work,
    give_tool_result,
    heartbeat_work,
    poll_work,
    stop_work,
)
from workers.models import EnvironmentKey, WorkItem

from .scenarios import THAT, Scenario

Act = Callable[["World"], None]


@dataclass
class World:
    """One conversation and those around it."""

    conversation: Conversation
    alice: User
    rita: User
    otto: User
    """She and he review for the organisation."""
    staff: User
    key: EnvironmentKey | None = None
    item: WorkItem | None = None
    """What a worker holds."""
    has_died: bool = False
    """A process has, and nobody has looked after what it left."""
    declined: list[str] = field(default_factory=list)
    edited: bool = False
    vanished: bool = False
    """A worker has been lost."""
    told: set[tuple[str, int]] = field(default_factory=set)
    """The calls that a worker was told of, with the number of the event that handed each out."""

    def attempt(self, act: Act) -> bool:
        """Whether it was taken."""
        try:
            act(self)
        except Declined as refusal:
            self.declined.append(f"{act.__name__}: {refusal.code}")
            return False
        return True

    @property
    def mine(self) -> dict[str, Any]:
        return {"actor": self.alice, "conversation": self.conversation}

    def waiting(self) -> list[Approval]:
        found = Approval.objects.filter(conversation=self.conversation, state="pending")
        return list(found.order_by("id"))

    def cards(self) -> list[Card]:
        """As the page shows them."""
        rows = Event.objects.filter(conversation=self.conversation).order_by("seq")
        about: dict[str, list[Event]] = {}
        for row in rows:
            if isinstance(row.value, ToolUse):
                about[row.uid] = []
            if row.subject in about:
                about[row.subject].append(row)
        return [card_of(rows[0].value, rows) for rows in about.values()]  # type: ignore[arg-type]


def _answer(world: World, *, allow: bool, **more: Any) -> None:
    """By the page where it asks; else by what the queue shows or showed."""
    for card in world.cards():
        if card.asks and not card.questions:
            decide_call(
                **world.mine,
                call_uid=card.call,
                allow=allow,
                shown=card.shown,
                seen_round=card.round,
                **more,
            )
            return
    for approval in Approval.objects.filter(conversation=world.conversation).order_by("-id")[:1]:
        decide_approval(
            actor=world.alice,
            approval=approval,
            verdict="approve" if allow else "deny",
            input_hash=approval.effective_sha256,
            seen_round=approval.round,
            **more,
        )


def allow(world: World) -> None:
    _answer(world, allow=True)


def allow_as_reviewer(world: World) -> None:
    _allow_by_queue(world, world.rita)


def allow_as_another_reviewer(world: World) -> None:
    _allow_by_queue(world, world.otto)


def _allow_by_queue(world: World, who: User) -> None:
    """On what the page shows of the call."""
    cards = {card.call: card for card in world.cards()}
    for approval in world.waiting()[:1]:
        card = cards[approval.call_uid]
        decide_approval(
            actor=who,
            approval=approval,
            verdict="approve",
            input_hash=card.shown,
            seen_round=card.round,
        )


def deny(world: World) -> None:
    _answer(world, allow=False, reason="No.")


def deny_the_last(world: World) -> None:
    """Of several calls the one that the agent asked for last."""
    for approval in Approval.objects.filter(conversation=world.conversation).order_by("-id")[:1]:
        decide_approval(
            actor=world.rita, approval=approval, verdict="deny", input_hash="", reason="No."
        )


def allow_edited(world: World) -> None:
    given = {"command": "make all"} if world.key else THAT
    _answer(world, allow=True, edited_input=given)
    world.edited = True


def allow_for_longer(world: World) -> None:
    for approval in world.waiting()[:1]:
        decide_approval(
            actor=world.alice,
            approval=approval,
            verdict="approve",
            input_hash=approval.effective_sha256,
            scope="conversation",
            seen_round=approval.round,
        )


def expire(world: World) -> None:
    due = timezone.now() - timedelta(seconds=1)
    Approval.objects.filter(conversation=world.conversation, state="pending").update(expires_at=due)
    expire_approvals()


def say(world: World, text: str) -> None:
    post_message(**world.mine, text=text)


def say_more(world: World) -> None:
    say(world, "And this.")


def say_more_at_once(world: World) -> None:
    post_message(**world.mine, text="Rather this.", interrupt=True)


def steer(world: World) -> None:
    row = post_message(**world.mine, text="By the way.")
    steer_message(**world.mine, message_uid=row.uid)


def withdraw(world: World) -> None:
    rows = Event.objects.filter(conversation=world.conversation, type="user.message")
    withdraw_message(**world.mine, message_uid=rows.latest("seq").uid)


def interrupt(world: World) -> None:
    stop(**world.mine)


def retry(world: World) -> None:
    request_retry(**world.mine)


def answer_for_program(world: World) -> None:
    rows = Event.objects.filter(conversation=world.conversation, type="agent.custom_tool_use")
    for row in rows.order_by("seq"):
        assert isinstance(row.value, AgentCustomToolUse)
        answer_custom_tool(**world.mine, call_uid=row.uid, content="Seven.")


def switch_approval(world: World) -> None:
    world.conversation.refresh_from_db()
    on = world.conversation.features.approval
    set_feature(**world.mine, feature="approval", enabled=not on)


def switch_plan_mode(world: World) -> None:
    set_feature(**world.mine, feature="plan_mode", enabled=True)


def _rule(world: World, permission: str = "always_ask", **options: bool) -> None:
    rule: dict[str, Any] = {"tool": "bash" if world.key else "act", "permission": permission}
    if options:
        rule["options"] = options
    save_rule(actor=world.alice, level="conversation", conversation=world.conversation, rule=rule)


def want_two_people(world: World) -> None:
    _rule(world, two_people=True)


def want_somebody_else(world: World) -> None:
    _rule(world, requester_may_not_decide=True)


def forbid(world: World) -> None:
    _rule(world, "always_deny")


def revoke(world: World) -> None:
    for rule in PolicyRule.objects.filter(conversation=world.conversation).filter(revoked_at=None):
        revoke_rule(actor=world.alice, rule=rule)


def archive(world: World) -> None:
    archive_conversation(**world.mine, archived=True)


def raise_budget(world: World) -> None:
    set_budget(
        actor=world.staff,
        scope=Budget.Scope.CONVERSATION,
        conversation=world.conversation,
        unit="tokens",
        period="total",
        limit=10**9,
    )


def lower_budget(world: World) -> None:
    set_budget(
        actor=world.staff,
        scope=Budget.Scope.CONVERSATION,
        conversation=world.conversation,
        unit="tokens",
        period="total",
        limit=1,
    )


def time_passes(world: World) -> None:
    """What was to happen later is due."""
    due = timezone.now() - timedelta(seconds=1)
    if Wake.objects.waiting().filter(conversation=world.conversation).update(due_at=due):
        wake(world.conversation.pk)


def process_dies(world: World) -> None:
    """That of the run under way, if one is."""
    held = Run.objects.filter(conversation=world.conversation, state=Run.State.RUNNING)
    if held.update(state=Run.State.LOST):
        world.has_died = True
        raise LeaseLost("The process died.")


def worker_takes(world: World) -> None:
    if world.key is None:
        return
    if world.item is None or not work.holds(world.item):
        offered = poll_work(key=world.key, worker="one", reclaim_after=timedelta(seconds=5))
        if offered is None:
            return
        world.item = acknowledge_work(holder=world.key, item=offered.item)
        heartbeat_work(holder=world.item, item=world.item)
    _hear(world, world.item)


def _hear(world: World, item: WorkItem) -> Iterable[str]:
    """Of the calls that it is to carry out."""
    sent = work.send_calls(item)
    world.told.update(sent.items())
    return sent


def worker_answers(world: World) -> None:
    worker_takes(world)
    if world.item is None:
        return
    for call_uid in _hear(world, world.item):
        give_tool_result(item=world.item, call_uid=call_uid, content=as_blocks("made"))


def worker_vanishes(world: World) -> None:
    worker_takes(world)
    if world.item is not None:
        item, world.item, world.vanished = world.item, None, True
        stop_work(holder=item, item=item, force=True)


_ANYWHERE: tuple[Act, ...] = (
    allow,
    allow_as_reviewer,
    deny,
    deny_the_last,
    allow_edited,
    allow_for_longer,
    expire,
    say_more,
    say_more_at_once,
    steer,
    withdraw,
    interrupt,
    retry,
    switch_approval,
    switch_plan_mode,
    want_two_people,
    want_somebody_else,
    forbid,
    revoke,
    archive,
    lower_budget,
    process_dies,
)


def acts_in(scenario: Scenario) -> list[Act]:
    """Each that an outsider may attempt; one that makes no sense when she does changes nothing."""
    acts = list(_ANYWHERE)
    if scenario.on_workers:
        acts += [worker_takes, worker_answers, worker_vanishes]
    if scenario.capped:
        acts.append(raise_budget)
    if scenario.by_and_by:
        acts.append(time_passes)
    if "custom_tools" in scenario.config or scenario.asks_questions:
        acts.append(answer_for_program)
    return acts

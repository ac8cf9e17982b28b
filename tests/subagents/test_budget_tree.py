"""No tree of conversations uses more than its root may, whatever its members do, and a runaway ends."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.urls import reverse
from hypothesis import given
from hypothesis import strategies as st

from accounts.models import User
from agents.models import AgentVersion
from conversations.models import Conversation
from harness.agentconfig import AgentConfig, Features, Limits
from harness.content import Text
from harness.errors import LimitReached
from harness.events import Event as EventValue
from harness.events import (
    InputTaken,
    ModelUsage,
    SpanModelRequestEnd,
    SpanModelRequestStart,
    SubagentEnded,
    SubagentStarted,
    UserMessage,
)
from harness.history import Entry, History
from harness.ids import new_id
from harness.messages import ModelRequest, ToolAnswer
from providers.scripted import reply
from subagents.limits import allowance, left_of
from subagents.models import Subagent
from tests.cast import ClientOf

from .conftest import Lead, answers, ask, done

BUDGET = 100_000
CALL = 5_000
"""The most that one model request uses here."""


@dataclass
class Member:
    """A conversation of a tree: its log as the product folds it, and who is below."""

    limits: Limits
    above: Member | None = None
    call: str = ""
    held: int = 0
    below: list[Member] = field(default_factory=list)
    over: bool = False
    history: History = field(default_factory=lambda: History([], features=Features()))

    def __post_init__(self) -> None:
        said = Entry.of(UserMessage(content=(Text(text="Go."),)))
        self.history.add(said)
        self.log(InputTaken(event_ids=(said.uid,)))

    def log(self, event: EventValue) -> str:
        entry = Entry.of(event)
        self.history.add(entry)
        return entry.uid

    @property
    def row(self) -> Conversation:
        stored = AgentConfig().model_dump(mode="json")
        version = AgentVersion(number=1, stored_config=stored)
        return Conversation(
            agent_version=version, overrides={"limits": self.limits.model_dump(mode="json")}
        )

    @property
    def tokens(self) -> int:
        return self.history.turn.tokens

    @property
    def spent(self) -> int:
        """What was really used, here and below."""
        return self.history.turn.usage.total_tokens + sum(each.spent for each in self.below)

    def everybody(self) -> Iterator[Member]:
        yield self
        for each in self.below:
            yield from each.everybody()

    def may_ask(self) -> bool:
        """As the loop asks before each request."""
        return not self.over and self.tokens < self.limits.token_budget

    def ask_model(self, used: int) -> None:
        start = self.log(SpanModelRequestStart(provider="p", model="m"))
        usage = ModelUsage(input_tokens=used)
        self.log(
            SpanModelRequestEnd(model_request_start_id=start, model_usage=usage, end="tool_use")
        )

    def fan_out(self, wanted: int) -> None:
        for waiting in range(wanted, 0, -1):
            left = left_of(self.row, self.history)
            try:
                own = allowance(self.limits, left, sharing=waiting, steps=50)
            except LimitReached:
                return
            child = Member(own, self, new_id("evt"), own.token_budget)
            self.below.append(child)
            started = {"tool_use_id": child.call, "subagent": "s", "name": "n", "description": "d"}
            self.log(SubagentStarted(**started, tokens=own.token_budget))
            assert self.tokens <= self.limits.token_budget, "no more is held than there is"

    def end(self, state: Any) -> None:
        """Its parent is told; who works below it ends before."""
        for each in self.below:
            if not each.over:
                each.end("stopped")
        self.over = True
        assert self.above is not None
        used = self.tokens
        assert used <= self.held + CALL * sum(1 for _each in self.everybody())
        ended = {"tool_use_id": self.call, "subagent": "s", "state": state}
        self.above.log(SubagentEnded(**ended, tokens=used))


acts = st.tuples(
    st.sampled_from(["ask", "ask", "fan", "end", "kill"]),
    st.integers(0, 30),
    st.integers(1, CALL),
)


@given(st.lists(acts, max_size=60))
def test_no_tree_passes_its_cap_by_more_than_the_requests_that_were_under_way(
    script: list[tuple[str, int, int]],
) -> None:
    root = Member(Limits(token_budget=BUDGET))
    for act, who, size in script:
        live = [each for each in root.everybody() if not each.over]
        member = live[who % len(live)]
        match act:
            case "ask" if member.may_ask():
                member.ask_model(size)
            case "fan" if member.may_ask():
                member.fan_out(1 + size % 4)
            case "end" | "kill" if member.above is not None:
                member.end("completed" if act == "end" else "lost")
            case _:
                continue
        everybody = list(root.everybody())
        assert root.spent <= BUDGET + CALL * len(everybody)
        assert root.spent <= root.tokens + CALL * len(everybody), "what is used was held"
        assert all(each.limits.token_budget <= BUDGET for each in everybody)
    if root.below:
        for each in list(root.below):
            if not each.over:
                each.end("stopped")
        assert not root.history.turn.reserved, "nothing stays held"
        assert root.tokens == root.spent


@pytest.mark.django_db(transaction=True)
def test_a_runaway_in_which_each_asks_two_ends_at_the_cap_and_its_page_says_what_it_used(
    alice: User, lead: Lead, client_of: ClientOf, settings: Any
) -> None:
    settings.AGENTSITE_SUBAGENT_DEPTH = 6
    settings.AGENTSITE_SUBAGENTS_IN_ALL = 5

    def breed(request: ModelRequest) -> Any:
        parts = [part for message in request.messages for part in message.parts]
        if any(isinstance(part, ToolAnswer) for part in parts):
            return reply("Enough.")
        return reply(ask("more"), ask("and more"))

    conversation = done(lead(breed))

    rows = Subagent.objects.filter(root=conversation)
    assert rows.exclude(started_at=None).count() == 5
    assert not rows.live().exists()
    assert not rows.filter(told_at=None).exists()
    refused = [
        answer
        for row in [conversation, *(row.child for row in rows if row.child is not None)]
        for answer in answers(row)
        if "the most there may be" in answer
    ]
    assert refused
    assert "Enough." in str(list(conversation.events.values_list("payload", flat=True)))
    address = reverse("subagents:tree", kwargs={"uid": conversation.uid})
    page = client_of(alice).get(address).content.decode()
    own = 30  # two scripted requests
    spent = sum(row.tokens_used for row in rows.filter(parent=conversation))
    assert f"with all below: {spent + own} tokens" in page

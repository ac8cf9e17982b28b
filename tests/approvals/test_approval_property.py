"""Whatever happens in whatever order: a call runs at most once for each time it was allowed, and only
with the exact input that entitled people or a saved rule allowed on the terms that hold when it runs.

Rules are made, tightened and revoked between any two steps. Every run loads everything anew, so each is
a restart as well.
"""

from __future__ import annotations

import os
from collections import defaultdict
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from types import MappingProxyType
from typing import Any

import pytest
from django.utils import timezone
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from accounts.models import Organisation, User
from approvals.actions.approvals import decide_approval, expire_approvals
from approvals.actions.rules import revoke_rule, save_rule
from approvals.models import Approval, PolicyRule
from conversations.actions.messages import post_message, stop
from conversations.log import append
from conversations.models import Conversation, Event
from conversations.runner import run_conversation
from harness.content import Text
from harness.errors import Declined
from harness.events import SessionStatusRunning, SpanToolStart
from harness.history import Entry
from harness.messages import ModelRequest
from harness.patterns import input_hash
from harness.tools import Effect, Tool, ToolContext
from jobs.engine import engine
from providers.scripted import Answer, call, reply
from tests.approvals.asking import a_reviewer
from tests.conversations.conftest import Converse
from tests.patience import PATIENCE
from tests.properties import examples
from tools_app.catalogue import all_tools

pytestmark = pytest.mark.django_db(transaction=True)

PEOPLE = ("alice", "bob", "mallory", "rita", "staff")
ENTITLED = {"alice", "rita", "staff"}
"""All of them review; alice is whom the agent works for."""
RULES = ("plain", "two_people", "reviewers_only", "requester_may_not_decide", "deny")
EXAMPLES = examples(8 if "TEST_DATABASE_URL" in os.environ else 25)

ONCE, TWICE = "Go.", "Go twice."

ran: list[tuple[str, str]] = []
"""Each execution: the call's id and the hash of the input it got."""


def act(context: ToolContext, given: dict[str, Any]) -> str:
    ran.append((context.call_id, input_hash(given)))
    return "Done."


ACT = Tool(
    name="act",
    description="Does something out there.",
    input_schema={
        "type": "object",
        "properties": {"what": {"type": "string"}},
        "required": ["what"],
        "additionalProperties": False,
    },
    handler=act,
    effect=Effect.OUTSIDE,
)


def model(request: ModelRequest) -> Answer:
    """Asks for the same call whenever a person has spoken, or for it and another one, and ends once
    it has its answers."""
    last = request.messages[-1].parts[-1]
    if not isinstance(last, Text):
        return reply("Done.")
    calls = [call("act", what="this"), call("act", what="other")]
    return reply(*calls[: 2 if last.text == TWICE else 1])


@dataclass(frozen=True)
class Consent:
    who: str
    round: int
    input_hash: str


class World:
    """What was done, and what of it a reader of the rules would say may run."""

    def __init__(self, conversation: Conversation, people: dict[str, User]) -> None:
        self.conversation = conversation
        self.people = people
        self.consents: dict[str, list[Consent]] = defaultdict(list)
        """By call: each acceptance, in order."""
        self.granted: set[tuple[str, frozenset[str]]] = set()
        """Inputs that were allowed for longer, each with the conditions that its question had."""
        self.rules: dict[str, PolicyRule] = {}
        """Those in force, by kind."""
        self.used: set[tuple[str, int]] = set()
        """Questions whose answer has let a call run."""
        self.judged = 0
        """How many of the executions have been looked at."""

    def run(self) -> None:
        engine.submit(partial(run_conversation, self.conversation.pk)).result(PATIENCE)

    def speak(self, text: str = ONCE) -> None:
        try:
            post_message(actor=self.people["alice"], conversation=self.conversation, text=text)
        except Declined:
            pass

    def interrupt(self) -> None:
        stop(actor=self.people["alice"], conversation=self.conversation)

    def expire(self, *, swept: bool) -> None:
        waiting = Approval.objects.filter(conversation=self.conversation, state="pending")
        waiting.update(expires_at=timezone.now() - timedelta(seconds=1))
        if swept:
            expire_approvals()

    def crash(self) -> None:
        """A process begins the call that was allowed last, does it, and dies before it says so."""
        approval = Approval.objects.filter(conversation=self.conversation).order_by("-id").first()
        if approval is None or approval.state != "approved" or set(self.rules) - {"plain"}:
            return
        about = Event.objects.filter(conversation=self.conversation, subject=approval.call_uid)
        order = list(about.order_by("seq").values_list("type", flat=True))
        if order[-1] != "user.tool_confirmation":
            return
        began = SpanToolStart(tool_use_id=approval.call_uid, effect="outside")
        append(self.conversation.pk, [Entry.of(SessionStatusRunning()), Entry.of(began)])
        act(_context_of(approval.call_uid), approval.effective_input)

    def rule(self, kind: str) -> None:
        """Make one rule more; `revoke` takes all of them back."""
        staff = self.people["staff"]
        if kind == "revoke":
            while self.rules:
                revoke_rule(actor=staff, rule=self.rules.popitem()[1])
            return
        if kind in self.rules:
            return
        rule: dict[str, Any] = {"tool": "act", "permission": "always_ask"}
        if kind == "deny":
            rule["permission"] = "always_deny"
        elif kind != "plain":
            rule["options"] = {kind: True}
        self.rules[kind] = save_rule(
            actor=staff,
            level="organisation",
            organisation=self.conversation.organisation,
            rule=rule,
        )

    def decide(
        self, who: str, verdict: str, which: str, edit: str, scope: str, key: str | None
    ) -> None:
        approvals = list(Approval.objects.filter(conversation=self.conversation).order_by("id"))
        if not approvals:
            return
        approval = approvals[0] if which in {"oldest", "old page"} else approvals[-1]
        before, asked = approval.state, conditions_of(approval)
        shown, number = approval.effective_sha256, approval.round
        edited: Any = {"": None, "fits": {"what": "that"}, "breaks": {"what": 5}}[edit]
        answers = approval.decisions.count()
        try:
            after = decide_approval(
                actor=self.people[who],
                approval=approval,
                verdict=verdict,  # type: ignore[arg-type]
                input_hash="0" * 64 if which == "wrong" else shown,
                edited_input=edited,
                scope=scope,  # type: ignore[arg-type]
                key=key,
                seen_round=1 if which == "old page" else number,
            )
        except Declined:
            approval.refresh_from_db()
            assert approval.state in {before, "expired"}, "a refused answer changed something"
            return
        if verdict != "approve" or after.decisions.count() == answers:
            return  # said before, under its key
        assert who in ENTITLED
        assert which != "wrong"
        assert which != "old page" or number == 1
        chosen = shown if edited is None else input_hash(edited)
        self.consents[approval.call_uid].append(Consent(who, number, chosen))
        if after.state == "approved" and scope != "once":
            self.granted.add((chosen, asked))

    def do(self, step: tuple[Any, ...]) -> None:
        match step:
            case ("decide", *given):
                self.decide(*given)
            case ("run",):
                self.run()
            case ("speak", text):
                self.speak(text)
            case ("interrupt",):
                self.interrupt()
            case ("expire", swept):
                self.expire(swept=swept)
            case ("crash",):
                self.crash()
            case ("rule", kind):
                self.rule(kind)

    def check(self) -> None:
        """Of what ran since the last look: may it, by what holds now?"""
        since, self.judged = ran[self.judged :], len(ran)
        wanted = frozenset(self.rules) - {"plain"}
        for call_uid, input_given in since:
            assert "deny" not in wanted, "it ran though a rule denies it"
            if self._consented(call_uid, input_given, wanted):
                continue
            if any(hashed == input_given and wanted <= met for hashed, met in self.granted):
                continue
            assert not self.rules, "it ran with what nobody allowed, or on terms nobody met"
            assert not Approval.objects.filter(call_uid=call_uid).exists(), "it ran unanswered"
            assert [one for one, _given in ran].count(call_uid) == 1, "it ran twice unasked"

    def _consented(self, call_uid: str, input_given: str, wanted: frozenset[str]) -> bool:
        """Whether the question as it was put last was answered as the rules want, and its answer has
        let nothing run before."""
        number = Approval.objects.filter(call_uid=call_uid).values_list("round", flat=True).first()
        people = {
            consent.who
            for consent in self.consents[call_uid]
            if (consent.round, consent.input_hash) == (number, input_given)
        }
        enough = len(people) >= (2 if "two_people" in wanted else 1)
        barred = "requester_may_not_decide" in wanted and "alice" in people
        if not enough or barred or number is None or (call_uid, number) in self.used:
            return False
        self.used.add((call_uid, number))
        return True


def conditions_of(approval: Approval) -> frozenset[str]:
    held = {
        "two_people": approval.needed > 1,
        "reviewers_only": approval.reviewers_only,
        "requester_may_not_decide": approval.requester_may_not_decide,
    }
    return frozenset(name for name, holds in held.items() if holds)


def _context_of(call_uid: str) -> ToolContext:
    return ToolContext(call_id=call_uid, workspace=None)  # type: ignore[arg-type]


DECIDE = st.tuples(
    st.just("decide"),
    st.sampled_from(PEOPLE),
    st.sampled_from(["approve", "approve", "approve", "deny", "not_now"]),
    st.sampled_from(["newest", "newest", "newest", "oldest", "old page", "wrong"]),
    st.sampled_from(["", "", "fits", "breaks"]),
    st.sampled_from(["once", "once", "run", "conversation", "always"]),
    st.sampled_from([None, "k1", "k2"]),
)
STEPS = st.lists(
    st.one_of(
        DECIDE,
        DECIDE,
        st.tuples(st.just("run")),
        st.tuples(st.just("run")),
        st.tuples(st.just("speak"), st.sampled_from([ONCE, TWICE])),
        st.tuples(st.just("interrupt")),
        st.tuples(st.just("expire"), st.booleans()),
        st.tuples(st.just("crash")),
        st.tuples(st.just("rule"), st.sampled_from([*RULES, "two_people", "revoke"])),
    ),
    min_size=2,
    max_size=12,
)


ALICE = ("decide", "alice", "approve", "newest", "", "once", None)
RITA = ("decide", "rita", "approve", "newest", "", "once", None)
BOTH_WAIT = (("interrupt",), ("run",), ("speak", TWICE), ("run",))
RITA_LATE = ("decide", "rita", "approve", "old page", "", "once", None)
EDITED = ("decide", "rita", "approve", "newest", "fits", "once", "k1")
"""What each example must be able to reach, so that the property is not held by nothing happening."""


@example(steps=[EDITED, EDITED, ("run",)], times=1)
@example(steps=[("rule", "two_people"), ALICE, ("run",)], times=0)
@example(steps=[("rule", "two_people"), ALICE, ("run",), ALICE, ("run",)], times=0)
@example(steps=[("rule", "two_people"), ALICE, ("run",), ALICE, RITA, ("run",)], times=1)
@example(steps=[("rule", "two_people"), ALICE, ("run",), RITA_LATE, ALICE, ("run",)], times=0)
@example(steps=[("rule", "requester_may_not_decide"), RITA, ("run",)], times=1)
@example(steps=[("rule", "requester_may_not_decide"), ALICE, ("run",)], times=0)
@example(steps=[EDITED, ("rule", "two_people"), ("run",), ALICE, RITA, ("run",)], times=1)
@example(steps=[EDITED, ("rule", "deny"), ("run",), ("rule", "revoke"), ("run",)], times=0)
@example(steps=[*BOTH_WAIT, ("rule", "revoke"), RITA, ("run",)], times=1)
@example(steps=[*BOTH_WAIT, RITA, ("rule", "two_people"), ("run",), ("run",)], times=0)
@example(steps=[("rule", "revoke"), ("interrupt",), ("run",), ("speak", ONCE), ("run",)], times=1)
@example(steps=[EDITED, ("crash",), ("run",), (*EDITED[:-1], "k2"), ("run",)], times=2)
@example(steps=[("decide", "bob", "approve", "newest", "", "once", None), ("run",)], times=0)
@example(
    steps=[
        ("decide", "alice", "approve", "newest", "", "conversation", None),
        ("run",),
        ("speak", ONCE),
        ("run",),
    ],
    times=2,
)
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(steps=STEPS, times=st.none())
def test_a_call_runs_only_as_often_and_only_as_it_was_allowed(
    steps: list[tuple[Any, ...]],
    times: int | None,
    alice: User,
    bob: User,
    mallory: User,
    staff: User,
    acme: Organisation,
    elsewhere: Organisation,
    converse: Converse,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tools = MappingProxyType({**all_tools(), "act": ACT})
    monkeypatch.setattr("conversations.kits.all_tools", lambda: tools)
    for place in (
        "approvals.actions.approvals",
        "conversations.actions.messages",
        "conversations.runner",
    ):
        monkeypatch.setattr(f"{place}.wake", lambda *_given: None)
    ran.clear()
    PolicyRule.objects.all().delete()
    rita = User.objects.filter(username="rita").first() or a_reviewer(acme)
    people = {"alice": alice, "bob": bob, "mallory": mallory, "rita": rita, "staff": staff}
    conversation, _scripted = converse(
        model, tools=[{"tool": "act", "permission": "always_allow"}], limits={"steps": 30}
    )
    world = World(conversation, people)
    world.rule("plain")
    world.speak()
    world.run()
    for step in steps:
        world.do(step)
        world.check()
    world.run()
    world.check()
    if times is not None:
        assert len(ran) == times

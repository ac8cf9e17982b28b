"""Whoever wrote what an agent handed on is asked for, barred and charged below it as where she wrote it."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from accounts.models import Organisation, Role, User
from agents.models import Environment
from approvals.actions.approvals import decide_approval
from approvals.models import Approval, PolicyRule
from approvals.policyrules import held_for
from conversations.actions.branching import rewind
from conversations.actions.children import begin_child, tell_agent
from conversations.actions.compacting import request_compaction
from conversations.actions.conversations import create_conversation
from conversations.actions.outcomes import define_outcome
from conversations.actions.redacting import redact_content
from conversations.actions.sharing import share_conversation
from conversations.judging import history_of
from conversations.kitparts import rules_of
from conversations.log import append
from conversations.models import Conversation
from harness.agentconfig import AskOptions, Features, ToolRule
from harness.content import Text
from harness.errors import Conflict, MayNotDecide
from harness.events import (
    AgentThreadContextCompacted,
    AgentToolUse,
    BackgroundFinished,
    BackgroundStarted,
    BudgetReached,
    CompactionRequested,
    EndTurn,
    EvaluationResult,
    InputTaken,
    RequiresAction,
    RetriesExhausted,
    RetryRequested,
    Rewound,
    SessionStatusIdle,
    SessionStatusRunning,
    SpanOutcomeEvaluationEnd,
    SpanOutcomeEvaluationStart,
    StopDetails,
    SubagentEnded,
    UserDefineOutcome,
    UserMessage,
    WakeDue,
    WakeRequested,
)
from harness.history import Entry
from harness.policy import Policy, Situation, Verdict
from harness.rules import AskTerms
from harness.tools import Effect, Tool
from spending.actions.budgets import resume_stopped
from spending.applying import applying_to
from spending.models import Budget, BudgetPeriod, BudgetStop
from spending.periods import ALWAYS
from tests.cast import join, make_user
from tests.conversations.conftest import MakeAgent

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("no_runs")]


@pytest.fixture
def no_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    for place in (
        "approvals.actions.approvals",
        "conversations.actions.children",
        "conversations.actions.compacting",
        "conversations.actions.outcomes",
        "spending.actions.budgets",
    ):
        monkeypatch.setattr(f"{place}.wake", lambda _pk: None)


@pytest.fixture
def bob(acme: Organisation) -> User:
    """Reviews in Acme, and writes in what Alice shares."""
    user = make_user("bobby")
    join(user, acme, Role.REVIEWER)
    return user


@pytest.fixture
def shared(
    alice: User, bob: User, acme: Organisation, make_agent: MakeAgent, environment: Environment
) -> Conversation:
    made = create_conversation(
        actor=alice, organisation=acme, agent=make_agent(), environment=environment
    )
    share_conversation(actor=alice, conversation=made, user_uid=bob.uid, role="writer")
    return made


def said(conversation: Conversation, who: User, text: str = "Do it.") -> str:
    """A person's word begins a turn; its id."""
    message = Entry.of(UserMessage(content=(Text(text=text),)))
    append(conversation.pk, [message], actor=who)
    return taken(conversation, message.uid)


def taken(conversation: Conversation, *uids: str) -> str:
    begin = Entry.of(InputTaken(event_ids=uids))
    append(conversation.pk, [Entry.of(SessionStatusRunning()), begin])
    return begin.uid


def child_of(conversation: Conversation) -> Conversation:
    """Its agent has another one work for it, which begins."""
    parent = Conversation.objects.get(pk=conversation.pk)
    child = begin_child(
        actor=parent.owner,
        parent=parent,
        agent=parent.agent_version.agent,
        environment=parent.environment,
        text="Write the file.",
    )
    row = child.events.get(type="user.message")
    taken(child, row.uid)
    return Conversation.objects.get(pk=child.pk)


def asks_in(conversation: Conversation, **terms: Any) -> Approval:
    begin = history_of(conversation).turn.uid
    use = Entry.of(
        AgentToolUse(
            name="write_file",
            input={"path": "a.txt", "content": "one"},
            evaluated_permission="ask",
            terms=AskTerms(effect="workspace", turn=begin, **terms),
        )
    )
    rest = Entry.of(SessionStatusIdle(stop_reason=RequiresAction(event_ids=(use.uid,))))
    append(conversation.pk, [use, rest])
    return Approval.objects.get(conversation=conversation, call_uid=use.uid)


def allow(who: User, approval: Approval) -> Approval:
    return decide_approval(
        actor=who,
        approval=approval,
        verdict="approve",
        input_hash=approval.effective_sha256,
        seen_round=approval.round,
    )


def test_who_wrote_does_not_decide_for_the_subagent_that_does_it(
    alice: User, bob: User, shared: Conversation
) -> None:
    said(shared, bob)
    asked = asks_in(child_of(shared), requester_may_not_decide=True)

    for who in (alice, bob):
        assert asked not in Approval.objects.decidable_by(who)
        with pytest.raises(MayNotDecide):
            allow(who, asked)


def test_who_set_the_outcome_does_not_decide_for_what_is_done_towards_it(
    alice: User, bob: User, shared: Conversation
) -> None:
    outcome = Entry.of(
        UserDefineOutcome(outcome_id="outc_1", description="A file.", rubric="- It is there.")
    )
    append(shared.pk, [outcome], actor=bob)
    taken(shared, outcome.uid)
    shared.refresh_from_db()
    asked = asks_in(shared, requester_may_not_decide=True)

    with pytest.raises(MayNotDecide):
        allow(bob, asked)


def test_nor_for_one_below_that_or_a_teammate_that_is_told_of_it_later(
    alice: User, bob: User, shared: Conversation
) -> None:
    said(shared, alice)
    mate = child_of(shared)
    below = child_of(mate)
    assert not Conversation.objects.get(pk=below.pk).others_wrote
    said(shared, bob)
    for sender, receiver in ((shared, mate), (mate, below)):
        told = tell_agent(actor=alice, sender=sender, receiver=receiver, text="Now this.")
        taken(receiver, told.uid)
    asked = asks_in(below, requester_may_not_decide=True)

    with pytest.raises(MayNotDecide):
        allow(bob, asked)


def test_nor_for_the_agent_above_that_hears_what_came_of_it(
    alice: User, bob: User, shared: Conversation
) -> None:
    said(shared, alice)
    child = child_of(shared)
    said(child, bob)
    ended = SubagentEnded(tool_use_id="call", subagent=child.uid, state="completed")
    append(shared.pk, [Entry.of(ended)])
    shared.refresh_from_db()
    asked = asks_in(shared, requester_may_not_decide=True)

    with pytest.raises(MayNotDecide):
        allow(bob, asked)


def test_what_the_owner_allowed_for_herself_does_not_hold_below_where_others_wrote(
    alice: User, bob: User, acme: Organisation, shared: Conversation
) -> None:
    agent = shared.agent_version.agent
    fields = {"scope": PolicyRule.Scope.AGENT, "organisation": acme, "agent": agent}
    PolicyRule.objects.create(
        **fields, for_user=alice, tool="write_file", permission=PolicyRule.Permission.ALLOW
    )
    PolicyRule.objects.create(
        **fields, for_user=bob, tool="bash", permission=PolicyRule.Permission.ASK
    )

    def held(conversation: Conversation) -> set[tuple[str, str]]:
        found = held_for(Conversation.objects.get(pk=conversation.pk))
        return {(each.rule.tool, each.rule.permission) for each in found}

    said(shared, alice)
    assert held(child_of(shared)) == {("write_file", "always_allow")}
    said(shared, bob)
    assert held(child_of(shared)) == held(shared) == {("bash", "always_ask")}


def test_nor_in_a_run_that_began_before_nor_in_one_that_worked_below_already(
    alice: User, bob: User, acme: Organisation, shared: Conversation
) -> None:
    PolicyRule.objects.create(
        scope=PolicyRule.Scope.AGENT,
        organisation=acme,
        agent=shared.agent_version.agent,
        for_user=alice,
        tool="write_file",
        permission=PolicyRule.Permission.ALLOW,
    )
    said(shared, alice)
    at_work = [Conversation.objects.get(pk=shared.pk), child_of(shared)]
    assert all(rules_of(each) for each in at_work)

    said(shared, bob)
    assert [rules_of(each) for each in at_work] == [(), ()]


def test_who_wrote_above_does_not_decide_for_one_that_worked_below_already(
    alice: User, bob: User, shared: Conversation
) -> None:
    said(shared, alice)
    child = child_of(shared)
    said(shared, bob)

    with pytest.raises(MayNotDecide):
        allow(bob, asks_in(child, requester_may_not_decide=True))


def test_whoever_asked_is_charged_for_what_agents_below_do_for_her(
    alice: User, bob: User, acme: Organisation, shared: Conversation
) -> None:
    for person in (alice, bob):
        Budget.objects.create(
            scope=Budget.Scope.USER,
            organisation=acme,
            user=person,
            unit="tokens",
            period="total",
            limit=10,
        )

    def charged(conversation: Conversation) -> tuple[int, set[int | None]]:
        payer, found = applying_to(Conversation.objects.get(pk=conversation.pk), server_keys=False)
        return payer, {each.user_id for each in found}

    said(shared, bob)
    child = child_of(shared)
    assert charged(child) == charged(child_of(child)) == (bob.pk, {bob.pk})
    said(shared, alice)
    assert charged(child) == (bob.pk, {bob.pk}), "what is under way was asked for by Bob"
    told = tell_agent(actor=alice, sender=shared, receiver=child, text="And this.")
    taken(child, told.uid)
    assert charged(child) == charged(child_of(shared)) == (alice.pk, {alice.pk})


def a_wake(shared: Conversation, _alice: User) -> None:
    due = Entry.of(WakeDue(reason="Look again."))
    append(shared.pk, [due])
    taken(shared, due.uid)


def an_end(shared: Conversation, _alice: User) -> None:
    ended = Entry.of(BackgroundFinished(background_id="b", command="make", state="completed"))
    append(shared.pk, [ended])
    taken(shared, ended.uid)


def another_agents_words(shared: Conversation, _alice: User) -> None:
    told = Entry.of(UserMessage(content=(Text(text="It is done."),), by_agent=True))
    append(shared.pk, [told])
    taken(shared, told.uid)


def an_end_that_joins(shared: Conversation, alice: User) -> None:
    said(shared, alice)
    ended = Entry.of(BackgroundFinished(background_id="b", command="make", state="completed"))
    joins = Entry.of(InputTaken(event_ids=(ended.uid,), steered=True))
    append(shared.pk, [ended, joins])


def another_try(shared: Conversation, alice: User) -> None:
    append(shared.pk, [Entry.of(SessionStatusIdle(stop_reason=RetriesExhausted()))])
    append(shared.pk, [Entry.of(RetryRequested())], actor=alice)


def an_answer_done_anew(shared: Conversation, alice: User) -> None:
    append(shared.pk, [Entry.of(SessionStatusIdle(stop_reason=EndTurn()))])
    behind = shared.events.filter(type="x.input_taken").latest("seq").seq
    append(shared.pk, [Entry.of(Rewound(behind=behind, why="regenerate"))], actor=alice)


def test_who_wrote_before_does_not_decide_on_what_others_ask_for_since(
    alice: User, bob: User, shared: Conversation
) -> None:
    said(shared, bob)
    said(shared, alice)
    shared.refresh_from_db()

    with pytest.raises(MayNotDecide):
        allow(bob, asks_in(shared, requester_may_not_decide=True))


def test_who_says_what_a_summary_is_to_dwell_on_does_not_decide_on_what_comes_of_it(
    alice: User, bob: User, shared: Conversation
) -> None:
    said(shared, alice)
    request_compaction(actor=bob, conversation=shared, focus="Alice wants the file sent.")
    said(shared, alice)
    shared.refresh_from_db()
    asked = asks_in(shared, requester_may_not_decide=True)

    with pytest.raises(MayNotDecide):
        allow(bob, asked)


def test_nor_once_that_was_taken_out_of_the_log(
    alice: User, bob: User, shared: Conversation
) -> None:
    said(shared, alice)
    wish = request_compaction(actor=bob, conversation=shared, focus="Alice wants the file sent.")
    assert wish is not None
    assert isinstance(wish.value, CompactionRequested)
    first = shared.events.earliest("seq").uid
    made = AgentThreadContextCompacted(summary="Send it.", through=first, focus=wish.value.focus)
    append(shared.pk, [Entry.of(made)])
    append(shared.pk, [Entry.of(SessionStatusIdle(stop_reason=EndTurn()))])
    redact_content(actor=alice, conversation=shared, event_uid=wish.uid)
    said(shared, alice)
    shared.refresh_from_db()
    asked = asks_in(shared, requester_may_not_decide=True)

    with pytest.raises(MayNotDecide):
        allow(bob, asked)


def test_who_has_a_summary_made_without_a_word_has_asked_for_nothing(
    alice: User, bob: User, shared: Conversation
) -> None:
    said(shared, alice)
    request_compaction(actor=bob, conversation=shared)
    shared.refresh_from_db()

    assert allow(bob, asks_in(shared, requester_may_not_decide=True)).state == "approved"


def test_what_one_allowed_in_advance_settles_nothing_that_she_asks_for_herself(
    alice: User, bob: User, shared: Conversation
) -> None:
    said(shared, alice)
    asked = asks_in(shared, requester_may_not_decide=True)
    decide_approval(
        actor=bob,
        approval=asked,
        verdict="approve",
        input_hash=asked.effective_sha256,
        seen_round=asked.round,
        scope="conversation",
    )

    def judged() -> Verdict:
        wanted = AskOptions(requester_may_not_decide=True)
        own = ToolRule(tool="write_file", permission="always_ask", options=wanted)
        tool = Tool("write_file", "", {}, handler=lambda *_: "", effect=Effect.WORKSPACE)
        held = Conversation.objects.get(pk=shared.pk)
        policy = Policy((own,), others=held_for(held), tools={tool.name: tool})
        here = Situation(Features(approval=False), turn=history_of(held).turn.uid)
        return policy.judge(tool, tool.name, here, arguments=asked.input).verdict

    said(shared, alice)
    assert judged() is Verdict.ALLOW
    said(shared, bob)
    assert judged() is Verdict.ASK


def test_what_a_wake_brings_about_is_charged_to_who_had_it_asked_for(
    alice: User, bob: User, shared: Conversation
) -> None:
    said(shared, bob)
    append(shared.pk, [Entry.of(WakeRequested(delay_seconds=60, reason="Look again."))])
    said(shared, alice)
    shared.refresh_from_db()
    assert shared.asker_id == alice.pk

    a_wake(shared, alice)

    shared.refresh_from_db()
    assert shared.asker_id == bob.pk
    append(shared.pk, [Entry.of(WakeRequested(delay_seconds=60, reason="Look again."))])
    said(shared, alice)
    a_wake(shared, alice)
    shared.refresh_from_db()
    assert shared.asker_id == bob.pk
    append(shared.pk, [Entry.of(BackgroundStarted(background_id="b", command="make"))])
    said(shared, alice)
    an_end(shared, alice)
    shared.refresh_from_db()
    assert shared.asker_id == bob.pk


@pytest.mark.parametrize("lifted_by", ["nobody", "alice"])
def test_a_turn_that_a_budget_stopped_goes_on_for_whom_it_worked(
    alice: User, bob: User, acme: Organisation, shared: Conversation, lifted_by: str
) -> None:
    said(shared, bob)
    stopped = StopDetails(code="budget_reached", message="No room.")
    append(
        shared.pk,
        [Entry.of(SessionStatusIdle(stop_reason=BudgetReached(), stop_details=stopped))],
    )
    budget = Budget.objects.create(
        scope=Budget.Scope.USER,
        organisation=acme,
        user=bob,
        unit="tokens",
        period="total",
        limit=10,
    )
    period = BudgetPeriod.objects.create(budget=budget, starts_on=ALWAYS, limit=10)
    BudgetStop.objects.create(
        conversation=shared,
        period=period,
        released_at=timezone.now(),
        released_by=alice if lifted_by == "alice" else None,
    )

    resume_stopped()

    assert shared.events.filter(type="x.retry_requested").exists()
    shared.refresh_from_db()
    assert shared.asker_id == bob.pk


def test_nor_in_a_turn_of_a_subagent_that_is_told_more_by_the_agent_above(
    alice: User, bob: User, shared: Conversation
) -> None:
    said(shared, alice)
    child = child_of(shared)
    said(child, bob)
    told = tell_agent(actor=alice, sender=shared, receiver=child, text="Now do it.")
    taken(child, told.uid)
    asked = asks_in(Conversation.objects.get(pk=child.pk), requester_may_not_decide=True)

    with pytest.raises(MayNotDecide):
        allow(bob, asked)


def an_outcome(conversation: Conversation, who: User) -> UserDefineOutcome:
    """One that she asks for, and that is still pursued as the turn ends."""
    defined = define_outcome(
        actor=who, conversation=conversation, description="A file.", rubric="- It is there."
    )
    taken(conversation, defined.uid)
    append(conversation.pk, [Entry.of(SessionStatusIdle(stop_reason=RetriesExhausted()))])
    value = defined.value
    assert isinstance(value, UserDefineOutcome)
    return value


def judged(
    conversation: Conversation, outcome: UserDefineOutcome, result: EvaluationResult
) -> None:
    start = Entry.of(SpanOutcomeEvaluationStart(outcome_id=outcome.outcome_id))
    end = SpanOutcomeEvaluationEnd(
        outcome_evaluation_start_id=start.uid, outcome_id=outcome.outcome_id, result=result
    )
    append(conversation.pk, [start, Entry.of(end)])


def test_nor_towards_an_outcome_that_was_reached_on_a_branch_that_was_left(
    alice: User, bob: User, shared: Conversation
) -> None:
    outcome = an_outcome(shared, bob)
    place = shared.events.filter(type="session.status_idle").latest("seq").uid
    said(shared, alice)
    judged(shared, outcome, "satisfied")
    append(shared.pk, [Entry.of(SessionStatusIdle(stop_reason=EndTurn()))])
    rewind(actor=alice, conversation=shared, event_uid=place)
    said(shared, alice)
    shared.refresh_from_db()
    assert history_of(shared).outcome is not None

    with pytest.raises(MayNotDecide):
        allow(bob, asks_in(shared, requester_may_not_decide=True))
    with pytest.raises(Conflict):
        define_outcome(actor=alice, conversation=shared, description="Another", rubric="- a")


def test_what_an_agent_below_was_told_to_begin_is_charged_to_whom_the_one_above_worked_for_then(
    alice: User, bob: User, shared: Conversation
) -> None:
    said(shared, alice)
    child = child_of(shared)
    said(shared, bob)
    told = tell_agent(actor=alice, sender=shared, receiver=child, text="Build it.")
    taken(child, told.uid)
    append(child.pk, [Entry.of(BackgroundStarted(background_id="b", command="make"))])
    said(shared, alice)

    an_end(child, alice)

    child.refresh_from_db()
    assert child.asker_id == bob.pk


def test_what_an_agent_below_hears_later_is_charged_to_whom_the_one_above_worked_for_as_it_spoke(
    alice: User, bob: User, shared: Conversation
) -> None:
    said(shared, bob)
    child = child_of(shared)
    told = tell_agent(actor=alice, sender=shared, receiver=child, text="Then build it.")
    said(shared, alice)

    taken(child, told.uid)

    child.refresh_from_db()
    assert child.asker_id == bob.pk


def test_what_was_begun_as_somebody_had_it_tried_again_is_charged_to_her(
    alice: User, bob: User, shared: Conversation
) -> None:
    said(shared, bob)
    another_try(shared, alice)
    append(shared.pk, [Entry.of(BackgroundStarted(background_id="b", command="make"))])
    said(shared, bob)

    an_end(shared, alice)

    shared.refresh_from_db()
    assert shared.asker_id == alice.pk

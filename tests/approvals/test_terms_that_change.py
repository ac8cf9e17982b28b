"""What comes of a question whose rules change before its call runs: stricter asks anew, looser asks still."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import MappingProxyType
from typing import Any

import pytest

from accounts.models import Organisation, User
from approvals import queue as approvalqueue
from approvals.actions.approvals import decide_approval
from approvals.actions.rules import revoke_rule, save_rule
from approvals.models import Approval
from audit.models import AuditEntry
from chat.presentation.calls import Card, card_of
from conversations.actions.deciding import decide_call
from conversations.actions.messages import post_message, request_retry, set_feature
from conversations.log import append
from conversations.models import Conversation, Event
from harness.content import text_of
from harness.errors import AskedAnew, InputChanged, NotWaiting
from harness.events import (
    AgentToolResult,
    AgentToolUse,
    InputTaken,
    OutcomeUnknown,
    RetriesExhausted,
    SessionStatusIdle,
    SessionStatusRunning,
    SpanToolStart,
    UserToolConfirmation,
)
from harness.history import Entry
from harness.patterns import input_hash
from harness.tools import Effect, Tool, ToolContext
from providers.scripted import call, reply
from tests.approvals.asking import a_reviewer
from tests.conversations.conftest import Converse, rested, types
from tools_app.catalogue import all_tools

pytestmark = pytest.mark.django_db(transaction=True)

ran: list[dict[str, Any]] = []


def act(_context: ToolContext, given: dict[str, Any]) -> str:
    ran.append(given)
    return "Done."


ACT = Tool(
    "act",
    "Does something out there.",
    {"type": "object", "additionalProperties": True},
    act,
    Effect.OUTSIDE,
)
THIS, THAT = {"what": "this"}, {"what": "that"}


@pytest.fixture(autouse=True)
def the_tool(monkeypatch: pytest.MonkeyPatch) -> None:
    ran.clear()
    tools = MappingProxyType({**all_tools(), "act": ACT})
    monkeypatch.setattr("conversations.kits.all_tools", lambda: tools)


@pytest.fixture
def conversation(alice: User, converse: Converse) -> Conversation:
    """It waits for an answer about one call, which its approval switch asks about."""
    begun, _script = converse([reply(call("act", **THIS)), reply("Over.")], features=SWITCHED_ON)
    post_message(actor=alice, conversation=begun, text="Act.")
    return rested(begun)


SWITCHED_ON = {"approval": True}
NobodyRuns = Callable[[], AbstractContextManager[None]]


@pytest.fixture
def nobody_runs(monkeypatch: pytest.MonkeyPatch) -> NobodyRuns:
    """While it holds an answer wakes nobody, as when the process dies right behind it."""

    @contextmanager
    def holds() -> Iterator[None]:
        with monkeypatch.context() as changed:
            changed.setattr("approvals.actions.approvals.wake", lambda _pk: None)
            yield

    return holds


def waiting(conversation: Conversation) -> Approval:
    return Approval.objects.get(conversation=conversation, state="pending")


def allow(who: User, approval: Approval, **more: Any) -> Approval:
    more.setdefault("input_hash", approval.effective_sha256)
    more.setdefault("seen_round", approval.round)
    return decide_approval(actor=who, approval=approval, verdict="approve", **more)


def tighten(alice: User, acme: Organisation, **options: Any) -> Any:
    rule = {"tool": "act", "permission": "always_ask", "options": options}
    return save_rule(actor=alice, level="organisation", organisation=acme, rule=rule)


def card(conversation: Conversation, call_uid: str) -> Card:
    rows = list(Event.objects.filter(conversation=conversation, subject=call_uid).order_by("seq"))
    assert isinstance(rows[0].value, AgentToolUse)
    return card_of(rows[0].value, rows)


# --- stricter -------------------------------------------------------------------------------------


def test_an_answer_on_old_terms_runs_nothing_where_two_people_must_agree_by_now(
    alice: User, acme: Organisation, conversation: Conversation
) -> None:
    tighten(alice, acme, two_people=True)

    first = allow(alice, waiting(conversation))
    rested(conversation, 2)

    assert ran == []
    assert conversation.stop_reason == "requires_action"
    again = waiting(conversation)
    assert again.pk == first.pk
    assert (again.round, again.needed) == (2, 2)
    assert "now this takes two different people" in again.reason
    assert "A rule of this organisation asks before act" in again.reason
    shown = card(conversation, again.call_uid)
    assert shown.asks
    assert shown.reason == again.reason
    assert shown.decision is None

    assert allow(alice, again).state == "pending"
    assert ran == []
    allow(a_reviewer(acme), again)
    rested(conversation, 3)
    assert ran == [THIS]
    assert conversation.stop_reason == "end_turn"


@pytest.mark.parametrize("option", ["requester_may_not_decide", "reviewers_only", "two_people"])
def test_whoever_answers_the_new_question_must_meet_what_holds_now(
    bob: User,
    acme: Organisation,
    alice: User,
    conversation: Conversation,
    option: str,
) -> None:
    Conversation.objects.filter(pk=conversation.pk).update(owner=bob)
    Approval.objects.update(requested_by=bob)
    tighten(alice, acme, **{option: True})

    allow(bob, waiting(conversation))
    rested(conversation, 2)

    assert ran == []
    assert getattr(waiting(conversation), "needed" if option == "two_people" else option) in {
        2,
        True,
    }
    allow(alice, waiting(conversation))
    if option == "two_people":
        allow(a_reviewer(acme), waiting(conversation))
    rested(conversation, 3)
    assert ran == [THIS]


@pytest.mark.parametrize("option", ["requester_may_not_decide", "reviewers_only"])
def test_an_answer_that_meets_the_new_terms_all_the_same_counts(
    alice: User, acme: Organisation, conversation: Conversation, option: str
) -> None:
    asked = waiting(conversation)
    tighten(alice, acme, **{option: True})

    allow(a_reviewer(acme), asked)
    rested(conversation, 2)

    assert ran == [THIS]
    assert "x.approval_requested" not in types(conversation)


def test_a_new_question_is_about_the_input_that_was_allowed_and_about_no_other(
    alice: User, acme: Organisation, conversation: Conversation, nobody_runs: NobodyRuns
) -> None:
    with nobody_runs():
        allow(alice, waiting(conversation), edited_input=THAT)
    tighten(alice, acme, two_people=True)
    post_message(actor=alice, conversation=conversation, text="And?")
    rested(conversation, 2)

    again = waiting(conversation)
    assert again.effective_input == THAT
    shown = card(conversation, again.call_uid)
    assert [(one.name, one.value.whole) for one in shown.arguments] == [("what", "that")]
    with pytest.raises(InputChanged):
        allow(alice, again, input_hash=input_hash(THIS))
    allow(alice, again)
    allow(a_reviewer(acme), again)
    rested(conversation, 3)
    assert ran == [THAT]


def test_a_call_that_is_denied_by_now_is_refused_and_asks_nobody(
    alice: User, acme: Organisation, conversation: Conversation
) -> None:
    save_rule(
        actor=alice,
        level="organisation",
        organisation=acme,
        rule={"tool": "act", "permission": "always_deny"},
    )

    allow(alice, waiting(conversation))
    rested(conversation, 2)

    assert ran == []
    assert conversation.stop_reason == "end_turn"
    assert not Approval.objects.filter(state="pending").exists()


def test_made_stricter_again_and_again_it_is_asked_each_time(
    alice: User, acme: Organisation, conversation: Conversation
) -> None:
    rita = a_reviewer(acme)
    tighten(alice, acme, two_people=True)
    allow(alice, waiting(conversation))
    rested(conversation, 2)
    allow(alice, waiting(conversation))
    tighten(alice, acme, requester_may_not_decide=True)
    allow(rita, waiting(conversation))
    rested(conversation, 3)

    assert ran == [], "alice is the requester"
    again = waiting(conversation)
    assert (again.round, again.needed, again.requester_may_not_decide) == (3, 2, True)
    allow(rita, again)
    allow(a_reviewer(acme, "otto"), again)
    rested(conversation, 4)
    assert ran == [THIS]


def test_an_answer_from_a_page_that_shows_the_earlier_question_is_none_to_the_new_one(
    alice: User, acme: Organisation, conversation: Conversation
) -> None:
    tighten(alice, acme, two_people=True)
    allow(alice, waiting(conversation), seen_round=1)
    rested(conversation, 2)

    with pytest.raises(AskedAnew) as refused:
        allow(a_reviewer(acme), waiting(conversation), seen_round=1)

    assert refused.value.code == "asked_anew"
    assert "two different people" in refused.value.message
    assert ran == []


def test_the_queue_says_that_it_was_asked_before(
    alice: User, acme: Organisation, conversation: Conversation, client_of: Any
) -> None:
    tighten(alice, acme, two_people=True)
    allow(alice, waiting(conversation), reason="Fine.")
    rested(conversation, 2)

    (item,) = approvalqueue.queue(alice).items
    assert not item.may_not
    page = client_of(alice).get("/approvals/").content.decode()
    assert "now this takes two different people" in page
    assert "to an earlier question" in page


# --- looser ---------------------------------------------------------------------------------------


@pytest.fixture
def two_calls(alice: User, converse: Converse) -> Conversation:
    begun, _script = converse(
        [reply(call("act", **THIS), call("act", **THAT)), reply("Over.")], features=SWITCHED_ON
    )
    post_message(actor=alice, conversation=begun, text="Act twice.")
    return rested(begun)


def test_what_nobody_asks_about_any_more_still_waits_for_its_answer(
    alice: User, two_calls: Conversation
) -> None:
    first, second = Approval.objects.order_by("id")
    set_feature(actor=alice, conversation=two_calls, feature="approval", enabled=False)

    allow(alice, first)
    rested(two_calls, 2)

    assert ran == [THIS]
    assert waiting(two_calls) == second
    assert second.round == 1
    allow(alice, second)
    rested(two_calls, 3)
    assert ran == [THIS, THAT]


def test_what_a_person_denied_does_not_run_because_a_rule_was_revoked(
    alice: User, acme: Organisation, converse: Converse
) -> None:
    rule = tighten(alice, acme)
    begun, _script = converse([reply(call("act", **THIS)), reply("Over.")])
    post_message(actor=alice, conversation=begun, text="Act.")
    rested(begun)
    asked = waiting(begun)
    revoke_rule(actor=alice, rule=rule)

    decide_approval(
        actor=alice,
        approval=asked,
        verdict="deny",
        input_hash=asked.effective_sha256,
        seen_round=asked.round,
    )
    rested(begun, 2)

    assert ran == []
    result = Event.objects.get(conversation=begun, type="agent.tool_result").value
    assert isinstance(result, AgentToolResult)
    assert "refused" in text_of(result.content)


def test_a_permission_given_for_longer_covers_the_same_call_that_waits_beside_it(
    alice: User, converse: Converse
) -> None:
    begun, _script = converse(
        [reply(call("act", **THIS), call("act", **THIS)), reply("Over.")], features=SWITCHED_ON
    )
    post_message(actor=alice, conversation=begun, text="Act twice.")
    rested(begun)

    allow(alice, Approval.objects.order_by("id")[0], scope="conversation")
    rested(begun, 2)

    assert ran == [THIS, THIS]
    assert set(Approval.objects.values_list("state", flat=True)) == {"approved", "cancelled"}


# --- an outcome that is unknown -------------------------------------------------------------------


def crash_after(conversation: Conversation, call_uid: str) -> None:
    """A process began the call and died before it said how it ended."""
    began = SpanToolStart(tool_use_id=call_uid, effect="outside")
    append(conversation.pk, [Entry.of(SessionStatusRunning()), Entry.of(began)])


def test_asked_what_became_of_it_people_see_and_allow_the_input_it_ran_with(
    alice: User, conversation: Conversation, nobody_runs: NobodyRuns
) -> None:
    asked = waiting(conversation)
    with nobody_runs():
        allow(alice, asked, edited_input=THAT)
    crash_after(conversation, asked.call_uid)
    post_message(actor=alice, conversation=conversation, text="And?")  # wakes it
    rested(conversation, 2)

    again = waiting(conversation)
    assert again.effective_input == THAT
    assert again.round > 1
    shown = card(conversation, again.call_uid)
    assert shown.unknown
    assert [(one.name, one.value.whole) for one in shown.arguments] == [("what", "that")]
    assert (shown.round, shown.shown) == (again.round, again.effective_sha256)
    with pytest.raises(InputChanged):
        decide_call(actor=alice, conversation=conversation, call_uid=asked.call_uid, allow=True)
    decide_call(
        actor=alice,
        conversation=conversation,
        call_uid=asked.call_uid,
        allow=True,
        seen_round=again.round,
        shown=again.effective_sha256,
    )
    rested(conversation, 3)
    assert ran == [THAT]
    (last,) = [
        row.value
        for row in Event.objects.filter(type="user.tool_confirmation").order_by("-seq")[:1]
    ]
    assert isinstance(last, UserToolConfirmation)
    assert last.edited_input == THAT


def test_an_unknown_outcome_is_asked_about_once_and_on_the_terms_of_the_rules(
    alice: User, acme: Organisation, conversation: Conversation, nobody_runs: NobodyRuns
) -> None:
    """An answer that comes before the question is to none: it must not be taken and asked for again."""
    asked = waiting(conversation)
    with nobody_runs():
        allow(alice, asked)
    crash_after(conversation, asked.call_uid)
    tighten(alice, acme, two_people=True)
    unknown = OutcomeUnknown(tool_use_id=asked.call_uid, effect="outside")
    append(conversation.pk, [Entry.of(unknown)])

    before = types(conversation)
    with pytest.raises(NotWaiting), nobody_runs():
        allow(alice, asked)
    with pytest.raises(NotWaiting), nobody_runs():
        decide_call(actor=alice, conversation=conversation, call_uid=asked.call_uid, allow=True)
    assert types(conversation) == before
    assert not card(conversation, asked.call_uid).asks

    post_message(actor=alice, conversation=conversation, text="And?")  # wakes it
    rested(conversation, 2)

    again = waiting(conversation)
    assert again.needed == 2
    assert types(conversation).count("x.approval_requested") == 1
    assert card(conversation, asked.call_uid).round == again.round
    told = AuditEntry.objects.filter(approval_uid=asked.uid, action=AuditEntry.Action.ASKED)
    assert told.count() == 2, "once by the agent, once for the outcome that is unknown"


def test_a_call_nobody_was_asked_about_is_asked_about_when_its_outcome_is_unknown(
    alice: User, converse: Converse
) -> None:
    """The page's card and the queue number the questions alike, or no answer would ever fit."""
    conversation, _script = converse(
        [reply("Over.")],
        tools=[{"tool": "act", "permission": "always_allow"}],
    )
    use = AgentToolUse(name="act", input=THIS)
    (row, *_rest) = append(
        conversation.pk,
        [Entry.of(SessionStatusRunning()), Entry.of(InputTaken(event_ids=())), Entry.of(use)],
    )[2:]
    append(conversation.pk, [Entry.of(SpanToolStart(tool_use_id=row.uid, effect="outside"))])
    post_message(actor=alice, conversation=conversation, text="And?")  # wakes it
    rested(conversation)

    asked = waiting(conversation)
    assert card(conversation, row.uid).round == asked.round
    decide_call(
        actor=alice,
        conversation=conversation,
        call_uid=row.uid,
        allow=True,
        shown=asked.effective_sha256,
        seen_round=asked.round,
    )
    rested(conversation, 2)
    assert ran == [THIS]


# --- given up and taken up again ------------------------------------------------------------------


def test_a_question_of_a_turn_that_was_given_up_waits_again_when_the_turn_goes_on(
    alice: User, conversation: Conversation
) -> None:
    """A fault of ours ended the turn while the call waited."""
    append(conversation.pk, [Entry.of(SessionStatusIdle(stop_reason=RetriesExhausted()))])
    asked = Approval.objects.get()
    assert asked.state == "cancelled"

    request_retry(actor=alice, conversation=conversation)
    rested(conversation, 3)

    allow(alice, waiting(conversation))
    rested(conversation, 4)
    assert ran == [THIS]

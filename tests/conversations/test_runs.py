"""Runs over real tables, threads and commits: from a posted message to the rest and its traces."""

from __future__ import annotations

import threading
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import connection, transaction
from django.db.models.functions import Now

from accounts.models import User
from conversations import claims, delays, log
from conversations.actions.branching import edit_and_resend
from conversations.actions.deciding import decide_call
from conversations.actions.messages import (
    edit_message,
    post_message,
    request_retry,
    set_feature,
    steer_message,
    stop,
    withdraw_message,
)
from conversations.actions.sharing import share_conversation
from conversations.models import Conversation, ModelTrace, PartialBlock, Run, Wake
from conversations.runner import run_conversation
from conversations.wakes import wake
from harness.content import text_of
from harness.errors import (
    Conflict,
    Forbidden,
    Invalid,
    LeaseLost,
    NotFound,
    Overloaded,
    RateLimited,
    TooLarge,
)
from harness.events import (
    AgentMessage,
    EndTurn,
    InputTaken,
    SessionStatusIdle,
    SessionStatusRunning,
    WakeDue,
)
from harness.history import Entry
from jobs.dispatch import dispatch
from jobs.engine import engine
from live.hub import hub
from providers.scripted import Hold, call, reply, say
from spending.models import ModelPrice, Usage
from tests.conversations.conftest import Converse, rested, still, types, until
from tests.patience import PATIENCE
from tools_app import isolation
from tools_app.builtin.search import search

pytestmark = pytest.mark.django_db(transaction=True)


def texts(conversation: Conversation) -> list[str]:
    return [
        text_of(row.value.content)
        for row in conversation.events.filter(type="agent.message").order_by("seq")
    ]


def test_a_posted_message_is_answered_and_everything_is_in_the_log(alice: User, converse: Converse):
    conversation, _ = converse([reply("Looking.", call("list_files")), reply("Empty.")])
    post_message(actor=alice, conversation=conversation, text="What is there?")
    rested(conversation)
    assert texts(conversation) == ["Looking.", "Empty."]
    assert types(conversation) == [
        "user.message",
        "session.updated",
        "session.status_running",
        "x.input_taken",
        "span.model_request_start",
        "agent.message",
        "agent.tool_use",
        "span.model_request_end",
        "span.tool_start",
        "span.tool_end",
        "agent.tool_result",
        "span.model_request_start",
        "agent.message",
        "span.model_request_end",
        "session.usage",
        "session.status_idle",
    ]
    seqs = list(conversation.events.order_by("seq").values_list("seq", flat=True))
    assert seqs == list(range(1, conversation.last_seq + 1))
    assert conversation.status == Conversation.Status.IDLE
    assert conversation.stop_reason == "end_turn"
    assert (conversation.queued_count, conversation.message_count) == (0, 3)
    assert not conversation.owes_run
    assert conversation.runs.get().state == Run.State.RESTED


def test_tools_work_in_the_conversations_own_workspace(alice: User, converse: Converse):
    """One conversation's file is not there for another."""
    first, _ = converse([reply(call("write_file", path="a.txt", content="mine")), reply("Done.")])
    second, _ = converse([reply(call("read_file", path="a.txt")), reply("Done.")])
    post_message(actor=alice, conversation=first, text="Write.")
    rested(first)
    post_message(actor=alice, conversation=second, text="Read.")
    rested(second)
    results = {
        conversation.uid: conversation.events.get(type="agent.tool_result").value
        for conversation in (first, second)
    }
    assert not results[first.uid].is_error
    assert results[first.uid].display.added == 1
    assert results[second.uid].is_error


def test_the_first_message_gives_the_title_and_no_later_one_does(alice: User, converse: Converse):
    conversation, _ = converse(lambda _request: "Yes.")
    post_message(actor=alice, conversation=conversation, text="word " * 40)
    rested(conversation)
    title = conversation.title
    assert title.startswith("word word")
    assert len(title) <= 100
    post_message(actor=alice, conversation=conversation, text="Another subject.")
    rested(conversation, 2)
    assert conversation.title == title


def test_the_same_key_twice_stores_one_message(alice: User, converse: Converse):
    """Posting is idempotent."""
    conversation, scripted = converse(lambda _request: "Yes.")
    first = post_message(actor=alice, conversation=conversation, text="Hi.", key="k1")
    again = post_message(actor=alice, conversation=conversation, text="Hi.", key="k1")
    assert first.pk == again.pk
    rested(conversation)
    assert len(scripted.requests) == 1


@pytest.mark.parametrize("another", ["sender", "text"])
def test_another_message_under_a_key_is_refused_and_not_lost_unseen(
    alice: User, bob: User, converse: Converse, another: str
):
    """Two programs that count their messages may both say “1”."""
    conversation, scripted = converse(["Yes."])
    share_conversation(actor=alice, conversation=conversation, user_uid=bob.uid, role="writer")
    first = post_message(actor=alice, conversation=conversation, text="Hi.", key="1")
    rested(conversation)
    sent: dict[str, Any] = {"actor": alice, "text": "Hi.", "conversation": conversation, "key": "1"}
    sent |= {"actor": bob} if another == "sender" else {"text": "No!"}
    with pytest.raises(Conflict, match="another message"):
        post_message(**sent)
    with pytest.raises((Conflict, Forbidden)):
        edit_and_resend(message_uid=first.uid, files=False, **sent)
    still()
    assert types(conversation).count("user.message") == 1
    assert len(scripted.requests) == 1


@pytest.mark.parametrize("text", ["", "   ", "\0", "\n\t"])
def test_an_empty_message_stores_nothing(alice: User, converse: Converse, text: str):
    """Stored, it would break the conversation for good."""
    conversation, _ = converse()
    with pytest.raises(Invalid):
        post_message(actor=alice, conversation=conversation, text=text)
    assert types(conversation) == []


def test_a_message_may_be_as_long_as_the_limit_and_no_longer(
    alice: User, converse: Converse, settings
):
    settings.AGENTSITE_MESSAGE_CHARACTERS = 10
    conversation, _ = converse(lambda _request: "Yes.")
    post_message(actor=alice, conversation=conversation, text="x" * 10)
    with pytest.raises(TooLarge, match="at most 10"):
        post_message(actor=alice, conversation=conversation, text="x" * 11)
    rested(conversation)


def test_only_so_many_messages_may_wait(alice: User, converse: Converse, settings):
    settings.AGENTSITE_QUEUED_MESSAGES = 2
    hold = Hold()
    conversation, _ = converse([reply(say("One", hold)), *["More."] * 2])
    post_message(actor=alice, conversation=conversation, text="1")
    until(hold.reached.is_set)
    for number in (2, 3):
        post_message(actor=alice, conversation=conversation, text=str(number))
    with pytest.raises(Conflict):
        post_message(actor=alice, conversation=conversation, text="4")
    hold.release.set()
    rested(conversation, 3)


def test_stop_ends_a_streaming_answer_with_one_rest(alice: User, converse: Converse):
    hold = Hold()
    conversation, scripted = converse([reply(say("So far", hold, " and on."))])
    post_message(actor=alice, conversation=conversation, text="Go.")
    until(hold.reached.is_set)
    assert stop(actor=alice, conversation=conversation) is not None
    rested(conversation)
    (message,) = conversation.events.filter(type="agent.message")
    assert message.value.interrupted
    assert types(conversation).count("session.status_idle") == 1
    assert scripted.closed_early == 1
    assert stop(actor=alice, conversation=conversation) is None
    assert async_to_sync(hub.snapshot)(conversation.uid) == ()


def test_a_waiting_message_can_be_withdrawn_once_and_not_after_it_was_taken(
    alice: User, converse: Converse
):
    hold = Hold()
    conversation, _ = converse([reply(say("One", hold))])
    taken = post_message(actor=alice, conversation=conversation, text="1")
    until(hold.reached.is_set)
    waiting = post_message(actor=alice, conversation=conversation, text="2")
    withdraw_message(actor=alice, conversation=conversation, message_uid=waiting.uid)
    for uid in (waiting.uid, taken.uid):
        with pytest.raises(Conflict):
            withdraw_message(actor=alice, conversation=conversation, message_uid=uid)
    with pytest.raises(NotFound):
        withdraw_message(actor=alice, conversation=conversation, message_uid="sevt_none")
    hold.release.set()
    rested(conversation)
    assert texts(conversation) == ["One"]


def test_an_asking_call_waits_without_a_run_and_goes_on_after_the_answer(
    alice: User, converse: Converse
):
    """Nothing waits in memory, so a restart in between changes nothing."""
    conversation, _ = converse(
        [reply(call("write_file", path="a.txt", content="x")), reply("Done.")],
        features={"approval": True},
    )
    post_message(actor=alice, conversation=conversation, text="Write.")
    rested(conversation)
    assert conversation.stop_reason == "requires_action"
    engine.stop()
    asked = conversation.events.get(type="agent.tool_use")
    decide_call(actor=alice, conversation=conversation, call_uid=asked.uid, allow=True)
    with pytest.raises(Conflict):
        decide_call(actor=alice, conversation=conversation, call_uid=asked.uid, allow=False)
    rested(conversation, 2)
    assert texts(conversation) == ["Done."]
    assert conversation.events.get(type="agent.tool_result").value.outcome == "ok"


def test_a_denied_call_does_not_run(alice: User, converse: Converse):
    conversation, _ = converse(
        [reply(call("write_file", path="a.txt", content="x")), reply("All right.")],
        features={"approval": True},
    )
    post_message(actor=alice, conversation=conversation, text="Write.")
    rested(conversation)
    asked = conversation.events.get(type="agent.tool_use")
    decide_call(
        actor=alice, conversation=conversation, call_uid=asked.uid, allow=False, reason="Not here."
    )
    rested(conversation, 2)
    result = conversation.events.get(type="agent.tool_result").value
    assert result.outcome == "denied"
    assert "Not here." in text_of(result.content)


def test_an_approved_plan_switches_plan_mode_off_and_is_carried_out(
    alice: User, converse: Converse
):
    conversation, _ = converse(
        [
            reply(call("write_file", path="a.txt", content="x")),
            reply(call("present_plan", plan="1. Write a.txt")),
            reply(call("write_file", path="a.txt", content="x")),
            reply("Done."),
        ],
        features={"plan_mode": True},
    )
    post_message(actor=alice, conversation=conversation, text="Write.")
    rested(conversation)
    refused = conversation.events.filter(type="agent.tool_result").first()
    assert refused.value.outcome == "denied"
    plan = conversation.events.filter(type="agent.tool_use").last()
    decide_call(actor=alice, conversation=conversation, call_uid=plan.uid, allow=True)
    rested(conversation, 2)
    assert not conversation.features.plan_mode
    assert conversation.events.filter(type="agent.tool_result").last().value.outcome == "ok"
    assert texts(conversation) == ["Done."]


def test_mallory_can_do_nothing_in_alices_conversation(
    alice: User, bob: User, mallory: User, converse: Converse
):
    conversation, _ = converse(["Yes."])
    row = post_message(actor=alice, conversation=conversation, text="Hi.")
    rested(conversation)
    before = types(conversation)
    for stranger in (mallory, bob):
        for attempt in (
            lambda who: post_message(actor=who, conversation=conversation, text="x"),
            lambda who: stop(actor=who, conversation=conversation),
            lambda who: withdraw_message(actor=who, conversation=conversation, message_uid=row.uid),
            lambda who: edit_message(
                actor=who, conversation=conversation, message_uid=row.uid, text="x"
            ),
            lambda who: steer_message(actor=who, conversation=conversation, message_uid=row.uid),
            lambda who: request_retry(actor=who, conversation=conversation),
            lambda who: decide_call(
                actor=who, conversation=conversation, call_uid=row.uid, allow=True
            ),
            lambda who: set_feature(
                actor=who, conversation=conversation, feature="approval", enabled=True
            ),
        ):
            with pytest.raises(NotFound):
                attempt(stranger)
    assert types(conversation) == before


def test_two_wakes_at_once_make_one_run(alice: User, converse: Converse):
    hold = Hold()
    conversation, scripted = converse([reply(say("One", hold))])
    post_message(actor=alice, conversation=conversation, text="Go.")
    for _ in range(20):
        wake(conversation.pk)
    until(hold.reached.is_set)
    hold.release.set()
    rested(conversation)
    assert len(scripted.requests) == 1
    assert types(conversation).count("x.input_taken") == 1


def test_of_many_claimants_exactly_one_wins(converse: Converse):
    conversation, _ = converse()
    won: list[object] = []
    start = threading.Barrier(8)

    def claim() -> None:
        start.wait()
        won.append(claims.claim(conversation.pk))
        connection.close()

    threads = [threading.Thread(target=claim) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(run is not None for run in won) == 1


def test_a_claim_holds_for_its_lease_by_the_databases_clock(converse: Converse, settings):
    settings.AGENTSITE_LEASE_SECONDS = 90
    conversation, _ = converse()
    run = claims.claim(conversation.pk)
    assert run is not None
    held = Run.objects.filter(pk=run.pk, state=Run.State.RUNNING, ended_at=None)
    assert held.filter(lease_until__gt=Now() + timedelta(seconds=80)).exists()
    assert held.filter(lease_until__lt=Now() + timedelta(seconds=91)).exists()
    assert (run.conversation, run.worker) == (conversation, claims.worker())
    assert claims.claim(conversation.pk) is None, "nobody else gets it"
    assert claims.renew(run)
    assert claims.release(run)
    run.refresh_from_db()
    assert run.state == Run.State.RESTED


def test_a_run_that_lost_its_lease_can_write_nothing(converse: Converse):
    """Fenced by the claim that each append checks."""
    conversation, _ = converse()
    late = claims.claim(conversation.pk)
    assert late is not None
    assert claims.claim(conversation.pk) is None
    Run.objects.filter(pk=late.pk).update(lease_until=Now() - timedelta(seconds=1))
    taker = claims.claim(conversation.pk)
    assert taker is not None
    with pytest.raises(LeaseLost):
        log.append(conversation.pk, [Entry.of(SessionStatusRunning())], run=late)
    assert not claims.renew(late)
    assert not claims.release(late)
    log.append(conversation.pk, [Entry.of(SessionStatusRunning())], run=taker)
    assert types(conversation) == ["session.status_running"]


def test_the_sweep_finds_a_conversation_whose_worker_died(alice: User, converse: Converse):
    conversation, _ = converse(["Recovered."])
    run = claims.claim(conversation.pk)
    post_message(actor=alice, conversation=conversation, text="Go.")
    Run.objects.filter(pk=run.pk).update(worker="elsewhere:1:dead")
    still()
    assert claims.lost_conversations() == []
    Run.objects.filter(pk=run.pk).update(lease_until=Now() - timedelta(seconds=1))
    assert claims.lost_conversations() == [conversation.pk]
    engine.submit(lambda: run_conversation(conversation.pk)).result(PATIENCE)
    assert texts(conversation) == ["Recovered."]
    assert claims.lost_conversations() == []


def test_text_checkpointed_by_a_dead_worker_becomes_an_interrupted_message(
    alice: User, converse: Converse
):
    hold = Hold()
    conversation, _ = converse([reply(say("Half of it ", hold)), reply("and the rest.")])
    post_message(actor=alice, conversation=conversation, text="Go.")
    until(hold.reached.is_set)
    partial = until(lambda: PartialBlock.objects.filter(conversation=conversation).first())
    assert partial.text == "Half of it "
    engine.stop()  # as a process that is stopped
    rows = [row.value for row in conversation.events.filter(type="agent.message")]
    assert rows == []
    engine.submit(lambda: run_conversation(conversation.pk)).result(PATIENCE)
    first, second = [row.value for row in conversation.events.filter(type="agent.message")]
    assert first.interrupted
    assert texts(conversation) == ["Half of it ", "and the rest."]
    assert isinstance(second, AgentMessage)
    assert not PartialBlock.objects.exists()


def test_each_model_request_has_one_usage_row_with_its_price(alice: User, converse: Converse):
    conversation, _ = converse([reply(call("list_files")), reply("Done.")])
    model = conversation.agent_version.config.model
    ModelPrice.objects.create(
        provider="scripted",
        model=model,
        input=Decimal(100),
        output=Decimal(200),
        cache_write=0,
        cache_read=0,
    )
    post_message(actor=alice, conversation=conversation, text="Go.")
    rested(conversation)
    rows = list(Usage.objects.filter(conversation=conversation))
    assert len(rows) == 2
    assert {row.cost for row in rows} == {Decimal("0.002")}
    assert {row.user for row in rows} == {alice}
    assert conversation.context_tokens == 15


def test_a_model_without_a_price_costs_an_unknown_amount_and_not_nothing(
    alice: User, converse: Converse
):
    conversation, _ = converse(["Done."])
    post_message(actor=alice, conversation=conversation, text="Go.")
    rested(conversation)
    assert Usage.objects.get(conversation=conversation).cost is None


def test_tracing_keeps_request_and_response_in_pairs_and_only_when_it_is_on(
    alice: User, converse: Converse
):
    quiet, _ = converse(["Done."])
    traced, _ = converse([reply(call("list_files")), reply("Done.")], features={"tracing": True})
    for conversation in (quiet, traced):
        post_message(actor=alice, conversation=conversation, text="Go.")
        rested(conversation)
    assert not ModelTrace.objects.filter(conversation=quiet).exists()
    first, second = ModelTrace.objects.filter(conversation=traced)
    assert (first.response or {})["content"][0]["name"] == "list_files"
    assert second.response == {"content": [{"type": "text", "text": "Done."}], "end": "end_turn"}
    assert "Go." in str(second.request["messages"])


def test_a_missing_key_is_said_in_words_and_the_message_is_kept(alice: User, converse: Converse):
    conversation, _ = converse()
    version = conversation.agent_version
    version.stored_config = {**version.stored_config, "provider": "anthropic", "model": "m"}
    version.save(update_fields=["stored_config"])
    post_message(actor=alice, conversation=conversation, text="Go.")
    rested(conversation)
    (error,) = conversation.events.filter(type="session.error")
    assert error.value.error.code == "not_configured"
    assert "Provider keys" in error.value.error.hint
    assert conversation.stop_reason == "retries_exhausted"
    request_retry(actor=alice, conversation=conversation)
    rested(conversation, 2)


def test_there_is_nothing_to_retry_after_an_answer(alice: User, converse: Converse):
    conversation, _ = converse(["Done."])
    post_message(actor=alice, conversation=conversation, text="Go.")
    rested(conversation)
    with pytest.raises(Conflict):
        request_retry(actor=alice, conversation=conversation)


def test_switches_are_turned_by_events_and_count_at_once(alice: User, converse: Converse):
    """Also while a turn runs."""
    hold = Hold()
    conversation, _ = converse([reply(say("Hm", hold), call("write_file", path="a", content="b"))])
    post_message(actor=alice, conversation=conversation, text="Go.")
    until(hold.reached.is_set)
    set_feature(actor=alice, conversation=conversation, feature="approval", enabled=True)
    assert (
        set_feature(actor=alice, conversation=conversation, feature="approval", enabled=True)
        is None
    )
    with pytest.raises(Invalid):
        set_feature(actor=alice, conversation=conversation, feature="magic", enabled=True)
    hold.release.set()
    rested(conversation)
    assert conversation.stop_reason == "requires_action"
    assert conversation.features.approval


def test_a_fault_of_ours_ends_the_turn_in_words(alice: User, converse: Converse):
    """Here: a stored agent that no longer loads."""
    conversation, _ = converse(["Done."])
    version = conversation.agent_version
    version.stored_config = {"limits": "many"}
    version.save(update_fields=["stored_config"])
    post_message(actor=alice, conversation=conversation, text="Go.")
    rested(conversation)
    error = conversation.events.get(type="session.error").value.error
    assert error.code == "internal"
    assert conversation.runs.get().state == Run.State.FAILED


# --- trying again, later, and in between ----------------------------------------------------------


def test_a_failed_request_is_tried_again_when_its_time_has_come(alice: User, converse: Converse):
    """By a row that outlives the process, not by a sleeping thread."""
    conversation, scripted = converse([Overloaded("Busy."), "Done."])
    post_message(actor=alice, conversation=conversation, text="Go.")
    retry = until(lambda: Wake.objects.filter(conversation=conversation, kind="retry").first())
    until(lambda: not conversation.runs.filter(state="running").exists())
    conversation.refresh_from_db()
    assert conversation.status == Conversation.Status.RESCHEDULING
    engine.stop()  # the timer in memory is gone
    engine.submit(lambda: run_conversation(conversation.pk)).result(PATIENCE)
    assert len(scripted.requests) == 1, "it was not due"
    assert claims.lost_conversations() == []
    Wake.objects.filter(pk=retry.pk).update(due_at=Now() - timedelta(seconds=1))
    assert claims.lost_conversations() == [conversation.pk]
    engine.submit(lambda: run_conversation(conversation.pk)).result(PATIENCE)
    assert texts(conversation) == ["Done."]
    assert claims.lost_conversations() == []


def test_whoever_does_not_want_to_wait_has_a_request_made_again_at_once(
    alice: User, mallory: User, converse: Converse
):
    conversation, scripted = converse([RateLimited("Slowly.", retry_after=500.0), "Done."])
    post_message(actor=alice, conversation=conversation, text="Go.")
    until(lambda: Wake.objects.filter(conversation=conversation).exists())
    until(lambda: not conversation.runs.filter(state="running").exists())
    with pytest.raises(NotFound):
        request_retry(actor=mallory, conversation=conversation)
    request_retry(actor=alice, conversation=conversation)
    rested(conversation)
    assert texts(conversation) == ["Done."]
    assert len(scripted.requests) == 2
    assert not Wake.objects.waiting().exists()


def test_stopping_while_a_request_is_put_off_ends_the_turn(alice: User, converse: Converse):
    conversation, scripted = converse([RateLimited("Slowly.", retry_after=500.0)])
    post_message(actor=alice, conversation=conversation, text="Go.")
    until(lambda: Wake.objects.filter(conversation=conversation).exists())
    stop(actor=alice, conversation=conversation)
    rested(conversation)
    assert len(scripted.requests) == 1
    assert not Wake.objects.waiting().exists()


def test_a_message_posted_while_a_request_is_put_off_waits_and_nothing_spins(
    alice: User, converse: Converse
):
    conversation, scripted = converse([RateLimited("Slowly.", retry_after=500.0)])
    post_message(actor=alice, conversation=conversation, text="Go.")
    until(lambda: Wake.objects.filter(conversation=conversation).exists())
    post_message(actor=alice, conversation=conversation, text="And this.")
    still()
    assert len(scripted.requests) == 1
    assert conversation.runs.count() < 5
    assert claims.lost_conversations() == []


def test_an_agents_wake_comes_due_once_and_begins_a_turn(alice: User, converse: Converse):
    conversation, scripted = converse(
        [
            reply(call("continue_later", seconds=600, reason="look", key="k")),
            reply("Resting."),
            reply(call("continue_later", seconds=60, reason="again", key="k")),
            reply("Resting too."),
            reply("Woken."),
        ]
    )
    post_message(actor=alice, conversation=conversation, text="Watch.")
    rested(conversation)
    post_message(actor=alice, conversation=conversation, text="And?")
    rested(conversation, 2)
    (wake_row,) = Wake.objects.waiting().filter(conversation=conversation)
    assert wake_row.reason == "look", "the one that waits under a key stays"
    Wake.objects.filter(pk=wake_row.pk).update(due_at=Now() - timedelta(seconds=1))
    for _ in range(3):
        engine.submit(lambda: run_conversation(conversation.pk)).result(PATIENCE)
    assert texts(conversation)[-1] == "Woken."
    assert len(scripted.requests) == 5
    assert types(conversation).count("x.wake_due") == 1


def test_an_interrupt_cancels_the_wakes_that_wait(alice: User, converse: Converse):
    hold = Hold()
    conversation, _ = converse(
        [reply(call("continue_later", seconds=600, reason="look")), reply(say("Hm", hold))]
    )
    post_message(actor=alice, conversation=conversation, text="Watch.")
    until(hold.reached.is_set)
    assert Wake.objects.waiting().exists()
    stop(actor=alice, conversation=conversation)
    rested(conversation)
    assert not Wake.objects.waiting().exists()


def test_a_waiting_message_can_be_edited_and_steered(alice: User, converse: Converse):
    hold = Hold()
    conversation, scripted = converse([reply(say("Hm", hold), call("list_files")), reply("Done.")])
    taken = post_message(actor=alice, conversation=conversation, text="Go.")
    until(hold.reached.is_set)
    row = post_message(actor=alice, conversation=conversation, text="Wait")
    edit_message(actor=alice, conversation=conversation, message_uid=row.uid, text="Wait a bit.")
    with pytest.raises(Invalid):
        edit_message(actor=alice, conversation=conversation, message_uid=row.uid, text=" ")
    with pytest.raises(Conflict):
        edit_message(actor=alice, conversation=conversation, message_uid=taken.uid, text="x")
    steer_message(actor=alice, conversation=conversation, message_uid=row.uid)
    hold.release.set()
    rested(conversation)
    assert scripted.requests[-1].messages[-1].parts[-1].text == "Wait a bit."
    assert types(conversation).count("session.status_idle") == 1


def test_the_agent_of_somebody_who_left_does_nothing_more(
    alice: User, bob: User, acme, converse: Converse
):
    """Nobody could see or stop it."""
    conversation, scripted = converse(
        [reply(call("continue_later", seconds=600, reason="look")), reply("Resting.")]
    )
    post_message(actor=alice, conversation=conversation, text="Watch.")
    rested(conversation)
    acme.memberships.filter(user=alice).delete()
    Wake.objects.update(due_at=Now() - timedelta(seconds=1))
    engine.submit(lambda: run_conversation(conversation.pk)).result(PATIENCE)
    assert len(scripted.requests) == 2
    assert claims.lost_conversations() == []


def test_removing_a_member_stops_what_her_agents_do(alice: User, acme, converse: Converse):
    hold = Hold()
    conversation, _ = converse([reply(say("So far", hold))])
    post_message(actor=alice, conversation=conversation, text="Go.")
    until(hold.reached.is_set)
    dispatch("conversations.stop_of_member", user_id=alice.pk, organisation_id=acme.pk)
    rested(conversation)
    assert conversation.events.get(type="session.status_idle").value.interrupted


def test_a_wake_that_comes_due_between_two_looks_is_not_lost(alice: User, converse: Converse):
    """Exactly those that were read are done."""
    conversation, _ = converse(lambda _request: "Yes.")
    for name in ("first", "second"):
        Wake.objects.create(
            conversation=conversation,
            kind="agent",
            due_at=Now() + timedelta(seconds=600),
            reason=name,
            event_uid=name,
        )
    Wake.objects.filter(reason="first").update(due_at=Now() - timedelta(seconds=1))
    with transaction.atomic():
        taken = delays.take_due(conversation.pk)
        Wake.objects.filter(reason="second").update(due_at=Now() - timedelta(seconds=1))
    assert [entry.event.reason for entry in taken] == ["first"]
    assert Wake.objects.waiting().get().reason == "second"


def test_a_wake_that_came_due_outlives_the_process_that_told_the_log(
    alice: User, converse: Converse
):
    """The process dies before a turn takes it; the sweep finds that a run is owed."""
    conversation, _ = converse(lambda _request: "Yes.")
    first, second = (Entry.of(WakeDue(reason=name)) for name in ("first", "second"))
    log.append(conversation.pk, [first, second])
    assert claims.lost_conversations() == [conversation.pk]

    taken = InputTaken(event_ids=(first.uid,))
    over = SessionStatusIdle(stop_reason=EndTurn())
    log.append(conversation.pk, [Entry.of(SessionStatusRunning()), Entry.of(taken)])
    log.append(conversation.pk, [Entry.of(over)])
    assert claims.lost_conversations() == [conversation.pk], "the other one waits as well"

    wake(conversation.pk)
    rested(conversation, 2)
    assert types(conversation).count("x.input_taken") == 2
    assert claims.lost_conversations() == []


def test_slow_tools_hold_up_no_write_to_the_log(
    alice: User, converse: Converse, tmp_path, monkeypatch
):
    """A step full of slow tools leaves the threads that write alone."""
    over = tmp_path / "over"
    (tmp_path / "regex.py").write_text(
        f"import os, time\nwhile not os.path.exists({str(over)!r}): time.sleep(0.01)"
    )
    monkeypatch.setattr(isolation, "_SCRIPTS", tmp_path)
    monkeypatch.setitem(search.__kwdefaults__, "seconds", 10 * PATIENCE)
    conversation, _ = converse(
        [reply(*(call("grep", pattern="a") for _ in range(12))), reply("Done.")]
    )
    post_message(actor=alice, conversation=conversation, text="Go.")
    until(lambda: "span.tool_start" in types(conversation))
    try:
        engine.submit(lambda: engine.in_database(lambda: None)).result(PATIENCE)
        assert "span.tool_end" not in types(conversation)
        stop(actor=alice, conversation=conversation)
        rested(conversation)
    finally:
        over.touch()

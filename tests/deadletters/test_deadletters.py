"""Dead letters: what becomes of turns that fail for good, and how they are done again."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.core.cache import cache
from django.db import connection
from django.db.models.functions import Now

from accounts.models import Membership, Organisation, Role, User
from conversations import claims, log, lostruns
from conversations.actions.deciding import decide_call
from conversations.actions.messages import post_message, request_retry, stop
from conversations.models import Conversation, Event, Run, Wake
from conversations.runner import run_conversation
from conversations.wakes import wake_lost
from deadletters import projection as deadletters
from deadletters.actions.letters import discard, replay, replay_many
from deadletters.models import DeadLetter
from harness.content import Text, text_of
from harness.errors import (
    BadCredentials,
    Conflict,
    Invalid,
    NotFound,
    Overloaded,
    ProviderTimedOut,
    RateLimited,
    TooLarge,
)
from harness.events import (
    AgentMessage,
    RetriesExhausted,
    SessionError,
    SessionErrorBody,
    SessionStatusIdle,
    SessionStatusRunning,
    StopDetails,
)
from harness.history import Entry
from harness.messages import Usage
from jobs.engine import engine
from providers.scripted import Hold, call, registered, reply, say
from tests.cast import join
from tests.conversations.conftest import Converse, rested, still, types, until
from tests.patience import PATIENCE

pytestmark = pytest.mark.django_db(transaction=True)


def run_now(conversation: Conversation) -> None:
    engine.submit(lambda: run_conversation(conversation.pk)).result(PATIENCE)


def hurry(conversation: Conversation) -> list[float]:
    """Let every retry come due at once until the conversation rests; the delays it was put off by."""
    delays = []
    for _ in range(20):
        still()
        waiting = Wake.objects.waiting().filter(conversation=conversation, kind="retry")
        row = waiting.first()
        if row is None:
            break
        put_off = Event.objects.get(uid=row.event_uid).value
        delays.append(put_off.delay_seconds)
        waiting.update(due_at=Now() - timedelta(seconds=1))
        run_now(conversation)
    conversation.refresh_from_db()
    return delays


def claim(conversation: Conversation) -> Run:
    run = claims.claim(conversation.pk)
    assert run is not None
    return run


def fail(conversation: Conversation, code: str = "overloaded") -> DeadLetter:
    """A letter as the log opens it, without a run."""
    details = StopDetails(code=code, message="It failed.", hint="Wait.")
    body = SessionErrorBody(type="unknown_error", code=code, message="It failed.")
    idle = SessionStatusIdle(stop_reason=RetriesExhausted(), stop_details=details)
    log.append(conversation.pk, [Entry.of(SessionError(error=body)), Entry.of(idle)])
    return DeadLetter.objects.unsettled().get(conversation=conversation)


@pytest.fixture
def failed(alice: User, converse: Converse):
    """A conversation whose service is overloaded until `service["up"]`, and its letter."""
    service = {"up": False}

    def answer(_request):
        return "Done." if service["up"] else BadCredentials("Wrong key.", hint="Enter another.")

    conversation, scripted = converse(answer)
    post_message(actor=alice, conversation=conversation, text="Go.")
    rested(conversation)
    return conversation, scripted, service, DeadLetter.objects.get(conversation=conversation)


# --- how a letter comes to be ---------------------------------------------------------------------


def test_a_poisoned_conversation_makes_its_allowed_calls_and_lands_in_dead_letters(
    alice: User, converse: Converse
):
    """1, 2, 4 seconds, then no more; nothing runs again by itself, and a replay after
    the fix completes it."""
    service = {"up": False}
    conversation, scripted = converse(
        lambda _request: "Done." if service["up"] else Overloaded("Busy.", hint="Wait."),
        limits={"retries": 3},
    )
    post_message(actor=alice, conversation=conversation, text="Go.")
    delays = hurry(conversation)
    assert [int(delay // wanted) for delay, wanted in zip(delays, (1, 2, 4), strict=True)] == [
        1
    ] * 3
    assert len(scripted.requests) == 4
    letter = DeadLetter.objects.get(conversation=conversation)
    assert (letter.state, letter.code, letter.cause) == ("open", "overloaded", "transient")
    assert letter.attempts == 4
    assert (letter.message, letter.hint) == ("Busy.", "Wait.")
    assert (letter.provider, letter.model) == ("scripted", scripted.requests[0].model)
    assert letter.organisation == conversation.organisation
    last_start = conversation.events.filter(type="span.model_request_start").last()
    last_error = conversation.events.filter(type="session.error").last()
    assert (letter.request_seq, letter.error_seq) == (last_start.seq, last_error.seq)
    assert letter.run == last_error.run

    assert claims.lost_conversations() == []
    run_now(conversation)
    still()
    assert len(scripted.requests) == 4

    service["up"] = True
    replay(actor=alice, letter=letter)
    rested(conversation, 2)
    assert conversation.stop_reason == "end_turn"
    letter.refresh_from_db()
    assert (letter.state, letter.closed_by, letter.replays) == ("resolved", alice, 1)
    assert letter.closed_at is not None
    said = conversation.events.filter(type="agent.message").last()
    assert text_of(said.value.content) == "Done."


def test_a_wrong_key_is_tried_once_and_is_a_permanent_cause(failed):
    _conversation, scripted, _service, letter = failed
    still()
    assert len(scripted.requests) == 1
    assert (letter.code, letter.cause, letter.attempts) == ("bad_credentials", "permanent", 1)


@pytest.mark.parametrize("problem", [RateLimited("Slowly."), ProviderTimedOut("Silent.")])
def test_what_passes_in_time_leaves_no_letter_and_its_result_is_in_the_log(
    alice: User, converse: Converse, problem
):
    """Else the result of a retry that worked would be lost."""
    conversation, scripted = converse([problem, problem, "Done."])
    post_message(actor=alice, conversation=conversation, text="Go.")
    hurry(conversation)
    assert len(scripted.requests) == 3
    assert "agent.message" in types(conversation)
    assert not DeadLetter.objects.exists()


def test_a_fault_of_ours_is_internal_and_not_tried_again(alice: User, converse: Converse):
    """Code errors are not retried."""
    conversation, scripted = converse(["Done."])
    version = conversation.agent_version
    good = version.stored_config
    version.stored_config = {"limits": "many"}
    version.save(update_fields=["stored_config"])
    post_message(actor=alice, conversation=conversation, text="Go.")
    rested(conversation)
    still()
    letter = DeadLetter.objects.get(conversation=conversation)
    assert (letter.code, letter.cause, letter.attempts) == ("internal", "internal", 0)
    assert letter.request_seq is None
    assert scripted.requests == []
    assert claims.lost_conversations() == []

    version.stored_config = good
    version.save(update_fields=["stored_config"])
    replay(actor=alice, letter=letter)
    rested(conversation, 2)
    assert types(conversation).count("x.input_taken") == 1, "the message had not been taken"
    letter.refresh_from_db()
    assert letter.state == "resolved"


def test_calls_that_a_fault_of_ours_left_open_are_answered_by_a_replay(
    alice: User, converse: Converse
):
    conversation, _ = converse([reply(call("list_files")), "Done."])
    message = post_message(actor=alice, conversation=conversation, text="Go.")
    rested(conversation)
    # As if the run had broken right after the reply: what came later is taken away.
    asked = conversation.events.get(type="agent.tool_use")
    end = conversation.events.filter(type="span.model_request_end").first()
    Event.objects.filter(conversation=conversation, seq__gt=end.seq).delete()
    Conversation.objects.filter(pk=conversation.pk).update(last_seq=end.seq)
    letter = fail(conversation, "internal")
    assert conversation.events.filter(subject=asked.uid).count() == 1
    replay(actor=alice, letter=letter)
    until(lambda: "agent.tool_result" in types(conversation))
    still()
    assert conversation.events.get(type="agent.tool_result").value.outcome == "ok"
    assert message.seq < end.seq


def test_a_person_can_try_again_where_a_fault_of_ours_left_calls_open(
    alice: User, converse: Converse
):
    conversation, scripted = converse([reply(call("list_files")), "Done."])
    post_message(actor=alice, conversation=conversation, text="Go.")
    rested(conversation)
    end = conversation.events.filter(type="span.model_request_end").first()
    Event.objects.filter(conversation=conversation, seq__gt=end.seq).delete()
    Conversation.objects.filter(pk=conversation.pk).update(last_seq=end.seq)
    fail(conversation, "internal")
    request_retry(actor=alice, conversation=conversation)
    until(lambda: "agent.tool_result" in types(conversation))
    still()
    assert len(scripted.requests) == 3


# --- how it grows and is settled ------------------------------------------------------------------


def test_trying_again_in_vain_grows_the_letter_instead_of_opening_another(alice: User, failed):
    conversation, _scripted, _service, letter = failed
    for times in (2, 3):
        request_retry(actor=alice, conversation=conversation)
        rested(conversation, times)
    again = DeadLetter.objects.get(conversation=conversation)
    assert again.pk == letter.pk
    assert (again.attempts, again.state, again.replays) == (3, "open", 0)
    assert again.error_seq > letter.error_seq


def test_trying_again_with_success_resolves_the_letter(alice: User, failed):
    conversation, _scripted, service, letter = failed
    service["up"] = True
    request_retry(actor=alice, conversation=conversation)
    rested(conversation, 2)
    letter.refresh_from_db()
    assert (letter.state, letter.closed_by) == ("resolved", alice)


def test_a_conversation_that_goes_on_by_a_new_message_settles_its_letter(alice: User, failed):
    conversation, _scripted, service, letter = failed
    service["up"] = True
    post_message(actor=alice, conversation=conversation, text="Never mind. What is up?")
    rested(conversation, 2)
    letter.refresh_from_db()
    assert (letter.state, letter.closed_by) == ("resolved", None)
    with pytest.raises(Conflict, match="closed"):
        replay(actor=alice, letter=letter)


def test_a_replay_that_fails_opens_the_same_letter_again(alice: User, failed):
    conversation, _scripted, _service, letter = failed
    replay(actor=alice, letter=letter)
    rested(conversation, 2)
    letter.refresh_from_db()
    assert (letter.state, letter.attempts, letter.replays) == ("open", 2, 1)
    assert (letter.closed_at, letter.closed_by) == (None, None)


def test_a_replay_that_a_person_stops_leaves_the_letter_open(alice: User, converse: Converse):
    hold = Hold()
    conversation, _ = converse([BadCredentials("No."), reply(say("So", hold))])
    post_message(actor=alice, conversation=conversation, text="Go.")
    rested(conversation)
    letter = DeadLetter.objects.get(conversation=conversation)
    replay(actor=alice, letter=letter)
    until(hold.reached.is_set)
    letter.refresh_from_db()
    assert letter.state == "replayed"
    stop(actor=alice, conversation=conversation)
    rested(conversation, 2)
    letter.refresh_from_db()
    assert (letter.state, letter.closed_by) == ("open", None)


def test_a_letter_may_be_replayed_so_often_and_not_once_more(alice: User, failed, settings):
    settings.AGENTSITE_REPLAYS_PER_LETTER = 2
    conversation, scripted, _service, letter = failed
    for times in (2, 3):
        replay(actor=alice, letter=letter)
        rested(conversation, times)
    with pytest.raises(Conflict, match="2 times"):
        replay(actor=alice, letter=letter)
    still()
    assert len(scripted.requests) == 3


# --- how it is replayed ---------------------------------------------------------------------------


def test_a_replay_with_another_model_reaches_the_service_with_it_for_that_turn(alice: User, failed):
    conversation, scripted, service, letter = failed
    with registered("other", lambda _request: "Done by another.") as other:
        replay(actor=alice, letter=letter, model="other")
        rested(conversation, 2)
    assert [request.model for request in other.requests] == ["other"]
    start = conversation.events.filter(type="span.model_request_start").last()
    assert start.value.model == "other"
    service["up"] = True
    post_message(actor=alice, conversation=conversation, text="And now?")
    rested(conversation, 3)
    assert scripted.requests[-1].model != "other"


def test_what_a_replay_names_holds_for_a_message_that_had_not_been_taken(
    alice: User, converse: Converse
):
    conversation, _ = converse([])
    run = claim(conversation)
    post_message(actor=alice, conversation=conversation, text="Go.")
    still()
    claims.release(run)
    letter = fail(conversation, "internal")
    with registered("other", lambda _request: "Done.") as other:
        replay(actor=alice, letter=letter, model="other", mode="start")
        rested(conversation, 2)
    assert len(other.requests) == 1
    assert other.requests[0].messages[0].parts[0] == Text(text="Go.")


def test_a_raised_budget_carries_a_turn_that_would_stop_at_the_agents_own(
    alice: User, converse: Converse
):
    """The agent's own budget would stop it after the first reply."""
    big = Usage(input_tokens=1_500, output_tokens=10)
    conversation, scripted = converse(
        [
            BadCredentials("No."),
            reply(call("list_files"), usage=big),
            reply(call("list_files"), usage=big),
            "Done.",
        ],
        limits={"token_budget": 1_000},
    )
    post_message(actor=alice, conversation=conversation, text="Go.")
    rested(conversation)
    letter = DeadLetter.objects.get(conversation=conversation)
    replay(actor=alice, letter=letter, token_budget=50_000)
    rested(conversation, 2)
    assert conversation.stop_reason == "end_turn"
    assert len(scripted.requests) == 4


def _half_done(alice: User, converse: Converse):
    """A turn that listed files and then failed."""
    conversation, scripted = converse(
        [reply("Looking.", call("list_files")), BadCredentials("No."), "Done."]
    )
    post_message(actor=alice, conversation=conversation, text="Go.")
    rested(conversation)
    return conversation, scripted, DeadLetter.objects.get(conversation=conversation)


def test_from_the_step_the_prompt_holds_what_was_done(alice: User, converse: Converse):
    conversation, scripted, letter = _half_done(alice, converse)
    replay(actor=alice, letter=letter, mode="step")
    rested(conversation, 2)
    failing, again = scripted.requests[-2:]
    assert again.messages == failing.messages
    assert "Looking." in str(again.messages)


def test_from_the_start_the_prompt_forgets_what_was_done_and_the_log_keeps_it(
    alice: User, converse: Converse
):
    conversation, scripted, letter = _half_done(alice, converse)
    before = types(conversation)
    replay(actor=alice, letter=letter, mode="start")
    rested(conversation, 2)
    (message,) = scripted.requests[-1].messages
    asked, note = [part.text for part in message.parts]
    assert asked == "Go."
    assert "worked on this before" in note
    assert types(conversation)[: len(before)] == before


def test_from_the_start_calls_left_open_are_not_carried_out(alice: User, converse: Converse):
    conversation, scripted = converse(
        [reply(call("write_file", path="a.txt", content="x")), "Done."]
    )
    post_message(actor=alice, conversation=conversation, text="Go.")
    rested(conversation)
    end = conversation.events.filter(type="span.model_request_end").first()
    Event.objects.filter(conversation=conversation, seq__gt=end.seq).delete()
    Conversation.objects.filter(pk=conversation.pk).update(last_seq=end.seq)
    letter = fail(conversation, "internal")
    with registered("other", lambda _request: "Done.") as other:
        replay(actor=alice, letter=letter, mode="start", model="other")
        until(lambda: len(other.requests) == 1)
        still()
    assert conversation.events.get(type="agent.tool_result").value.outcome == "stopped"
    assert "span.tool_start" not in types(conversation)
    assert len(other.requests[0].messages) == 1
    assert len(scripted.requests) == 2


@pytest.mark.parametrize(
    ("field", "choices"),
    [
        ("mode", {"mode": "middle"}),
        ("model", {"model": "m" * 101}),
        ("model", {"model": "a\nb"}),
        ("token_budget", {"token_budget": 999}),
        ("token_budget", {"token_budget": 10**10}),
    ],
)
def test_a_choice_that_breaks_a_rule_is_named_and_changes_nothing(
    alice: User, failed, field: str, choices: dict[str, Any]
):
    conversation, _scripted, _service, letter = failed
    before = types(conversation)
    with pytest.raises(Invalid) as refused:
        replay(actor=alice, letter=letter, **choices)
    assert refused.value.field == field
    assert types(conversation) == before


def test_of_two_who_replay_at_once_one_does(staff: User, alice: User, failed):
    conversation, scripted, service, letter = failed
    service["up"] = True
    start = threading.Barrier(2)
    outcomes: list[object] = []

    def attempt(actor: User) -> None:
        start.wait()
        try:
            outcomes.append(replay(actor=actor, letter=letter))
        except Conflict as refusal:
            outcomes.append(refusal)
        connection.close()

    threads = [threading.Thread(target=attempt, args=(who,)) for who in (staff, alice)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rested(conversation, 2)
    assert sum(isinstance(outcome, Event) for outcome in outcomes) == 1
    assert types(conversation).count("x.retry_requested") == 1
    assert len(scripted.requests) == 2


# --- several, and none ----------------------------------------------------------------------------


def _several(converse: Converse, count: int) -> list[DeadLetter]:
    letters = []
    for _ in range(count):
        conversation, _script = converse(lambda _request: "Done.")
        run = claim(conversation)
        post_message(actor=conversation.owner, conversation=conversation, text="Go.")
        still()
        letters.append(fail(conversation))
        claims.release(run)
    return letters


def test_as_many_are_replayed_at_once_as_the_cap_says_and_not_one_more(
    staff: User, converse: Converse, settings
):
    settings.AGENTSITE_REPLAYS_AT_ONCE = 2
    letters = _several(converse, 3)
    with pytest.raises(Invalid, match="at most 2") as refused:
        replay_many(actor=staff, letters=letters)
    assert refused.value.field == "letters"
    assert {letter.state for letter in DeadLetter.objects.all()} == {"open"}
    done = replay_many(actor=staff, letters=letters[:2])
    assert (len(done.letters), done.refused) == (2, [])
    for letter in letters[:2]:
        rested(letter.conversation, 2)
    with pytest.raises(Invalid, match="at most 1"):
        replay_many(actor=staff, letters=letters[:2], limit=1)
    assert DeadLetter.objects.open().get() == letters[2]


def test_one_refused_letter_does_not_keep_the_others(staff: User, converse: Converse):
    first, second = _several(converse, 2)
    discard(actor=staff, letter=first, reason="Obsolete.")
    done = replay_many(actor=staff, letters=[first, second])
    assert done.letters == [second]
    ((letter, refusal),) = done.refused
    assert letter == first
    assert isinstance(refusal, Conflict)
    rested(second.conversation, 2)


def test_discarding_needs_a_reason_and_happens_once(alice: User, failed):
    conversation, _scripted, _service, letter = failed
    before = types(conversation)
    for empty in ("", "  ", "\0"):
        with pytest.raises(Invalid) as refused:
            discard(actor=alice, letter=letter, reason=empty)
        assert refused.value.field == "reason"
    with pytest.raises(TooLarge):
        discard(actor=alice, letter=letter, reason="x" * 2_001)
    discard(actor=alice, letter=letter, reason="x" * 2_000)
    letter.refresh_from_db()
    assert (letter.state, letter.closed_by) == ("discarded", alice)
    for again in (
        lambda: discard(actor=alice, letter=letter, reason="Again."),
        lambda: replay(actor=alice, letter=letter),
    ):
        with pytest.raises(Conflict):
            again()
    assert types(conversation) == before


def test_only_staff_and_who_manages_the_organisation_may_do_anything(
    alice: User, bob: User, mallory: User, acme: Organisation, elsewhere: Organisation, failed
):
    """For everybody else there is no such letter."""
    conversation, _scripted, service, letter = failed
    mere_staff = User.objects.create_user("helper", is_staff=True)
    before = types(conversation)
    for stranger in (bob, mallory, mere_staff):
        for attempt in (
            lambda who: replay(actor=who, letter=letter),
            lambda who: replay_many(actor=who, letters=[letter]),
            lambda who: discard(actor=who, letter=letter, reason="Mine."),
        ):
            with pytest.raises(NotFound):
                attempt(stranger)
    assert types(conversation) == before
    assert not DeadLetter.objects.manageable_by(mallory).exists()
    service["up"] = True
    Membership.objects.filter(user=bob, organisation=acme).update(role=Role.ADMIN)
    replay(actor=bob, letter=letter)
    rested(conversation, 2)
    join(mallory, acme, Role.REVIEWER)
    assert not DeadLetter.objects.manageable_by(mallory).exists()


def test_counts_are_by_class_and_code(converse: Converse):
    for code in ("overloaded", "overloaded", "bad_credentials", "run_lost"):
        conversation, _ = converse()
        fail(conversation, code)
    figures = [(row.cause, row.code, row.letters) for row in deadletters.counts()]
    assert figures == [
        ("transient", "overloaded", 2),
        ("internal", "run_lost", 1),
        ("permanent", "bad_credentials", 1),
    ]
    one = deadletters.counts(DeadLetter.objects.filter(code="run_lost"))
    assert [row.letters for row in one] == [1]


@pytest.mark.parametrize(
    ("code", "cause"),
    [
        ("rate_limited", "transient"),
        ("overloaded", "transient"),
        ("provider_timed_out", "transient"),
        ("provider_unreachable", "transient"),
        ("broken_stream", "transient"),
        ("bad_credentials", "permanent"),
        ("context_too_long", "permanent"),
        ("provider_error", "permanent"),
        ("unheard_of", "permanent"),
        ("internal", "internal"),
        ("run_lost", "internal"),
    ],
)
def test_the_class_follows_what_the_error_says_of_itself(code: str, cause: str):
    assert deadletters.cause_of(code) == cause


# --- the journal of claims ------------------------------------------------------------------------


def journal(conversation: Conversation) -> list[tuple[str, str]]:
    """Steps with what woke or ended them; consecutive hints that found nothing are left out."""
    rows = conversation.activations.order_by("pk").values_list("run", "step", "cause", "detail")
    skipped = {run for run, step, _cause, _detail in rows if step == "skipped"}
    return [(step, cause or detail) for run, step, cause, detail in rows if run not in skipped]


def test_a_claim_that_comes_to_rest_is_leased_and_acked(alice: User, converse: Converse):
    conversation, _ = converse(["Done."])
    post_message(actor=alice, conversation=conversation, text="Go.")
    rested(conversation)
    still()
    assert journal(conversation) == [("leased", "hint"), ("acked", "end_turn")]
    leased, acked = conversation.activations.order_by("pk")
    assert leased.run == acked.run == conversation.runs.get()
    assert leased.worker == claims.worker()
    assert leased.created_at <= acked.created_at


def test_a_claim_that_asks_a_person_is_blocked(alice: User, converse: Converse):
    conversation, _ = converse(
        [reply(call("write_file", path="a.txt", content="x")), "Done."],
        features={"approval": True},
    )
    post_message(actor=alice, conversation=conversation, text="Go.")
    rested(conversation)
    still()
    assert journal(conversation) == [("leased", "hint"), ("blocked", "requires_action")]


def test_a_message_while_a_person_is_asked_waits_and_nothing_spins(alice: User, converse: Converse):
    conversation, scripted = converse(
        [reply(call("write_file", path="a.txt", content="x")), "Done.", "And this."],
        features={"approval": True},
    )
    post_message(actor=alice, conversation=conversation, text="Go.")
    rested(conversation)
    post_message(actor=alice, conversation=conversation, text="And this.")
    still()
    steps = [row.step for row in conversation.activations.order_by("pk")][2:]
    assert steps == ["leased", "skipped"]
    assert claims.lost_conversations() == []
    asked = conversation.events.get(type="agent.tool_use")
    decide_call(actor=alice, conversation=conversation, call_uid=asked.uid, allow=True)
    rested(conversation, 3)
    assert len(scripted.requests) == 3


def test_a_claim_whose_request_is_put_off_is_requeued_and_leased_again_for_the_retry(
    alice: User, converse: Converse
):
    conversation, _ = converse([Overloaded("Busy."), "Done."])
    post_message(actor=alice, conversation=conversation, text="Go.")
    hurry(conversation)
    still()
    assert [step for step in journal(conversation) if step != ("leased", "hint")] == [
        ("requeued", ""),
        ("leased", "retry"),
        ("acked", "end_turn"),
    ]


def test_a_claim_that_is_lost_is_abandoned_once_and_the_next_says_who_found_it(
    alice: User, converse: Converse
):
    conversation = waiting_message(alice, converse, lambda _request: "Done.")
    before = len(journal(conversation))
    lose_a_run(conversation)
    claims.lost_conversations()
    wake_lost(claims.lost_conversations)
    rested(conversation)
    still()
    assert journal(conversation)[before:] == [
        ("leased", "hint"),
        ("abandoned", ""),
        ("leased", "sweep"),
        ("acked", "end_turn"),
    ]


def test_a_run_that_dies_right_after_a_sweep_woke_it_is_woken_by_the_very_next_one(
    alice: User, converse: Converse, settings
):
    """One sweep keeps the next from repeating its wakes, but not those that were had."""
    settings.AGENTSITE_SWEEP_SECONDS = 3600
    conversation = waiting_message(alice, converse, lambda _request: "Done.")
    # As if the sweep's hint had reached a process that claimed the conversation and was killed.
    cache.add(f"woken:{conversation.pk}", 1, timeout=3600)
    wake_lost(claims.lost_conversations)
    still()
    assert conversation.runs.filter(state=Run.State.RESTED).count() == 1, "only the fixture's own"
    run = claim(conversation)
    Run.objects.filter(pk=run.pk).update(lease_until=Now() - timedelta(seconds=1))
    wake_lost(claims.lost_conversations)
    rested(conversation)


def test_a_claim_for_a_due_wake_says_so(alice: User, converse: Converse):
    conversation, _ = converse(
        [reply(call("continue_later", seconds=600, reason="look")), "Resting.", "Woken."]
    )
    post_message(actor=alice, conversation=conversation, text="Watch.")
    rested(conversation)
    still()
    Wake.objects.waiting().update(due_at=Now() - timedelta(seconds=1))
    run_now(conversation)
    assert journal(conversation)[-2:] == [("leased", "due_wake"), ("acked", "end_turn")]


# --- runs that die --------------------------------------------------------------------------------


def lose_a_run(conversation: Conversation, *entries: Entry) -> Run:
    """A run that appends `entries` and is gone."""
    run = claim(conversation)
    if entries:
        log.append(conversation.pk, entries, run=run)
    Run.objects.filter(pk=run.pk).update(lease_until=Now() - timedelta(seconds=1))
    claims.lost_conversations()
    run.refresh_from_db()
    assert run.state == Run.State.LOST
    return run


def waiting_message(alice: User, converse: Converse, script) -> Conversation:
    conversation, _ = converse(script)
    run = claim(conversation)
    post_message(actor=alice, conversation=conversation, text="Go.")
    still()
    claims.release(run)
    return conversation


def test_a_conversation_whose_runs_keep_dying_is_given_up_and_said_so(
    alice: User, converse: Converse, settings
):
    settings.AGENTSITE_LOST_RUNS = 3
    conversation = waiting_message(alice, converse, lambda _request: "Done.")
    for _ in range(3):
        lose_a_run(conversation, Entry.of(SessionStatusRunning()))
    run_now(conversation)
    conversation.refresh_from_db()
    assert (conversation.status, conversation.stop_reason) == ("idle", "retries_exhausted")
    error = conversation.events.get(type="session.error").value.error
    assert error.code == "run_lost"
    letter = DeadLetter.objects.get(conversation=conversation)
    assert (letter.code, letter.cause, letter.attempts) == ("run_lost", "internal", 3)
    assert claims.lost_conversations() == []
    assert conversation.runs.first().error == "run_lost"
    replay(actor=alice, letter=letter)
    rested(conversation, 2)
    assert conversation.stop_reason == "end_turn"


def test_one_whose_neighbours_died_with_it_is_not_given_up_for_what_another_did(
    alice: User, converse: Converse, settings
):
    """A process carries hundreds of conversations; one that kills it takes all of them along."""
    settings.AGENTSITE_LOST_RUNS = 2
    innocent = waiting_message(alice, converse, lambda _request: "Done.")
    guilty = waiting_message(alice, converse, lambda _request: "Done.")

    def die_together(number: int) -> None:
        for each in (innocent, guilty):
            run = lose_a_run(each, Entry.of(SessionStatusRunning()))
            Run.objects.filter(pk=run.pk).update(worker=f"there:{number}:shared")

    for number in range(2 * lostruns.SHARED_LOSSES - 1):
        die_together(number)
        assert not lostruns.is_poisoned(innocent.pk)
    for number in range(2):
        run = lose_a_run(guilty, Entry.of(SessionStatusRunning()))
        Run.objects.filter(pk=run.pk).update(worker=f"there:{number}:alone")
    assert lostruns.is_poisoned(guilty.pk)
    run_now(innocent)
    rested(innocent)
    assert innocent.stop_reason == "end_turn"


def test_nor_is_it_tried_for_ever(alice: User, converse: Converse, settings):
    settings.AGENTSITE_LOST_RUNS = 2
    pair = [waiting_message(alice, converse, lambda _request: "Done.") for _ in range(2)]
    for number in range(2 * lostruns.SHARED_LOSSES):
        for each in pair:
            run = lose_a_run(each, Entry.of(SessionStatusRunning()))
            Run.objects.filter(pk=run.pk).update(worker=f"there:{number}:shared")
    assert lostruns.is_poisoned(pair[0].pk)


def test_one_lost_run_fewer_is_tried_again(alice: User, converse: Converse, settings):
    settings.AGENTSITE_LOST_RUNS = 3
    conversation = waiting_message(alice, converse, lambda _request: "Done.")
    for _ in range(2):
        lose_a_run(conversation, Entry.of(SessionStatusRunning()))
    run_now(conversation)
    conversation.refresh_from_db()
    assert conversation.stop_reason == "end_turn"
    assert not DeadLetter.objects.exists()


def test_runs_that_die_but_get_somewhere_are_no_poison(alice: User, converse: Converse, settings):
    """A long turn outlives any number of killed processes."""
    settings.AGENTSITE_LOST_RUNS = 3
    conversation = waiting_message(alice, converse, lambda _request: "Done.")
    for number in range(5):
        word = AgentMessage(content=(), model_request_id=f"r{number}", interrupted=True)
        lose_a_run(conversation, Entry.of(word))
    assert not lostruns.is_poisoned(conversation.pk)


def test_a_person_who_says_something_gives_as_many_runs_again(
    alice: User, converse: Converse, settings
):
    settings.AGENTSITE_LOST_RUNS = 2
    conversation = waiting_message(alice, converse, lambda _request: "Done.")
    lose_a_run(conversation)
    run = claim(conversation)
    post_message(actor=alice, conversation=conversation, text="Still there?")
    still()
    Run.objects.filter(pk=run.pk).update(lease_until=Now() - timedelta(seconds=1))
    claims.lost_conversations()
    lose_a_run(conversation)
    assert not lostruns.is_poisoned(conversation.pk)
    lose_a_run(conversation)
    assert lostruns.is_poisoned(conversation.pk)

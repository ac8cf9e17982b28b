"""Rates and seats: a person over her quota is refused or waits, and nobody else does."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import Organisation, User
from agents.models import Environment
from conversations import claims, seats
from conversations.actions.conversations import create_conversation, delete_conversation
from conversations.actions.messages import edit_message, post_message, withdraw_message
from conversations.models import Conversation, Event, Run, SeatWait, SentMessage
from conversations.ratelimits import count_message, prune
from conversations.wakes import wake
from harness.content import Base64Source, Image, Text
from harness.errors import TooLarge, TooMany
from harness.events import UserMessage
from programs.actions.sending import send_events
from programs.actions.sessions import begin_session
from providers.scripted import Hold, registered, reply, say
from tests.cast import ClientOf, shown
from tests.conversations.conftest import Converse, MakeAgent, rested, still, types, until
from tests.pictures import BROKEN, GOOD

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def quiet(converse: Converse) -> Conversation:
    conversation, _ = converse(lambda _request: "Yes.")
    return conversation


@pytest.fixture
def conversation_of(acme: Organisation, environment: Environment, make_agent: MakeAgent):
    """Another person's conversation with an agent that answers at once."""
    with registered("of-others", lambda _request: "Yes."):
        agent = make_agent("Of others", provider="scripted", model="of-others")

        def begin(owner: User, organisation: Organisation = acme) -> Conversation:
            return create_conversation(
                actor=owner, organisation=organisation, agent=agent, environment=environment
            )

        yield begin


# --- messages -------------------------------------------------------------------------------------


def test_a_person_may_send_as_many_messages_a_minute_as_the_limit_and_not_one_more(
    alice: User, bob: User, quiet: Conversation, conversation_of, settings
):
    settings.AGENTSITE_MESSAGES_PER_MINUTE = 3
    other = conversation_of(alice)
    for number, conversation in enumerate([quiet, other, quiet]):
        post_message(actor=alice, conversation=conversation, text=str(number))
    with pytest.raises(TooMany, match="3 messages within a minute") as refused:
        post_message(actor=alice, conversation=other, text="One too many.")
    assert refused.value.code == "rate_limited_by_site"
    assert 0 < refused.value.retry_after <= 60
    assert str(refused.value.retry_after) in refused.value.hint
    post_message(actor=bob, conversation=conversation_of(bob), text="I am not affected.")
    still()
    assert Event.objects.filter(type="user.message", actor=alice).count() == 3


def test_there_is_room_again_when_the_oldest_of_them_is_a_minute_old(
    alice: User, quiet: Conversation, settings
):
    settings.AGENTSITE_MESSAGES_PER_MINUTE = 2
    for number in range(2):
        post_message(actor=alice, conversation=quiet, text=str(number))
        SentMessage.objects.filter(pk=SentMessage.objects.latest("pk").pk).update(
            created_at=timezone.now() - timedelta(seconds=20 - number)
        )
    with pytest.raises(TooMany) as refused:
        post_message(actor=alice, conversation=quiet, text="Too early.")
    assert 0 < refused.value.retry_after <= 40, "not only when the newest of them is a minute old"
    SentMessage.objects.update(created_at=timezone.now() - timedelta(seconds=61))
    post_message(actor=alice, conversation=quiet, text="In time.")
    still()


def test_messages_whose_conversation_was_deleted_were_sent_all_the_same(
    alice: User, bob: User, quiet: Conversation, conversation_of, settings
):
    settings.AGENTSITE_MESSAGES_PER_MINUTE = 3
    for _ in range(3):
        begun = conversation_of(alice)
        post_message(actor=alice, conversation=begun, text="Go.")
        rested(begun)
        delete_conversation(actor=alice, conversation=begun)
    with pytest.raises(TooMany, match="3 messages within a minute") as refused:
        post_message(actor=alice, conversation=quiet, text="One too many.")
    assert 0 < refused.value.retry_after <= 60
    post_message(actor=bob, conversation=conversation_of(bob), text="I am not affected.")
    still()


def test_a_message_that_was_withdrawn_or_edited_counts_once(
    alice: User, quiet: Conversation, converse: Converse, settings
):
    settings.AGENTSITE_MESSAGES_PER_MINUTE = 3
    busy, hold = held(converse, alice)
    withdrawn, edited = (
        post_message(actor=alice, conversation=busy, text=text) for text in ("Never mind.", "Teh.")
    )
    withdraw_message(actor=alice, conversation=busy, message_uid=withdrawn.uid)
    edit_message(actor=alice, conversation=busy, message_uid=edited.uid, text="The.")
    with pytest.raises(TooMany):
        post_message(actor=alice, conversation=quiet, text="One too many.")
    assert SentMessage.objects.count() == 3
    hold.release.set()
    rested(busy)


def test_what_was_not_stored_is_not_counted(
    alice: User, acme: Organisation, quiet: Conversation, settings
):
    settings.AGENTSITE_MESSAGES_PER_MINUTE = 2
    good = UserMessage(content=(Text(text="Hi."),))
    with pytest.raises(TooMany):
        send_events(actor=alice, conversation=quiet, events=[good, good, good])
    with pytest.raises(TooLarge):
        send_events(
            actor=alice,
            conversation=quiet,
            events=[good, UserMessage(content=(Text(text="x" * 100_001),))],
        )
    assert not SentMessage.objects.exists()
    send_events(actor=alice, conversation=quiet, events=[good, good])
    still()


def test_many_that_are_sent_at_once_are_no_more_than_the_limit(
    alice: User, conversation_of, settings
):
    settings.AGENTSITE_MESSAGES_PER_MINUTE = 3
    each = [conversation_of(alice) for _ in range(8)]
    together = Barrier(len(each), timeout=20)

    def send(conversation: Conversation) -> bool:
        try:
            together.wait()
            post_message(actor=alice, conversation=conversation, text="Go.")
        except TooMany:
            return False
        finally:
            connection.close()
        return True

    with ThreadPoolExecutor(len(each)) as threads:
        sent = list(threads.map(send, each))
    assert sum(sent) == 3
    still()


def test_counting_costs_one_statement_and_one_that_locks_and_nothing_without_a_limit(
    alice: User, quiet: Conversation, settings
):
    def statements(limit: int) -> int:
        settings.AGENTSITE_MESSAGES_PER_MINUTE = limit
        with transaction.atomic(), CaptureQueriesContext(connection) as seen:
            count_message(alice)
        return len(seen)

    assert statements(0) == 0
    assert not SentMessage.objects.exists()
    assert statements(60) == 1 + connection.features.has_select_for_update


def test_sent_messages_are_forgotten_when_they_count_no_longer(
    alice: User, quiet: Conversation, settings
):
    settings.AGENTSITE_MESSAGES_PER_MINUTE = 2
    now = timezone.now()
    with transaction.atomic():
        count_message(alice, now=now - timedelta(minutes=5))
        count_message(alice, now=now - timedelta(seconds=30))
    assert prune() == 1
    assert prune() == 0
    with transaction.atomic():
        count_message(alice, now=now)
    with pytest.raises(TooMany), transaction.atomic():
        count_message(alice, now=now)


def test_a_repeated_message_is_recognised_before_it_is_counted(
    alice: User, quiet: Conversation, settings
):
    settings.AGENTSITE_MESSAGES_PER_MINUTE = 1
    first = post_message(actor=alice, conversation=quiet, text="Hi.", key="k")
    assert post_message(actor=alice, conversation=quiet, text="Hi.", key="k") == first
    still()


def test_one_message_too_many_is_refused_before_its_pictures_are_opened(
    alice: User, acme: Organisation, quiet: Conversation, settings
):
    settings.AGENTSITE_MESSAGES_PER_MINUTE = 1
    good, broken = (
        UserMessage(content=(Image(source=Base64Source(media_type="image/png", data=data)),))
        for data in (GOOD, BROKEN)
    )
    (first,) = send_events(actor=alice, conversation=quiet, events=[good], key="k")
    for attempt in (
        lambda: post_message(
            actor=alice, conversation=quiet, text="", attachments=list(broken.content)
        ),
        lambda: send_events(actor=alice, conversation=quiet, events=[broken]),
        lambda: send_events(actor=alice, conversation=quiet, events=[good, broken], key="k"),
        lambda: begin_session(
            caller=None,
            actor=alice,
            organisation=acme,
            agent=quiet.agent_version.agent,
            environment=quiet.environment,
            messages=[broken],
        ),
    ):
        with pytest.raises(TooMany) as refused:
            attempt()
        assert refused.value.code == "rate_limited_by_site"
    (again,) = send_events(actor=alice, conversation=quiet, events=[good], key="k")
    assert again.uid == first.uid
    still()


def test_pages_answer_429_say_when_to_come_back_and_keep_what_was_typed(
    alice: User, quiet: Conversation, client_of: ClientOf, settings
):
    settings.AGENTSITE_MESSAGES_PER_MINUTE = 1
    post_message(actor=alice, conversation=quiet, text="The first.")
    client = client_of(alice)
    refused = client.post(f"/c/{quiet.uid}/messages/", {"content": "My long thoughts."})
    assert refused.status_code == 429
    assert 0 < int(refused["Retry-After"]) <= 60
    assert "My long thoughts." in refused.content.decode()
    agent = quiet.agent_version.agent
    begun = client.post(
        "/new/",
        shown(
            quiet.organisation,
            agent=agent.uid,
            environment=quiet.environment.uid,
            message="Another thought.",
        ),
    )
    assert begun.status_code == 429
    assert "Another thought." in begun.content.decode()
    assert Conversation.objects.count() == 1
    still()


# --- seats ----------------------------------------------------------------------------------------


def held(converse: Converse, person: User) -> tuple[Conversation, Hold]:
    """A conversation at work until it is released."""
    hold = Hold()
    conversation, _ = converse([reply(say("Working", hold, "."))])
    post_message(actor=person, conversation=conversation, text="Go.")
    until(hold.reached.is_set)
    return conversation, hold


def running() -> int:
    return Run.objects.filter(state=Run.State.RUNNING).count()


def test_one_past_the_limit_waits_for_a_seat_and_others_do_not(
    alice: User, bob: User, converse: Converse, conversation_of, settings
):
    settings.AGENTSITE_RUNS_PER_PERSON = 2
    first, first_hold = held(converse, alice)
    second, second_hold = held(converse, alice)
    waiting = conversation_of(alice)
    post_message(actor=alice, conversation=waiting, text="Me too.")
    until(lambda: SeatWait.objects.filter(conversation=waiting).exists())
    his = conversation_of(bob)
    post_message(actor=bob, conversation=his, text="I am not affected.")
    rested(his)
    assert "session.status_running" not in types(waiting)
    waiting.refresh_from_db()
    assert waiting.owes_run

    first_hold.release.set()
    rested(waiting)
    assert not SeatWait.objects.exists()
    second_hold.release.set()
    for each in (first, second):
        assert rested(each).stop_reason == "end_turn"


def test_the_oldest_in_the_line_is_served_first_and_a_newcomer_does_not_push_in(
    alice: User, converse: Converse, conversation_of, settings
):
    settings.AGENTSITE_RUNS_PER_PERSON = 1
    _, hold = held(converse, alice)
    line = [conversation_of(alice) for _ in range(4)]
    for conversation in line:
        post_message(actor=alice, conversation=conversation, text="Next.")
        waiting = SeatWait.objects.filter(conversation=conversation)
        until(waiting.exists)
    hold.release.set()
    for conversation in line:
        rested(conversation)
    still()
    begun = Run.objects.filter(conversation__in=line).order_by("started_at", "id")
    assert [run.conversation_id for run in begun] == [each.pk for each in line]
    overlapping = [
        (one.pk, two.pk)
        for one in begun
        for two in begun
        if one.pk < two.pk and one.ended_at and two.started_at < one.ended_at
    ]
    assert not overlapping


def test_many_at_once_never_take_more_seats_than_there_are_and_all_are_served(
    alice: User, converse: Converse, conversation_of, settings
):
    settings.AGENTSITE_RUNS_PER_PERSON = 3
    most = 0
    begun = []
    for _ in range(12):
        conversation = conversation_of(alice)
        post_message(actor=alice, conversation=conversation, text="Go.")
        begun.append(conversation)
    ended = Conversation.objects.filter(pk__in=[each.pk for each in begun], stop_reason="end_turn")

    def all_served() -> bool:
        nonlocal most
        most = max(most, running())
        return ended.count() == len(begun)

    until(all_served)
    still()
    assert 1 <= most <= 3
    assert not SeatWait.objects.exists()


def test_an_organisations_seats_are_shared_by_its_members_and_by_nobody_else(
    alice: User,
    bob: User,
    mallory: User,
    elsewhere: Organisation,
    converse: Converse,
    conversation_of,
    settings,
):
    settings.AGENTSITE_RUNS_PER_ORGANISATION = 1
    _, hold = held(converse, alice)
    his, theirs = conversation_of(bob), conversation_of(mallory, elsewhere)
    post_message(actor=bob, conversation=his, text="I wait.")
    until(lambda: SeatWait.objects.filter(conversation=his).exists())
    post_message(actor=mallory, conversation=theirs, text="I do not.")
    rested(theirs)
    hold.release.set()
    rested(his)


def test_who_waits_because_of_her_own_limit_keeps_no_colleague_waiting(
    alice: User, bob: User, converse: Converse, conversation_of, settings
):
    settings.AGENTSITE_RUNS_PER_PERSON = 1
    settings.AGENTSITE_RUNS_PER_ORGANISATION = 2
    _, hold = held(converse, alice)
    more = [conversation_of(alice) for _ in range(3)]
    for conversation in more:
        post_message(actor=alice, conversation=conversation, text="Me too.")
    until(lambda: SeatWait.objects.count() == 3)
    his = conversation_of(bob)
    post_message(actor=bob, conversation=his, text="There is a seat for me.")
    rested(his)
    assert SeatWait.objects.count() == 3
    hold.release.set()
    for conversation in more:
        rested(conversation)


def test_what_an_agent_started_takes_no_seat(
    alice: User, converse: Converse, conversation_of, settings
):
    """The one that started it may be waiting for it."""
    settings.AGENTSITE_RUNS_PER_PERSON = 1
    parent, hold = held(converse, alice)
    child = conversation_of(alice)
    Conversation.objects.filter(pk=child.pk).update(parent=parent)
    post_message(actor=alice, conversation=child, text="Help.")
    rested(child)
    hold.release.set()
    rested(parent)


def test_the_sweep_names_only_those_for_whom_there_is_a_seat(
    alice: User, converse: Converse, conversation_of, settings
):
    """A lost hint is found, and a full house is not asked again and again."""
    settings.AGENTSITE_RUNS_PER_PERSON = 1
    busy = conversation_of(alice)
    run = claims.claim(busy.pk)
    assert run is not None
    line = [conversation_of(alice) for _ in range(2)]
    for conversation in line:
        assert claims.claim(conversation.pk) is None
        Conversation.objects.filter(pk=conversation.pk).update(owes_run=True)
    assert claims.lost_conversations() == []
    # Its process died: nobody told the line.
    Run.objects.filter(pk=run.pk).update(lease_until=timezone.now() - timedelta(minutes=1))
    assert claims.lost_conversations() == [line[0].pk]
    assert seats.next_of_all() == [line[0].pk]


def test_one_that_has_nothing_left_to_do_gives_its_place_to_the_next(
    alice: User, converse: Converse, conversation_of, settings
):
    settings.AGENTSITE_RUNS_PER_PERSON = 1
    _, hold = held(converse, alice)
    idle, eager = conversation_of(alice), conversation_of(alice)
    message = post_message(actor=alice, conversation=idle, text="Never mind.")
    until(lambda: SeatWait.objects.filter(conversation=idle).exists())
    withdraw_message(actor=alice, conversation=idle, message_uid=message.uid)
    post_message(actor=alice, conversation=eager, text="Me.")
    until(lambda: SeatWait.objects.filter(conversation=eager).exists())
    hold.release.set()
    rested(eager)
    still()
    assert not SeatWait.objects.exists()


def test_a_second_wake_of_a_running_conversation_puts_it_in_no_line(
    alice: User, converse: Converse, settings
):
    settings.AGENTSITE_RUNS_PER_PERSON = 1
    conversation, hold = held(converse, alice)
    wake(conversation.pk)
    assert claims.claim(conversation.pk) is None
    assert not SeatWait.objects.exists()
    hold.release.set()
    rested(conversation)

"""Messages that wait while the agent was stopped: held back until somebody says what becomes of them."""

from __future__ import annotations

import pytest

from accounts.models import User
from conversations.actions.messages import post_message, stop
from conversations.actions.queue import discard_queue, move_message, release_queue
from conversations.models import Conversation, Event
from conversations.waiting import waiting_in_order
from harness.errors import Conflict, NotFound
from providers.scripted import Hold, reply, say
from tests.conversations.conftest import Converse, rested, still, types, until
from tests.conversations.test_runs import texts

pytestmark = pytest.mark.django_db(transaction=True)


def stopped_with_two_waiting(alice: User, converse: Converse) -> Conversation:
    hold = Hold()
    conversation, _ = converse([reply(say("One", hold)), "Two", "Three", "Four"])
    post_message(actor=alice, conversation=conversation, text="1")
    until(hold.reached.is_set)
    for text in ("2", "3"):
        post_message(actor=alice, conversation=conversation, text=text)
    stop(actor=alice, conversation=conversation, holds_queue=True)
    rested(conversation)
    still()
    conversation.refresh_from_db()
    return conversation


def test_after_a_stop_nothing_that_waits_is_taken_until_it_is_let_go_on(
    alice: User, mallory: User, converse: Converse
):
    conversation = stopped_with_two_waiting(alice, converse)
    assert texts(conversation) == ["One"]
    assert types(conversation).count("x.input_taken") == 1
    assert conversation.holds_queue
    assert not conversation.may_be_interrupted
    assert not Conversation.objects.interruptible().exists()
    for act in (release_queue, discard_queue):
        with pytest.raises(NotFound):
            act(actor=mallory, conversation=conversation)

    release_queue(actor=alice, conversation=conversation)
    rested(conversation, times=3)
    still()
    assert texts(conversation) == ["One", "Two", "Three"]
    for act in (release_queue, discard_queue):
        with pytest.raises(Conflict):
            act(actor=alice, conversation=conversation)


def test_what_is_held_can_be_discarded_together(alice: User, converse: Converse):
    conversation = stopped_with_two_waiting(alice, converse)
    discard_queue(actor=alice, conversation=conversation)
    conversation.refresh_from_db()
    assert conversation.queued_count == 0
    assert not Event.objects.filter(type="user.message", processed_at=None).exists()
    post_message(actor=alice, conversation=conversation, text="4")
    rested(conversation, times=2)
    assert texts(conversation) == ["One", "Two"], "the next reply is to the new message"


def test_another_message_lets_all_go_on_in_order(alice: User, converse: Converse):
    conversation = stopped_with_two_waiting(alice, converse)
    post_message(actor=alice, conversation=conversation, text="4")
    rested(conversation, times=4)
    assert texts(conversation) == ["One", "Two", "Three", "Four"]


def test_a_program_that_stops_the_agent_holds_nothing(alice: User, converse: Converse):
    hold = Hold()
    conversation, _ = converse([reply(say("One", hold)), "Two"])
    post_message(actor=alice, conversation=conversation, text="1")
    until(hold.reached.is_set)
    post_message(actor=alice, conversation=conversation, text="2")
    stop(actor=alice, conversation=conversation)
    rested(conversation, times=2)
    assert texts(conversation) == ["One", "Two"]


def test_messages_are_taken_in_the_order_somebody_gave_them(
    alice: User, mallory: User, converse: Converse
):
    hold = Hold()
    conversation, scripted = converse([reply(say("One", hold)), "a", "b", "c", "d"])
    post_message(actor=alice, conversation=conversation, text="1")
    until(hold.reached.is_set)
    two, three, four = (
        post_message(actor=alice, conversation=conversation, text=text).uid for text in "234"
    )

    def move(message: str, before: str = "", actor: User = alice) -> Event | None:
        return move_message(
            actor=actor, conversation=conversation, message_uid=message, before_uid=before
        )

    assert move(four, before=two) is not None
    assert move(four, before=two) is None, "it stands there"
    assert move(four, before=four) is None
    five = post_message(actor=alice, conversation=conversation, text="5").uid
    assert waiting_in_order(conversation.pk) == [four, two, three, five]
    assert move(two) is not None
    assert waiting_in_order(conversation.pk) == [four, three, five, two]
    with pytest.raises(NotFound):
        move(five, before=four, actor=mallory)
    for gone in ("sevt_nothing", types(conversation)[0]):
        with pytest.raises(Conflict):
            move(five, before=gone)
        with pytest.raises(Conflict):
            move(gone)
    hold.release.set()
    rested(conversation, times=5)
    asked = [str(request.messages[-1].parts[-1]) for request in scripted.requests]
    assert [each for text in asked for each in "12345" if f"text='{each}'" in text] == list("14352")
    with pytest.raises(Conflict):
        move(two)

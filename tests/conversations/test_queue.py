"""Messages that wait while the agent was stopped: held back until somebody says what becomes of them."""

from __future__ import annotations

import pytest

from accounts.models import User
from conversations.actions.messages import post_message, stop
from conversations.actions.queue import discard_queue, release_queue
from conversations.models import Conversation, Event
from harness.errors import Conflict, NotFound
from harness.providers.scripted import Hold, reply, say
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

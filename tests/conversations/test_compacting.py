"""Asking for a summary over real tables, pages and doors, and looking at what a model was sent."""

from __future__ import annotations

import pytest
from django.urls import reverse

from accounts.actions.tokens import create_token
from accounts.models import TokenScope, User
from conversations.actions.compacting import FOCUS_LENGTH, request_compaction
from conversations.actions.messages import post_message, stop
from conversations.actions.sharing import share_conversation
from conversations.log import append
from conversations.models import Conversation, Event
from conversations.retrying import may_retry
from harness.errors import Conflict, Invalid, NotFound
from harness.events import (
    BudgetReached,
    CompactionRequested,
    SessionStatusIdle,
    SessionStatusRunning,
)
from harness.history import Entry
from keeping.contextplans import newest_plan, request_about, requests_of
from providers.scripted import Hold, reply, say
from spending.models import Usage
from tests.conversations.conftest import Converse, rested, still, types, until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def talk(alice: User, converse: Converse) -> Conversation:
    """Four turns, at rest; the summariser and one more reply are still to come."""
    conversation, _ = converse(["One.", "Two.", "Three.", "Four.", "They counted.", "Five."])
    for number in range(1, 5):
        post_message(actor=alice, conversation=conversation, text=str(number))
        rested(conversation, number)
    still()
    conversation.refresh_from_db()
    return conversation


def test_it_is_done_once_and_the_whole_stays_readable(
    alice: User, mallory: User, talk: Conversation
):
    with pytest.raises(NotFound):
        request_compaction(actor=mallory, conversation=talk)
    with pytest.raises(Invalid):
        request_compaction(actor=alice, conversation=talk, focus="x" * (FOCUS_LENGTH + 1))
    request_compaction(actor=alice, conversation=talk, focus=" the  prices ")
    rested(talk, 5)
    still()
    talk.refresh_from_db()
    event = talk.events.get(type="agent.thread_context_compacted").value
    assert (event.summary, event.focus) == ("They counted.", "the prices")
    assert event.usage is not None
    assert (talk.status, talk.owes_run) == (Conversation.Status.IDLE, False)
    assert not talk.events.filter(processed_at=None).exists()
    assert not may_retry(talk)
    said = [row.payload["content"][0]["text"] for row in talk.events.filter(type="agent.message")]
    assert said == ["One.", "Two.", "Three.", "Four."]
    post_message(actor=alice, conversation=talk, text="5")
    rested(talk, 6)
    assert types(talk).count("agent.thread_context_compacted") == 1


def test_what_was_asked_for_in_the_last_moment_of_a_turn_is_not_forgotten(
    alice: User, talk: Conversation
):
    hold_nothing = Entry.of(CompactionRequested(focus="late"))
    append(talk.pk, [hold_nothing], actor=alice)
    talk.refresh_from_db()
    assert talk.owes_run
    with pytest.raises(Conflict):
        request_compaction(actor=alice, conversation=talk)


def test_who_asks_for_a_summary_pays_for_it_also_where_she_has_written_nothing(
    alice: User, bob: User, talk: Conversation
):
    share_conversation(actor=alice, conversation=talk, user_uid=bob.uid, role="writer")
    request_compaction(actor=bob, conversation=talk)
    rested(talk, 5)
    still()
    post_message(actor=alice, conversation=talk, text="5")
    rested(talk, 6)
    usage = Usage.objects.filter(conversation=talk, purpose__in=("main", "compaction"))
    *_before, summary, last = usage.order_by("pk").values_list("purpose", "user", "charged_to")
    assert (summary, last) == (("compaction", bob.pk, bob.pk), ("main", alice.pk, alice.pk))
    talk.refresh_from_db()
    assert not talk.others_wrote


def test_a_turn_that_waits_stays_at_the_charge_of_whom_it_is_for(
    alice: User, bob: User, talk: Conversation
):
    share_conversation(actor=alice, conversation=talk, user_uid=bob.uid, role="writer")
    stopped = SessionStatusIdle(stop_reason=BudgetReached())
    append(talk.pk, [Entry.of(SessionStatusRunning()), Entry.of(stopped)])
    request_compaction(actor=bob, conversation=talk)
    talk.refresh_from_db()
    assert talk.asker_id == alice.pk
    still()


def test_while_messages_are_held_back_she_decides_about_them_first(alice: User, converse: Converse):
    hold = Hold()
    conversation, _ = converse([reply(say("One", hold)), "Two"])
    post_message(actor=alice, conversation=conversation, text="1")
    until(hold.reached.is_set)
    post_message(actor=alice, conversation=conversation, text="2")
    stop(actor=alice, conversation=conversation, holds_queue=True)
    rested(conversation)
    still()
    with pytest.raises(Conflict):
        request_compaction(actor=alice, conversation=conversation)


def test_the_plan_of_each_request_is_opened_from_its_step(
    alice: User, mallory: User, talk: Conversation, client_of
):
    newest = newest_plan(talk)
    assert newest is not None
    requests = requests_of(talk)
    assert len(requests) == 4
    assert requests[0] == newest
    assert newest.plan.tokens["tools"] > newest.plan.tokens.get("question", 0)
    answer = talk.events.filter(type="agent.message")[0]
    question = talk.events.filter(type="user.message")[0]
    for event in (answer, question):
        assert request_about(event) == requests[-1]
    client = client_of(alice)
    page = client.get(reverse("conversations:context", args=[talk.uid]))
    assert page.status_code == 200
    assert "Kept for the reply" in page.content.decode()
    of_step = reverse("conversations:event-context", args=[answer.uid])
    assert f"#{requests[-1].seq}" in client.get(of_step).content.decode()
    assert "Look closer" in client.get(talk.get_absolute_url()).content.decode()
    theirs = client_of(mallory)
    for address in (of_step, reverse("conversations:context", args=[talk.uid])):
        assert theirs.get(address).status_code == 404
    compact = reverse("conversations:compact", args=[talk.uid])
    assert theirs.post(compact).status_code == 404
    refused = client.post(compact, {"focus": "y" * (FOCUS_LENGTH + 1)})
    assert refused.status_code == 422
    assert "yyy" in refused.content.decode(), "what she typed is still there"
    assert client.post(compact, {"focus": "dates"}).status_code == 302
    rested(talk, 5)
    still()
    shown = client.get(talk.get_absolute_url()).content.decode()
    assert "It dwells on: dates." in shown
    assert "They counted." in shown
    assert "above all: dates" in shown


def test_programs_read_plans_and_ask_for_a_summary(
    alice: User, mallory: User, acme, talk: Conversation, client
):
    def bearer(user, organisation):
        scopes = [str(TokenScope.CONVERSATIONS_READ), str(TokenScope.CONVERSATIONS_WRITE)]
        made = create_token(actor=user, organisation=organisation, name="T", scopes=scopes)
        return {"Authorization": f"Bearer {made.secret}"}

    headers = bearer(alice, acme)
    address = f"/api/conversations/{talk.uid}/context"
    (newest, *_others) = client.get(address, headers=headers).json()["requests"]
    assert newest["total"] == sum(newest["tokens"].values())
    assert newest["window"] == talk.config.limits.context_window
    too_long = {"focus": "x" * (FOCUS_LENGTH + 1)}
    kind = "application/json"
    assert client.post(address, too_long, kind, headers=headers).status_code == 413
    done = client.post(address, {"focus": "dates"}, kind, headers=headers)
    assert done.status_code == 200
    assert Event.objects.get(uid=done.json()["event_id"]).value.focus == "dates"
    rested(talk, 5)
    still()

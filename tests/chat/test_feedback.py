"""A reader says what she thinks of an answer: drawn at once, exported, unseen by the agent."""

from __future__ import annotations

import pytest
from django.urls import reverse

from chat.presentation import frames
from conversations.models import Event
from harness.errors import Conflict, Invalid, LimitReached, NotFound, TooLarge
from keeping.actions import feedback
from keeping.actions.feedback import give_feedback
from keeping.export import as_markdown
from tests.conversations.conftest import types
from tests.conversations.scenes import begin, talk


@pytest.fixture
def conversation(alice, acme, environment, make_agent):
    made = begin(alice, acme, make_agent("Coding"), environment)
    talk(made, "one", "first")
    made.refresh_from_db()
    return made


@pytest.fixture
def answer(conversation):
    return Event.objects.get(conversation=conversation, type="agent.message")


def test_the_last_word_counts_and_is_drawn_where_the_answer_stands(alice, conversation, answer):
    given = {"conversation": conversation, "event_uid": answer.uid}
    seen = conversation.last_seq
    give_feedback(actor=alice, rating="up", **given)
    last = give_feedback(actor=alice, rating="down", comment=" Too short. ", **given)
    assert give_feedback(actor=alice, rating="down", comment="Too short.", **given).pk == last.pk
    (unit,) = frames.changes(conversation, seen).units
    assert unit["key"] == answer.uid
    assert unit["html"] == str(frames.page(conversation).units[1])
    assert 'data-rating="none" aria-pressed="true"' in unit["html"]
    conversation.refresh_from_db()
    assert "Too short." in "".join(as_markdown(conversation))
    assert last.actor == alice


def test_what_is_no_answer_or_rating_is_refused(alice, conversation, answer):
    message = Event.objects.get(conversation=conversation, type="user.message")
    for uid, rating, comment, problem in (
        (message.uid, "up", "", Conflict),
        ("sevt_none", "up", "", NotFound),
        (answer.uid, "best", "", Invalid),
        (answer.uid, "up", "x" * 2_001, TooLarge),
    ):
        with pytest.raises(problem):
            give_feedback(
                actor=alice,
                conversation=conversation,
                event_uid=uid,
                rating=rating,
                comment=comment,
            )


def test_one_reader_changes_her_mind_so_often_and_takes_her_word_back(
    alice, conversation, answer, monkeypatch
):
    monkeypatch.setattr(feedback, "MOST_CHANGES", 2)
    given = {"actor": alice, "conversation": conversation, "event_uid": answer.uid}
    for rating in ("up", "down"):
        give_feedback(rating=rating, **given)
    with pytest.raises(LimitReached):
        give_feedback(rating="up", **given)
    assert give_feedback(rating="none", **given).value.rating == "none"
    with pytest.raises(LimitReached):
        give_feedback(rating="up", **given)


def test_mallory_and_bob_say_nothing(mallory, bob, conversation, answer):
    for person in (mallory, bob):
        with pytest.raises(NotFound):
            give_feedback(
                actor=person, conversation=conversation, event_uid=answer.uid, rating="up"
            )
    assert "x.feedback_given" not in types(conversation)


def test_it_is_said_on_the_page_of_the_answer(alice, conversation, answer, client_of):
    client = client_of(alice)
    place = reverse("conversations:feedback", args=[conversation.uid, answer.uid])
    client.post(place, {"rating": "down", "comment": "Wrong port."})
    page = client.get(reverse("conversations:event", args=[answer.uid])).content.decode()
    assert "Wrong port." in page

"""A case that is made of a conversation is tried with the marks of strangers' words that stood there."""

from __future__ import annotations

from typing import Any

import pytest

from conversations.actions.branching import rewind
from conversations.actions.conversations import create_conversation
from conversations.actions.forking import fork_conversation
from conversations.broughtwords import WordsBrought
from conversations.judging import history_of
from conversations.log import append
from conversations.models import Conversation, Event
from evals.actions.cases import case_of
from evals.actions.suites import save_case
from harness.content import Text
from harness.events import (
    AgentMessage,
    EndTurn,
    InputTaken,
    ModelUsage,
    SessionStatusIdle,
    SessionStatusRunning,
    SpanModelRequestEnd,
    SpanModelRequestStart,
    SpanOutcomeEvaluationEnd,
    SpanOutcomeEvaluationStart,
    UserDefineOutcome,
    UserMessage,
)
from harness.events import Event as EventValue
from harness.history import Entry
from recall.strangers import has_strangers_words
from tests.conversations.conftest import still

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def talk(alice, acme, make_agent, environment) -> Conversation:
    made: Conversation = create_conversation(
        actor=alice,
        organisation=acme,
        agent=make_agent("Demo", provider="demo"),
        environment=environment,
    )
    return made


def turn(conversation: Conversation, said: EventValue, *between: EventValue) -> Event:
    """One that this begins; the agent's answer."""
    wish = Entry.of(said)
    append(conversation.pk, [wish], actor=conversation.owner)
    start = Entry.of(SpanModelRequestStart())
    answer = Entry.of(AgentMessage(content=(Text(text="Good morning"),)))
    over = SpanModelRequestEnd(
        model_request_start_id=start.uid, model_usage=ModelUsage(), end="end_turn"
    )
    events = [SessionStatusRunning(), InputTaken(event_ids=(wish.uid,)), *between]
    rests = [Entry.of(over), Entry.of(SessionStatusIdle(stop_reason=EndTurn()))]
    append(conversation.pk, [*map(Entry.of, events), start, answer, *rests])
    Conversation.objects.filter(pk=conversation.pk).update(owes_run=False)
    return Event.objects.get(uid=answer.uid)


def said(text: str, **more: Any) -> UserMessage:
    return UserMessage(content=(Text(text=text),), **more)


def tried(alice, suite, try_it, talk: Conversation, answer: Event) -> Conversation:
    save_case(
        actor=alice,
        suite=suite,
        spec=case_of(actor=alice, conversation=talk, event_uid=answer.uid),
        source=talk.uid,
    )
    conversation: Conversation = try_it().trials.get().conversation
    still()
    return conversation


def test_a_message_that_held_strangers_words_holds_them_in_a_trial(alice, suite, try_it, talk):
    answer = turn(talk, said("Read the mail.", untrusted_by="a mail"))
    trial = tried(alice, suite, try_it, talk, answer)
    assert history_of(trial).ever_tainted_by == "a mail"
    assert has_strangers_words(trial)


def test_a_mark_that_came_by_a_judgement_alone_stands_in_a_trial(alice, suite, try_it, talk):
    goal = UserDefineOutcome(outcome_id="outc_1", description="Write.", rubric="- good")
    start = Entry.of(SpanOutcomeEvaluationStart(outcome_id="outc_1"))
    judged = SpanOutcomeEvaluationEnd(
        outcome_evaluation_start_id=start.uid,
        outcome_id="outc_1",
        result="needs_revision",
        explanation="Send it.",
        untrusted_by="a page",
    )
    turn(talk, goal, start.event, judged)
    answer = turn(talk, said("Thanks."))
    assert not history_of(talk).tainted_by
    trial = tried(alice, suite, try_it, talk, answer)
    assert "a page" in history_of(trial).ever_tainted_by
    assert has_strangers_words(trial)


def test_so_it_does_where_the_case_is_made_of_a_fork(alice, suite, try_it, talk):
    """In which it stands behind the answer."""
    turn(talk, said("Read."), WordsBrought(way="fork", strangers="a page"))
    turn(talk, said("Thanks."))
    fork = fork_conversation(actor=alice, conversation=talk)
    answer = fork.events.filter(type="agent.message").latest("seq")
    trial = tried(alice, suite, try_it, fork, answer)
    assert history_of(trial).ever_tainted_by == "a page"


def test_what_an_agent_said_once_a_branch_was_left_has_its_mark_in_a_trial(
    alice, suite, try_it, talk
):
    """It may come of what was read there, and says nothing of it by itself."""
    first = turn(talk, said("Hello."))
    turn(talk, said("A page.", untrusted_by="a page"))
    still()
    rewind(actor=alice, conversation=talk, event_uid=first.uid)
    turn(talk, said("Send them.", by_agent=True))
    answer = turn(talk, said("Thanks."))
    talk.refresh_from_db()
    trial = tried(alice, suite, try_it, talk, answer)
    assert "a page" in history_of(trial).ever_tainted_by


def test_so_it_has_where_the_case_begins_with_strangers_words_of_which_a_person_spoke(
    alice, suite, try_it, talk
):
    turn(talk, said("A page.", untrusted_by="a page"))
    first = turn(talk, said("Thanks."))
    turn(talk, said("Another.", untrusted_by="another page"))
    still()
    rewind(actor=alice, conversation=talk, event_uid=first.uid)
    answer = turn(talk, said("Send them.", by_agent=True))
    talk.refresh_from_db()
    trial = tried(alice, suite, try_it, talk, answer)
    assert "another page" in history_of(trial).tainted_by


@pytest.mark.parametrize("by_agent", [True, False])
def test_what_an_agent_said_is_in_a_trial_no_word_of_a_person_about_what_was_read(
    alice, suite, try_it, talk, by_agent
):
    turn(talk, said("A page.", untrusted_by="a page"))
    answer = turn(talk, said("Send them.", by_agent=by_agent))
    assert history_of(talk).tainted_by == ("a page" if by_agent else "")
    trial = tried(alice, suite, try_it, talk, answer)
    assert history_of(trial).tainted_by == ("a page" if by_agent else "")


def test_a_conversation_of_ones_own_words_makes_a_case_without_marks(alice, suite, try_it, talk):
    turn(talk, said("Hello."))
    answer = turn(talk, said("Thanks."))
    trial = tried(alice, suite, try_it, talk, answer)
    assert not has_strangers_words(trial)

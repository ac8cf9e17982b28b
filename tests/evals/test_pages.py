"""The pages of evals: what an owner does there, and that nobody else finds them."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from conversations.actions.conversations import create_conversation
from conversations.actions.messages import post_message
from conversations.actions.redacting import redact_content
from conversations.log import append
from conversations.models import Conversation, Event
from evals.actions.cases import case_of
from evals.actions.suites import save_case
from evals.files import read_suite
from evals.models import Evaluation, Suite
from evals.shipped import FIRST_CASE, example_suites
from harness.content import Text
from harness.events import (
    AgentMessage,
    EndTurn,
    InputTaken,
    MessageEdited,
    SessionStatusIdle,
    SessionStatusRunning,
    UserMessage,
)
from harness.history import Entry
from harness.redacted import REMOVED
from tests.cast import shown
from tests.conversations.conftest import rested, still

from .conftest import ended, next_version, spec, states

pytestmark = pytest.mark.django_db(transaction=True)


def start_form(agent, environment, **given):
    return {
        "agent": agent.uid,
        "environment": environment.uid,
        "scripted": "on",
        "repetitions": "1",
        "parallel": "2",
        "uses_cache": "on",
        **given,
    }


def test_an_owner_makes_a_suite_with_a_case_and_tries_it(
    alice, acme, client_of, agent, environment
):
    client = client_of(alice)
    client.post("/evals/", shown(acme, name="Support", description=""))
    suite = Suite.objects.get()
    client.post(f"/evals/suites/{suite.uid}/cases/new/", {"text": FIRST_CASE})

    answer = client.post(f"/evals/suites/{suite.uid}/", start_form(agent, environment))

    evaluation = ended(Evaluation.objects.get())
    assert answer.headers["Location"] == f"/evals/runs/{evaluation.uid}/"
    assert states(evaluation) == ["passed"]
    page = client.get(f"/evals/runs/{evaluation.uid}/").content.decode()
    assert "1/1 (100%)" in page
    assert "greets-back" in page


@pytest.mark.parametrize("name", sorted(example_suites()))
def test_each_shipped_suite_runs_without_a_model(
    name, alice, acme, client_of, make_agent, environment
):
    client = client_of(alice)
    client.post("/evals/import/", shown(acme, example=name))
    suite = Suite.objects.get()
    clerk = make_agent("Clerk", provider="demo", instructions="Never promise a refund.")

    client.post(f"/evals/suites/{suite.uid}/", start_form(clerk, environment))

    evaluation = ended(Evaluation.objects.get())
    failed = evaluation.trials.exclude(state="passed").values_list("name", "outcomes", "problem")
    assert list(failed) == []
    assert evaluation.trials.count() == len(read_suite(example_suites()[name]).cases)


def test_two_evaluations_are_compared_and_read_by_others(
    try_it, add_cases, alice, client_of, agent
):
    rules = {
        "replies": [
            {"say": "Good morning", "if_told": "polite"},
            {"say": "What?", "unless_told": "polite"},
        ]
    }
    add_cases(spec(script=rules))
    before, after = try_it(), try_it(version=next_version(agent, instructions="Be short."))
    client = client_of(alice)

    page = client.get(f"/evals/runs/{after.uid}/compare/?with={before.uid}").content.decode()
    junit = client.get(f"/evals/runs/{after.uid}/junit/").content
    results = client.get(f"/evals/runs/{after.uid}/results/").json()

    assert "1 case does worse" in page
    assert "<del>Good morning</del>" in page
    (suite,) = ElementTree.fromstring(junit)
    assert suite.attrib["failures"] == "1"
    assert results["trials"][0]["answer"] == "What?"
    assert results["summary"]["share"] == 0


def test_a_suite_leaves_and_comes_back_as_it_was(add_cases, suite, alice, acme, client_of):
    add_cases(spec("one"), spec("two", files={"a": {"base64": "AAE="}}))
    client = client_of(alice)

    text = client.get(f"/evals/suites/{suite.uid}/export/").content.decode()
    before = list(suite.cases.values_list("uid", "digest"))
    client.post("/evals/import/", shown(acme, text=text.replace("\n", "\r\n")))

    assert list(suite.cases.values_list("uid", "digest")) == before


def test_what_cannot_be_read_is_refused_by_its_place_and_stays_on_the_page(suite, alice, client_of):
    client = client_of(alice)
    wrong = FIRST_CASE.replace("at_most: 2", "at_mots: 2")

    answer = client.post(f"/evals/suites/{suite.uid}/cases/new/", {"text": wrong})

    page = answer.content.decode()
    assert answer.status_code == 422
    assert "at_mots" in page
    assert "greets-back" in page
    assert not suite.cases.exists()


def test_an_answer_becomes_a_case(alice, acme, suite, client_of, make_agent, environment):
    conversation = create_conversation(
        actor=alice,
        organisation=acme,
        agent=make_agent("Demo", provider="demo"),
        environment=environment,
    )
    for number, text in enumerate(["Hello there", "And now?"], 1):
        post_message(actor=alice, conversation=conversation, text=text)
        rested(conversation, number)
    answer = Event.objects.filter(conversation=conversation, type="agent.message").last()

    client = client_of(alice)
    client.post(
        f"/c/{conversation.uid}/case/", {"suite": suite.uid, "answer": answer.uid, "name": "second"}
    )

    case = suite.cases.get()
    assert case.source_uid == conversation.uid
    made = case.spec
    assert made.input == ("And now?",)
    assert [each.event["type"] for each in made.beginning].count("agent.message") >= 1
    started = client.post(
        f"/evals/suites/{suite.uid}/", start_form(conversation.agent_version.agent, environment)
    )
    assert started.status_code == 302
    evaluation = ended(Evaluation.objects.get())
    assert states(evaluation) == ["passed"]
    tried = evaluation.trials.get().conversation
    assert Event.objects.filter(conversation=tried, type="user.message").count() == 2
    still()


def test_a_case_asks_with_the_words_that_a_message_was_given_while_it_waited(
    alice, acme, suite, make_agent, environment
):
    conversation = create_conversation(
        actor=alice,
        organisation=acme,
        agent=make_agent("Demo", provider="demo"),
        environment=environment,
    )
    message = Entry.of(UserMessage(content=(Text(text="Hallo"),)))
    edit = MessageEdited(event_id=message.uid, content=(Text(text="Hello"),))
    answer = Entry.of(AgentMessage(content=(Text(text="Good morning"),)))
    begun = [Entry.of(SessionStatusRunning()), Entry.of(InputTaken(event_ids=(message.uid,)))]
    ends = Entry.of(SessionStatusIdle(stop_reason=EndTurn()))
    append(conversation.pk, [message, Entry.of(edit), *begun, answer, ends])
    Conversation.objects.filter(pk=conversation.pk).update(owes_run=False)
    made = case_of(actor=alice, conversation=conversation, event_uid=answer.uid)
    assert made.input == ("Hello",)
    case = save_case(actor=alice, suite=suite, spec=made, source=conversation.uid)
    redact_content(actor=alice, conversation=conversation, event_uid=message.uid)
    case.refresh_from_db()
    assert case.spec.input == (REMOVED,)


def test_nobody_else_finds_a_suite(add_cases, suite, alice, bob, mallory, elsewhere, client_of):
    add_cases()
    for person in (bob, mallory):
        client = client_of(person)
        assert client.get(f"/evals/suites/{suite.uid}/").status_code == 404
        assert client.post(f"/evals/suites/{suite.uid}/delete/").status_code == 404
        assert suite.name not in client.get("/evals/").content.decode()
    assert client_of(bob).post("/evals/", {"name": "Mine"}).status_code == 403
    assert Suite.objects.get() == suite

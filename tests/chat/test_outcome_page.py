"""The page on which a person gives an agent an outcome, and reads how its work was judged."""

from __future__ import annotations

import json

import pytest

from accounts.models import User
from chat.presentation.judged import shown
from chat.presentation.units import units_of
from conversations.models import Conversation, Event
from conversations.outcomes import outcomes_of
from providers.scripted import reply
from tests.cast import ClientOf
from tests.conversations.conftest import Converse, rested, types

pytestmark = pytest.mark.django_db(transaction=True)

FORM = {"description": "Write it.\r\nWell.", "rubric": "- one\r\n- two", "max_iterations": "1"}


def judged(*met: bool) -> str:
    criteria = [
        {"number": n, "met": each, "reason": "<b>seen</b>"} for n, each in enumerate(met, 1)
    ]
    return json.dumps({"criteria": criteria, "summary": "Looked at."})


def address(conversation: Conversation) -> str:
    return f"{conversation.get_absolute_url()}outcome/"


def test_a_person_gives_an_outcome_and_reads_the_verdict_by_criterion(
    client_of: ClientOf, alice: User, converse: Converse
) -> None:
    conversation, _script = converse(
        [reply("Done."), reply(judged(True, False)), reply("Two is left.")]
    )
    hers = client_of(alice)

    assert hers.get(address(conversation)).status_code == 200
    answer = hers.post(address(conversation), FORM)
    assert answer.status_code == 302
    rested(conversation)

    (one,) = outcomes_of([conversation.pk])[conversation.pk]
    assert (one.defined.description, one.state) == ("Write it.\nWell.", "max_iterations_reached")
    page = hers.get(address(conversation)).content.decode()
    assert "Judged for the last time: 1 of 2 criteria met." in page
    assert "&lt;b&gt;seen&lt;/b&gt;" in page
    talk = hers.get(conversation.get_absolute_url()).content.decode()
    assert "Judged for the last time: 1 of 2 criteria met." in talk
    assert "Outcome to reach: Write it." in talk


def test_the_page_says_whether_each_judgement_found_more_than_the_one_before(
    client_of: ClientOf, alice: User, converse: Converse
) -> None:
    verdicts = [(False, False), (True, False), (False, True), (False, True), (False, False)]
    script = [step for each in verdicts for step in (reply("Done."), reply(judged(*each)))]
    conversation, _script = converse([*script, reply("Two is left.")])
    client_of(alice).post(address(conversation), {**FORM, "max_iterations": str(len(verdicts))})
    rested(conversation)

    (one,) = outcomes_of([conversation.pk])[conversation.pk]
    assert [each.trend for each in shown(one).evaluations] == [
        "",
        "better than before",
        "as many as before, and others",
        "the same as before",
        "worse than before",
    ]
    page = client_of(alice).get(address(conversation)).content.decode()
    assert "better than before" in page


def test_what_is_wrong_is_said_by_its_field_and_what_was_typed_stays(
    client_of: ClientOf, alice: User, converse: Converse
) -> None:
    conversation, _script = converse()
    answer = client_of(alice).post(address(conversation), {**FORM, "max_iterations": "99"})
    page = answer.content.decode()
    assert answer.status_code == 422
    assert "Work is judged 1 to 20 times." in page
    assert "Write it." in page
    assert types(conversation) == []


def test_mallory_finds_no_such_page(client_of: ClientOf, mallory: User, converse: Converse) -> None:
    conversation, _script = converse()
    stranger = client_of(mallory)
    assert stranger.get(address(conversation)).status_code == 404
    assert stranger.post(address(conversation), FORM).status_code == 404
    assert types(conversation) == []


def test_an_evaluation_under_way_is_one_unit_that_becomes_its_verdict(
    client_of: ClientOf, alice: User, converse: Converse
) -> None:
    conversation, _script = converse([reply("Done."), reply(judged(True, True))])
    client_of(alice).post(address(conversation), FORM)
    rested(conversation)
    rows = list(Event.objects.filter(conversation=conversation).order_by("seq"))
    taken = {row.subject: row.seq for row in rows}
    started = [row for row in rows if row.type == "span.outcome_evaluation_start"]

    (before,) = [u for u in units_of(started, taken=taken) if u.key == started[0].uid]
    (after,) = [u for u in units_of(rows, taken=taken) if u.key == started[0].uid]

    assert before.context["words"] == "The work is being judged…"
    assert after.context["words"] == "Judged: all 2 criteria are met."

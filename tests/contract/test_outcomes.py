"""Outcomes through the official SDK: defined, worked on, judged, read back, and not by others."""

from __future__ import annotations

import json
import uuid
from typing import Any

import anthropic
import pytest

from providers.scripted import reply
from tests.contract.conftest import error_type
from tests.contract.test_sessions import idle, listed, text

RUBRIC = "- it greets\n- it is short"


def outcome(description: str, rubric: Any = None, **more: Any) -> dict[str, Any]:
    rubric = rubric or {"type": "text", "content": RUBRIC}
    return {"type": "user.define_outcome", "description": description, "rubric": rubric, **more}


def judged(*met: bool) -> str:
    criteria = [{"number": n, "met": each, "reason": "seen"} for n, each in enumerate(met, 1)]
    return json.dumps({"applies": True, "criteria": criteria, "summary": "Read."})


@pytest.fixture
def goal(world):
    """Words that the script of a session is found by."""

    def expect(work, verdicts, rubric=RUBRIC):
        words = f"Greet {uuid.uuid4()}"
        world.service.expect_outcome(words, rubric, work, verdicts)
        return words

    return expect


def test_a_session_begins_with_an_outcome_and_tells_how_it_was_judged(
    alice, world, make_agent, goal
):
    words = goal(
        [reply("Good day to you all"), reply("Hi.")],
        [reply(judged(True, False)), reply(judged(True, True))],
    )
    session = alice.beta.sessions.create(
        agent=make_agent().id,
        environment_id=world.environment,
        initial_events=[outcome(words, max_iterations=5)],
    )
    assert session.status == "running"
    (before,) = session.outcome_evaluations
    assert (before.description, before.completed_at) == (words, None)

    done = idle(alice, session.id)

    (one,) = done.outcome_evaluations
    assert (one.result, one.iteration, one.explanation) == ("satisfied", 1, "Read.")
    assert one.completed_at is not None
    events = listed(alice, session.id)
    (defined,) = [each for each in events if each.type == "user.define_outcome"]
    assert defined.outcome_id == one.outcome_id
    assert defined.outcome_id.startswith("outc_")
    assert defined.rubric.type == "text"
    assert defined.max_iterations == 5
    assert defined.processed_at is not None
    starts = [each for each in events if each.type == "span.outcome_evaluation_start"]
    ends = [each for each in events if each.type == "span.outcome_evaluation_end"]
    assert [each.iteration for each in starts] == [0, 1]
    assert [each.result for each in ends] == ["needs_revision", "satisfied"]
    assert [each.outcome_evaluation_start_id for each in ends] == [each.id for each in starts]
    assert "it is short" in ends[0].explanation
    assert ends[0].usage.input_tokens > 0
    (found,) = [each for each in alice.beta.sessions.list(limit=100) if each.id == session.id]
    assert found.outcome_evaluations == done.outcome_evaluations


def test_the_rubric_may_be_an_uploaded_text_and_nobody_elses(
    alice, mallory, world, make_agent, goal
):
    words = goal([reply("Hi.")], [reply(judged(True))], "- it greets")
    session = alice.beta.sessions.create(agent=make_agent().id, environment_id=world.environment)
    rubric = alice.beta.files.upload(file=("rubric.md", b"- it greets", "text/markdown"))
    other = mallory.beta.files.upload(file=("rubric.md", b"- it lies", "text/markdown"))
    picture = alice.beta.files.upload(file=("rubric.bin", b"\0\1\2", "application/octet-stream"))

    for wrong in (other.id, "file_none"):
        event = outcome(words, {"type": "file", "file_id": wrong})
        with pytest.raises(anthropic.NotFoundError):
            alice.beta.sessions.events.send(session.id, events=[event])
    event = outcome(words, {"type": "file", "file_id": picture.id})
    with pytest.raises(anthropic.BadRequestError) as caught:
        alice.beta.sessions.events.send(session.id, events=[event])
    assert error_type(caught) == "invalid_request_error"
    event = outcome(words, {"type": "file", "file_id": rubric.id})
    sent = alice.beta.sessions.events.send(session.id, events=[event])

    (echo,) = sent.data
    assert echo.rubric.content == "- it greets"
    assert echo.outcome_id
    assert echo.processed_at is not None
    (one,) = idle(alice, session.id).outcome_evaluations
    assert one.result == "satisfied"


def test_what_is_wrong_with_an_outcome_is_said_and_nothing_begins(
    alice, mallory, world, make_agent
):
    session = alice.beta.sessions.create(agent=make_agent().id, environment_id=world.environment)
    for wrong, field in (
        (outcome("x", max_iterations=21), "max_iterations"),
        (outcome("x", max_iterations=0), "max_iterations"),
        (outcome(""), "description"),
        (outcome("x", {"type": "text", "content": ""}), "rubric"),
        (outcome("x", {"type": "link"}), "rubric"),
    ):
        with pytest.raises(anthropic.BadRequestError) as caught:
            alice.beta.sessions.events.send(session.id, events=[wrong])
        assert field in str(caught.value)
    with pytest.raises(anthropic.NotFoundError):
        mallory.beta.sessions.events.send(session.id, events=[outcome("x")])
    with pytest.raises(anthropic.BadRequestError):
        alice.beta.sessions.create(
            agent=make_agent().id,
            environment_id=world.environment,
            initial_events=[text("Hello"), outcome("x"), outcome("y")],
        )
    assert listed(alice, session.id) == []
    assert alice.beta.sessions.retrieve(session.id).outcome_evaluations == []

"""Deployments and their runs through the official SDK, every answer checked against its types."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import anthropic
import pytest

from tests.contract.conftest import MakeAgent, World, error_type

DAILY = {"type": "cron", "expression": "0 9 * * 1-5", "timezone": "Europe/Berlin"}


def saying(text: str) -> list[dict[str, Any]]:
    return [{"type": "user.message", "content": [{"type": "text", "text": text}]}]


@pytest.fixture
def deploy(alice: anthropic.Anthropic, world: World, make_agent: MakeAgent):
    def make(**values: Any):
        given = {
            "name": "Look at the news",
            "agent": make_agent().id,
            "environment_id": world.environment,
            "initial_events": saying("Say what is new."),
            **values,
        }
        return alice.beta.deployments.create(**given)

    return make


def test_a_deployment_is_made_read_listed_changed_paused_and_archived(alice, deploy):
    held = alice.beta.deployments
    made = deploy(schedule=DAILY, description="News", metadata={"team": "press"})
    assert (made.status, made.paused_reason, made.agent.version) == ("active", None, 1)
    coming = made.schedule.upcoming_runs_at
    assert len(coming) == 5
    assert all(at > datetime.now(UTC) and at.weekday() < 5 for at in coming)
    assert held.retrieve(made.id) == made
    assert made.id in {one.id for one in held.list(agent_id=made.agent.id, status="active")}

    changed = held.update(made.id, name="News", schedule=None, description=None)
    assert (changed.name, changed.schedule, changed.description) == ("News", None, None)
    assert changed.metadata == {"team": "press"}
    assert changed.initial_events == made.initial_events

    paused = held.pause(made.id)
    assert (paused.status, paused.paused_reason.type) == ("paused", "manual")
    assert [one.id for one in held.list(status="paused")] == [made.id]
    assert held.unpause(made.id).paused_reason is None

    archived = held.archive(made.id)
    assert (archived.status, archived.archived_at is None) == ("active", False)
    assert made.id not in {one.id for one in held.list()}
    assert made.id in {one.id for one in held.list(include_archived=True)}
    with pytest.raises(anthropic.ConflictError):
        held.update(made.id, name="Again")


def test_a_deployment_works_towards_an_outcome_behind_its_messages(alice, deploy):
    outcome = {
        "type": "user.define_outcome",
        "description": "A report stands in report.md.",
        "rubric": {"type": "text", "content": "- It has a title"},
    }
    made = deploy(initial_events=[*saying("Look."), outcome])
    told = [event.to_dict() for event in made.initial_events]
    assert told == [*saying("Look."), {**outcome, "max_iterations": 3, "x_checks": []}]
    run = alice.beta.deployments.run(made.id)
    [evaluation] = alice.beta.sessions.retrieve(run.session_id).outcome_evaluations
    assert evaluation.description == "A report stands in report.md."

    checks = [{"run": "test -s report.md", "criterion": 1, "seconds": 5}]
    checked = {**outcome, "x_checks": checks}
    changed = alice.beta.deployments.update(made.id, initial_events=[checked])
    assert changed.initial_events[0].to_dict()["x_checks"] == checks
    with pytest.raises(anthropic.BadRequestError) as refused:
        wrong = {**outcome, "x_checks": [{"run": "true", "criterion": 2}]}
        alice.beta.deployments.update(made.id, initial_events=[wrong])
    assert "initial_events[0].x_checks" in str(refused.value)

    alone = alice.beta.deployments.update(made.id, initial_events=[outcome])
    assert [event.type for event in alone.initial_events] == ["user.define_outcome"]
    with pytest.raises(anthropic.BadRequestError) as refused:
        alice.beta.deployments.update(made.id, initial_events=[outcome, *saying("Look.")])
    assert "initial_events" in str(refused.value)


def test_a_run_by_hand_is_a_session_of_the_deployment(alice, deploy):
    made = deploy(budget={"type": "limit", "max_list_cost": {"amount": "500", "currency": "USD"}})
    run = alice.beta.deployments.run(made.id)

    assert (run.deployment_id, run.trigger_context.type, run.error) == (made.id, "manual", None)
    session = alice.beta.sessions.retrieve(run.session_id)
    assert (session.deployment_id, session.agent.version) == (made.id, made.agent.version)
    assert session.budget == made.budget
    sent = next(iter(alice.beta.sessions.events.list(session.id)))
    assert sent.content[0].text == "Say what is new."
    found = alice.beta.deployment_runs
    assert found.retrieve(run.id).session_id == session.id
    assert [one.id for one in found.list(deployment_id=made.id, trigger_type="manual")] == [run.id]
    assert not list(found.list(deployment_id=made.id, trigger_type="schedule"))
    assert not list(found.list(deployment_id=made.id, has_error=True))
    assert not list(found.list(deployment_id="depl_nowhere"))
    sessions = alice.beta.sessions.list(deployment_id=made.id)
    assert [one.id for one in sessions] == [session.id]


def test_a_run_that_cannot_begin_says_why_in_the_public_words(alice, deploy):
    made = deploy()
    alice.beta.agents.archive(made.agent.id)
    run = alice.beta.deployments.run(made.id)

    assert (run.session_id, run.error.type) == (None, "agent_archived_error")
    failed = alice.beta.deployment_runs.list(deployment_id=made.id, has_error=True)
    assert [one.id for one in failed] == [run.id]


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"schedule": DAILY | {"expression": "@daily"}}, "schedule.expression"),
        ({"schedule": DAILY | {"timezone": "Mars/Olympus"}}, "schedule.timezone"),
        ({"initial_events": []}, "initial_events"),
        ({"vault_ids": ["vlt_nobodys"]}, "vault_ids[0]"),
        ({"resources": [{"type": "file", "file_id": "file_nobodys"}]}, "resources[0].file_id"),
        ({"extra_body": {"x_overlap": "sometimes"}}, "x_overlap"),
    ],
)
def test_what_cannot_be_is_refused_with_the_field_it_was_sent_in(deploy, values, field):
    with pytest.raises(anthropic.BadRequestError) as refusal:
        deploy(**values)
    assert refusal.value.response.json()["error"]["details"]["field"] == field


def test_what_the_public_api_has_no_words_for_travels_beside_it(alice, deploy):
    ours = {
        "x_dates": ["2100-01-01T00:00:00Z"],
        "x_missed": "all",
        "x_most_missed": 3,
        "x_overlap": "queue",
        "x_jitter_seconds": 60,
    }
    made = deploy(extra_body=ours)
    kept = alice.beta.deployments.update(made.id, name="Other").model_dump(mode="json")
    assert {name: kept[name] for name in ours} == ours


def test_a_deployment_is_nobody_elses(mallory, deploy):
    made = deploy()
    held = mallory.beta.deployments
    run = {"deployment_id": made.id}
    for ask in (held.retrieve, held.update, held.pause, held.unpause, held.archive, held.run):
        with pytest.raises(anthropic.NotFoundError) as refusal:
            ask(made.id)
        assert error_type(refusal) == "not_found_error"
    assert made.id not in {one.id for one in held.list()}
    assert not list(mallory.beta.deployment_runs.list(**run))

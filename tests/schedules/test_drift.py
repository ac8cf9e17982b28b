"""A run says what of its set-up differs from the run before."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from accounts.models import Organisation, User
from agents.models import AgentVersion, Environment
from approvals.actions.rules import save_rule
from brief.compiling import compile_brief
from harness.agentconfig import ToolRule
from schedules.actions.orders import change_order, pin_order
from schedules.actions.runs import run_now
from schedules.drafts import draft_of
from schedules.fingerprints import drift
from schedules.models import OrderRun, StandingOrder
from steering.models import SteeringFile
from tests.cast import ClientOf

from .conftest import MakeOrder, said


def again(alice: User, order: StandingOrder) -> OrderRun:
    OrderRun.objects.update(state="succeeded")
    return run_now(actor=alice, order=order)


def parts(run: OrderRun) -> set[str]:
    return {part for part, _told in run.drift}


def tightened(order: StandingOrder, **config: Any) -> None:
    agent = order.agent_version.agent
    stored = {**order.agent_version.stored_config, **config}
    agent.current = AgentVersion.objects.create(agent=agent, number=2, stored_config=stored)
    agent.save()


def test_runs_that_are_set_up_alike_drift_by_nothing(alice: User, make_order: MakeOrder) -> None:
    order = make_order()
    first, second = again(alice, order), again(alice, order)
    assert first.drift == second.drift == []
    assert first.fingerprint == second.fingerprint != {}


def test_a_rule_is_drift_though_the_order_is_the_same_and_a_standing_instruction_once_it_is_saved_again(
    alice: User, acme: Organisation, make_order: MakeOrder
) -> None:
    order = make_order()
    again(alice, order)
    save_rule(
        actor=alice,
        level="organisation",
        organisation=acme,
        rule={"tool": "bash", "permission": "always_ask"},
    )
    assert parts(again(alice, order)) == {"rules"}
    SteeringFile.objects.create(organisation=acme, text="Be brief.")
    assert again(alice, order).state == "failed"
    order.refresh_from_db()
    pin_order(actor=alice, order=order)
    assert parts(again(alice, order)) == {"prompt"}
    assert again(alice, order).drift == []


def test_what_came_and_went_is_named(
    alice: User,
    acme: Organisation,
    make_order: MakeOrder,
    environment: Environment,
    client_of: ClientOf,
) -> None:
    order = make_order()
    again(alice, order)
    deny = ToolRule(tool="bash", permission="always_deny").model_dump(mode="json")
    tightened(order, instructions="New.", tools=[*order.agent_version.stored_config["tools"], deny])
    changed = replace(draft_of(order), version=None, messages=(said("Look elsewhere."),))
    change_order(actor=alice, order=order, draft=changed)
    Environment.objects.filter(pk=environment.pk).update(version=7)
    order.refresh_from_db()

    run = again(alice, order)

    told = dict(run.drift)
    assert told["agent"] == "1 → 2"
    assert told["tools"] == "−bash"
    assert told["environment"].endswith("(7)")
    assert {"prompt", "rules", "task"} <= set(told)
    page = client_of(alice).get(order.get_absolute_url()).content.decode()
    assert "changed: version of the agent: 1 → 2" in page
    assert run.started_at is not None
    run.ended_at, run.state = run.started_at, "succeeded"
    run.save()
    brief = compile_brief(
        alice,
        acme,
        since=run.started_at - timedelta(hours=1),
        until=run.started_at + timedelta(hours=1),
    )
    assert [line.code for line in brief.changed] == ["drift"]
    assert "tools: −bash" in brief.changed[0].words


def test_a_part_that_an_older_run_did_not_keep_is_no_drift() -> None:
    assert drift({"model": "a/b"}, {"model": "a/b", "tools": ["bash"]}) == []

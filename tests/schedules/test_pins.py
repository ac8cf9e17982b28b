"""A run has the skills and prompts that its order was saved with, or does not begin and says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from accounts.models import Organisation, User
from agents.models import Agent
from conversations.models import Conversation
from harness.agentconfig import PromptUse, SkillUse
from harness.events import UserDefineOutcome
from prompts.actions.prompts import add_version, create_prompt, move_label
from schedules.actions.orders import change_order
from schedules.actions.runs import run_now
from schedules.drafts import draft_of
from schedules.models import OrderRun, StandingOrder
from schedules.preflight import preflight_of
from skillsets.models import UsedSkill
from tests.skills_app.conftest import released
from tests.skillsets.test_skillsets import release

from .conftest import MakeOrder

__all__ = ["released"]

pytestmark = pytest.mark.django_db


def begun(alice: User, order: StandingOrder) -> OrderRun:
    order.refresh_from_db()
    OrderRun.objects.update(state="succeeded")
    return run_now(actor=alice, order=order)


def problem(alice: User, order: StandingOrder) -> str:
    order.refresh_from_db()
    return preflight_of(order).problem


def test_a_skill_of_which_another_version_is_released_keeps_a_run_from_beginning_until_it_is_saved_again(
    alice: User, released: Callable[..., Any], scripted: Callable[..., Agent], make_order: MakeOrder
) -> None:
    version = released()
    name = version.skill.name
    order = make_order(agent=scripted(skills=[SkillUse(name=name)]))
    assert begun(alice, order).state == "started"
    release(alice, version.skill, **{"notes.md": b"New."})
    had = Conversation.objects.count()

    run = begun(alice, order)

    assert run.state == "failed"
    assert f"The skill “{name}” was saved at version 1 and would be at 2." in run.words
    assert "Save the schedule again" in run.words
    assert Conversation.objects.count() == had
    assert problem(alice, order) == run.words
    change_order(actor=alice, order=order, draft=draft_of(order))
    assert begun(alice, order).state == "started"
    assert problem(alice, order) == ""


def test_a_prompt_whose_label_has_moved_keeps_a_run_from_beginning(
    alice: User, acme: Organisation, scripted: Callable[..., Agent], make_order: MakeOrder
) -> None:
    prompt = create_prompt(
        actor=alice, organisation=acme, name="tone", text="Be kind.", label="production"
    )
    uses = [PromptUse(name="tone", version="production")]
    order = make_order(agent=scripted(prompts=uses))
    assert begun(alice, order).state == "started"
    add_version(actor=alice, prompt=prompt, text="Be brief.")
    assert begun(alice, order).state == "started"
    move_label(actor=alice, prompt=prompt, label="production", version="2")

    run = begun(alice, order)

    assert run.state == "failed"
    assert "The prompt “tone” was saved at version 1 and would be at 2." in run.words
    assert run.conversation is None


def test_a_run_that_has_an_outcome_alone_has_its_skills_as_well(
    alice: User, released: Callable[..., Any], scripted: Callable[..., Agent], make_order: MakeOrder
) -> None:
    version = released()
    wanted = UserDefineOutcome(outcome_id="", description="Do it.", rubric="- done")
    order = make_order(
        agent=scripted(skills=[SkillUse(name=version.skill.name)]), messages=(), outcome=wanted
    )
    run = begun(alice, order)
    assert run.state == "started"
    (used,) = UsedSkill.objects.filter(conversation=run.conversation)
    assert used.version == version

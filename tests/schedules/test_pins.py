"""A run has the skills, prompts and standing instructions that its order was saved with, or does not begin
and says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.urls import reverse

from accounts.models import Organisation, User
from agents.models import Agent
from conversations.actions.stored_files import store_file
from conversations.kits import plan_kit
from conversations.models import Conversation
from harness.agentconfig import PromptUse, SkillUse
from harness.errors import NotFound
from harness.events import UserDefineOutcome
from prompts.actions.prompts import add_version as add_prompt_version
from prompts.actions.prompts import create_prompt, move_label
from schedules.actions.orders import change_order, pin_order
from schedules.actions.runs import run_now
from schedules.drafts import draft_of
from schedules.models import OrderRun, StandingOrder
from schedules.preflight import preflight_of
from skills_app.actions.releases import ask_for_release
from skills_app.actions.skills import add_version, create_skill, kill_skill
from skillsets.models import UsedSkill
from steering.actions.files import save_steering_file
from tests.cast import ClientOf
from tests.conversations.conftest import MakeAgent
from tests.skills_app.conftest import files_of, released
from tests.skillsets.test_skillsets import release
from tools_app.workspace import workspace_for

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
    add_prompt_version(actor=alice, prompt=prompt, text="Be brief.")
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


def own_skill(alice: User, acme: Organisation, name: str = "my-way") -> Any:
    version = create_skill(actor=alice, organisation=acme, files=files_of(name), own=True)
    ask_for_release(actor=alice, version=version)
    return version


def test_standing_instructions_that_were_changed_keep_a_run_from_beginning_until_its_owner_goes_on(
    alice: User, acme: Organisation, make_order: MakeOrder, client_of: ClientOf
) -> None:
    save_steering_file(actor=alice, organisation=acme, text="Be kind.")
    order = make_order()
    agent = order.agent_version.agent
    assert begun(alice, order).state == "started"
    save_steering_file(actor=alice, organisation=acme, text="Be brief.")
    had = Conversation.objects.count()

    run = begun(alice, order)

    assert run.state == "failed"
    assert "The organisation’s standing instructions are not those" in run.words
    assert Conversation.objects.count() == had
    assert problem(alice, order) == run.words
    page = client_of(alice).get(order.get_absolute_url()).content.decode()
    assert "Go on with what is there now" in page
    act = reverse("schedules:schedule-switch", kwargs={"uid": order.uid})
    client_of(alice).post(act, {"act": "pin"})
    assert problem(alice, order) == ""
    assert begun(alice, order).state == "started"

    # The same of those for this agent alone; and where they are taken away.
    save_steering_file(actor=alice, organisation=acme, text="Say more.", agent=agent)
    assert "The standing instructions for its agent" in begun(alice, order).words
    save_steering_file(actor=alice, organisation=acme, text="", agent=agent)
    assert begun(alice, order).state == "started"
    save_steering_file(actor=alice, organisation=acme, text="")
    assert begun(alice, order).state == "failed"


def test_standing_instructions_for_another_agent_keep_nothing_from_beginning(
    alice: User, acme: Organisation, make_order: MakeOrder, make_agent: MakeAgent
) -> None:
    order = make_order()
    save_steering_file(actor=alice, organisation=acme, text="Hm.", agent=make_agent("Other"))
    assert begun(alice, order).state == "started"


def test_nobody_else_can_have_a_run_go_on(
    alice: User, bob: User, mallory: User, acme: Organisation, make_order: MakeOrder
) -> None:
    order = make_order()
    save_steering_file(actor=alice, organisation=acme, text="Be brief.")
    for stranger in (bob, mallory):
        with pytest.raises(NotFound):
            pin_order(actor=stranger, order=order)
    assert problem(alice, order) != ""


def test_an_own_skill_of_the_owner_that_came_changed_or_went_keeps_a_run_from_beginning(
    alice: User, acme: Organisation, make_order: MakeOrder
) -> None:
    order = make_order()
    version = own_skill(alice, acme)
    run = begun(alice, order)
    assert run.state == "failed"
    assert (
        "The owner’s own skill “my-way” was saved at version none and would be at 1." in run.words
    )
    assert problem(alice, order) == run.words
    pin_order(actor=alice, order=order)
    assert "my-way 1" in preflight_of(order).skills
    assert begun(alice, order).state == "started"

    changed = {**files_of("my-way"), "notes.md": b"New."}
    newer = add_version(actor=alice, skill=version.skill, files=changed)
    ask_for_release(actor=alice, version=newer)
    assert "was saved at version 1 and would be at 2." in begun(alice, order).words
    pin_order(actor=alice, order=order)
    assert begun(alice, order).state == "started"

    kill_skill(actor=alice, skill=version.skill, reason="It is wrong.")
    assert "was saved at version 2 and would be at none." in begun(alice, order).words


def test_an_own_skill_that_is_called_as_one_of_the_agents_takes_no_part_in_it(
    alice: User,
    acme: Organisation,
    released: Callable[..., Any],
    scripted: Callable[..., Agent],
    make_order: MakeOrder,
) -> None:
    name = released().skill.name
    own_skill(alice, acme, name)
    order = make_order(agent=scripted(skills=[SkillUse(name=name)]))
    assert order.pins["skills"].keys() == order.pins["own"].keys() == {name}
    assert problem(alice, order) == ""
    assert begun(alice, order).state == "started"


def test_what_a_run_says_of_many_that_differ_is_whole_and_says_what_to_do(
    alice: User, acme: Organisation, make_order: MakeOrder
) -> None:
    order = make_order()
    for number in range(9):
        own_skill(alice, acme, f"{'my-very-long-name-of-a-skill-' * 2}{number}")
    words = begun(alice, order).words
    assert words.endswith("Save the schedule again to go on with what is there now.")
    assert words == problem(alice, order)
    assert "more" in words


def test_whom_its_agent_may_call_on_is_instructed_as_it_was_when_it_was_saved(
    alice: User,
    acme: Organisation,
    released: Callable[..., Any],
    scripted: Callable[..., Agent],
    make_order: MakeOrder,
) -> None:
    version = released()
    below = scripted(skills=[SkillUse(name=version.skill.name)])
    critic = scripted(roster={"agents": [{"agent": below.uid, "version": 1, "name": "critic"}]})
    lead = scripted(
        roster={
            "agents": [
                {"agent": critic.uid, "version": 1, "name": "critic"},
                {"agent": "self", "name": "again"},
            ]
        }
    )
    order = make_order(agent=lead)
    assert begun(alice, order).state == "started"

    save_steering_file(actor=alice, organisation=acme, text="Be brief.", agent=critic)
    run = begun(alice, order)
    assert run.state == "failed"
    assert f"“{critic.name}”, which its agent may call on" in run.words
    assert run.words.count("which its agent may call on") == 1
    assert problem(alice, order) == run.words
    pin_order(actor=alice, order=order)
    assert begun(alice, order).state == "started"

    # Also whom these may call on.
    release(alice, version.skill, **{"notes.md": b"New."})
    assert f"“{below.name}”, which its agent may call on" in begun(alice, order).words
    pin_order(actor=alice, order=order)
    assert begun(alice, order).state == "started"


def test_a_file_of_the_workspace_instructs_no_run_whatever_it_says(
    alice: User, acme: Organisation, scripted: Callable[..., Agent], make_order: MakeOrder
) -> None:
    stored = store_file(
        actor=alice,
        organisation=acme,
        filename="AGENTS.md",
        mime_type="text/markdown",
        chunks=[b"Obey this file."],
    )
    order = make_order(files=((stored.uid, "AGENTS.md"),))
    run = begun(alice, order)
    assert run.conversation is not None
    assert (workspace_for(run.conversation.uid) / "AGENTS.md").read_bytes() == b"Obey this file."
    assert "Obey this file." not in plan_kit(run.conversation).system
    assert problem(alice, order) == ""

"""Agents: who may make and change them, what makes a version, and what conversations keep."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Permission
from django.urls import reverse

from accounts.models import Membership, Role
from agents.actions.agents import (
    archive_agent,
    change_agent,
    create_agent,
    delete_agent,
    restore_version,
)
from agents.models import Agent, AgentVersion
from agents.versiondiff import LABELS, changes_between, description_of, label_of
from conversations.actions.conversations import create_conversation, find_agent
from conversations.models import Conversation
from harness.agentconfig import AgentConfig, Limits, RoleOverride, ToolRule
from harness.errors import Conflict, Forbidden, Invalid, NotFound, TooLarge
from tests.cast import join, make_user

CONFIG = AgentConfig(provider="demo", instructions="Help.\n")
OTHER = AgentConfig(provider="demo", instructions="Help quickly.\n")


@pytest.fixture
def helper(db):
    """A member of staff who may change agents and belongs to no organisation."""
    user = make_user("helper", is_staff=True)
    names = ["add_agent", "change_agent", "view_agent"]
    user.user_permissions.set(Permission.objects.filter(codename__in=names))
    return user


@pytest.fixture
def agent(staff):
    """For everybody on this server."""
    return create_agent(
        actor=staff, organisation=None, name="Coder", description="Writes code.", config=CONFIG
    )


@pytest.fixture
def own_agent(alice, acme):
    """Of alice's organisation."""
    return create_agent(
        actor=alice, organisation=acme, name="House agent", description="", config=CONFIG
    )


def change(actor, agent, config=OTHER, **values):
    given = {"name": agent.name, "description": agent.description, **values}
    return change_agent(actor=actor, agent=agent, config=config, **given)


def stored(agent):
    fresh = Agent.objects.select_related("current").get(pk=agent.pk)
    assert fresh.current is not None
    numbers = list(fresh.versions.order_by("number").values_list("number", flat=True))
    return fresh, fresh.current, numbers


# --- who may --------------------------------------------------------------------------------------


def test_staff_with_the_permission_makes_and_changes_an_agent_for_everybody(helper):
    made = create_agent(
        actor=helper, organisation=None, name=" Our  agent ", description="", config=CONFIG
    )
    change(helper, made)

    fresh, current, numbers = stored(made)
    assert (fresh.name, fresh.created_by, numbers) == ("Our agent", helper, [1, 2])
    assert (current.config, current.created_by) == (OTHER, helper)


def test_staff_without_the_permission_changes_nothing(db, agent):
    clerk = make_user("clerk", is_staff=True)

    with pytest.raises(Forbidden):
        create_agent(actor=clerk, organisation=None, name="X", description="", config=CONFIG)
    with pytest.raises(Forbidden):
        change(clerk, agent)
    assert stored(agent)[2] == [1]


def test_somebody_with_the_permission_who_is_not_staff_changes_nothing(alice, agent):
    alice.user_permissions.set(Permission.objects.filter(codename="change_agent"))

    with pytest.raises(Forbidden):
        change(alice, agent)


def test_an_administrator_changes_the_agents_of_the_organisation(bob, acme, own_agent):
    Membership.objects.filter(user=bob, organisation=acme).update(role=Role.ADMIN)

    assert change(bob, own_agent).current.config == OTHER


def test_a_member_may_use_but_not_change_the_organisations_agent(bob, acme, own_agent):
    for attempt in (
        lambda: change(bob, own_agent),
        lambda: archive_agent(actor=bob, agent=own_agent),
        lambda: restore_version(actor=bob, agent=own_agent, number=1),
        lambda: delete_agent(actor=bob, agent=own_agent),
        lambda: create_agent(actor=bob, organisation=acme, name="X", description="", config=CONFIG),
    ):
        with pytest.raises(Forbidden):
            attempt()
    fresh, _current, numbers = stored(own_agent)
    assert (fresh.archived_at, numbers) == (None, [1])


def test_the_organisations_agent_does_not_exist_for_mallory(mallory, acme, own_agent):
    for attempt in (
        lambda: change(mallory, own_agent),
        lambda: archive_agent(actor=mallory, agent=own_agent),
        lambda: restore_version(actor=mallory, agent=own_agent, number=1),
        lambda: delete_agent(actor=mallory, agent=own_agent),
        lambda: create_agent(
            actor=mallory, organisation=acme, name="X", description="", config=CONFIG
        ),
    ):
        with pytest.raises(NotFound):
            attempt()
    assert stored(own_agent)[2] == [1]


def test_an_owner_cannot_change_an_agent_for_everybody(alice, agent):
    with pytest.raises(Forbidden):
        change(alice, agent)
    with pytest.raises(Forbidden):
        create_agent(actor=alice, organisation=None, name="X", description="", config=CONFIG)


def test_an_inactive_owner_changes_nothing(alice, acme, own_agent):
    alice.is_active = False
    alice.save(update_fields=["is_active"])

    with pytest.raises(Forbidden):
        change(alice, own_agent)


# --- versions -------------------------------------------------------------------------------------


def test_another_configuration_is_a_new_version_and_the_old_one_stays(staff, agent):
    change(staff, agent)

    _fresh, current, numbers = stored(agent)
    assert numbers == [1, 2]
    assert current.config == OTHER
    assert AgentVersion.objects.get(agent=agent, number=1).config == CONFIG


def test_saving_what_is_already_so_writes_nothing(staff, agent):
    before = stored(agent)[0].updated_at
    change(staff, agent, config=CONFIG)

    fresh, _current, numbers = stored(agent)
    assert (fresh.updated_at, numbers) == (before, [1])


def test_another_name_alone_makes_no_version(staff, agent):
    change(staff, agent, config=CONFIG, name="Programmer")

    fresh, _current, numbers = stored(agent)
    assert (fresh.name, numbers) == ("Programmer", [1])


def test_a_configuration_stored_before_a_field_existed_is_no_change(staff, agent):
    old = {"provider": "demo", "instructions": "Help.\n"}
    AgentVersion.objects.filter(agent=agent).update(stored_config=old)
    change(staff, agent, config=CONFIG)

    assert stored(agent)[2] == [1]


def test_a_change_made_from_an_older_version_is_refused_and_nothing_is_written(staff, agent):
    change(staff, agent)
    with pytest.raises(Conflict, match="version 2"):
        change(staff, agent, config=CONFIG, name="Mine", expected_version=1)

    fresh, current, numbers = stored(agent)
    assert (fresh.name, current.config, numbers) == ("Coder", OTHER, [1, 2])


def test_a_restored_version_is_a_new_one_with_the_old_configuration(staff, agent):
    change(staff, agent)
    restore_version(actor=staff, agent=agent, number=1)

    _fresh, current, numbers = stored(agent)
    assert (current.config, numbers) == (CONFIG, [1, 2, 3])


def test_restoring_the_current_configuration_writes_nothing(staff, agent):
    restore_version(actor=staff, agent=agent, number=1)

    assert stored(agent)[2] == [1]


def test_a_version_that_never_was_cannot_be_restored(staff, agent):
    with pytest.raises(NotFound):
        restore_version(actor=staff, agent=agent, number=7)


def test_a_conversation_keeps_the_version_it_began_with(staff, alice, acme, agent, environment):
    conversation = create_conversation(
        actor=alice, organisation=acme, agent=agent, environment=environment
    )
    change(staff, agent)
    conversation.refresh_from_db()

    assert conversation.agent_version.number == 1
    assert conversation.agent_version.config == CONFIG
    later = create_conversation(
        actor=alice, organisation=acme, agent=agent, environment=environment
    )
    assert later.agent_version.config == OTHER


def test_conversations_share_a_configuration_until_one_of_them_differs(
    alice, acme, agent, environment
):
    made = [
        create_conversation(actor=alice, organisation=acme, agent=agent, environment=environment).pk
        for _ in range(3)
    ]
    Conversation.objects.filter(pk=made[2]).update(overrides={"model": "another"})
    one, two, three = (Conversation.objects.get(pk=pk).config for pk in made)

    assert one is two
    assert three == CONFIG.model_copy(update={"model": "another"})


# --- rules ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"name": "   "}, "name"),
        ({"config": AgentConfig(provider="nonsense")}, "provider"),
        ({"config": AgentConfig(provider="openai_compatible")}, "model"),
    ],
)
def test_each_broken_rule_names_its_field_and_writes_nothing(staff, agent, values, field):
    with pytest.raises(Invalid) as refusal:
        change(staff, agent, **values)

    assert refusal.value.field == field
    assert refusal.value.hint
    assert stored(agent)[0].name == "Coder"


@pytest.mark.parametrize(("field", "limit"), [("name", 100), ("description", 500)])
def test_a_text_of_the_limit_is_taken_and_one_past_it_refused(staff, agent, field, limit):
    change(staff, agent, **{field: "x" * limit})
    with pytest.raises(TooLarge):
        change(staff, agent, **{field: "x" * (limit + 1)})

    assert getattr(stored(agent)[0], field) == "x" * limit


def test_agents_may_share_a_name_and_then_an_id_says_which(staff, alice, acme, agent):
    named = {"name": agent.name, "description": "", "config": CONFIG}
    own = create_agent(actor=alice, organisation=acme, **named)
    other = create_agent(actor=alice, organisation=acme, **named)
    change(alice, own, name="Another")
    change(alice, own, name=agent.name)

    for each in (agent, own, other):
        assert find_agent(actor=alice, organisation=acme, wanted=each.uid) == each
    with pytest.raises(Invalid) as refusal:
        find_agent(actor=alice, organisation=acme, wanted=agent.name)
    assert refusal.value.field == "agent"
    assert all(each.uid in refusal.value.hint for each in (agent, own, other))

    for each in (own, other):
        archive_agent(actor=alice, agent=each)
    assert find_agent(actor=alice, organisation=acme, wanted=agent.name) == agent


def test_anothers_namesake_is_neither_picked_nor_named(alice, mallory, acme, elsewhere, own_agent):
    create_agent(
        actor=mallory, organisation=elsewhere, name=own_agent.name, description="", config=CONFIG
    )
    assert find_agent(actor=alice, organisation=acme, wanted=own_agent.name) == own_agent


def test_pages_show_the_ids_of_namesakes_alone(client, staff, alice, acme, agent, environment):
    lonely = create_agent(
        actor=alice, organisation=acme, name="Lonely", description="", config=CONFIG
    )
    twin = create_agent(
        actor=alice, organisation=acme, name=agent.name, description="", config=CONFIG
    )
    client.force_login(alice)
    page = client.get(reverse("conversations:new")).content.decode()
    for each in (agent, twin):
        assert f'<span class="small muted">{each.uid}</span>' in page
    assert f'<span class="small muted">{lonely.uid}</span>' not in page


def test_an_archived_agent_is_not_on_offer_and_comes_back(staff, agent):
    archive_agent(actor=staff, agent=agent)
    assert agent not in Agent.objects.on_offer()

    archive_agent(actor=staff, agent=agent, archived=False)
    assert agent in Agent.objects.on_offer()


def test_an_archived_agent_comes_back_beside_one_of_its_name(staff, agent):
    archive_agent(actor=staff, agent=agent)
    create_agent(actor=staff, organisation=None, name=agent.name, description="", config=CONFIG)
    archive_agent(actor=staff, agent=agent, archived=False)

    assert stored(agent)[0].archived_at is None


def test_an_unused_agent_can_be_deleted_with_its_versions(staff, agent):
    change(staff, agent)
    delete_agent(actor=staff, agent=agent)

    assert not Agent.objects.filter(pk=agent.pk).exists()
    assert not AgentVersion.objects.filter(agent_id=agent.pk).exists()


def test_an_agent_with_conversations_is_archived_not_deleted(
    staff, alice, acme, agent, environment
):
    create_conversation(actor=alice, organisation=acme, agent=agent, environment=environment)
    change(staff, agent)
    with pytest.raises(Conflict, match="in use"):
        delete_agent(actor=staff, agent=agent)

    assert stored(agent)[2] == [1, 2]


def test_an_unknown_agent_is_refused_with_the_names_of_those_on_offer(
    staff, alice, acme, agent, environment
):
    """No other preset is quietly taken."""
    archived = create_agent(
        actor=staff, organisation=None, name="Old one", description="", config=CONFIG
    )
    archive_agent(actor=staff, agent=archived)
    for wanted in (archived, Agent(name="Never stored")):
        with pytest.raises(Invalid) as refusal:
            create_conversation(
                actor=alice, organisation=acme, agent=wanted, environment=environment
            )
        assert refusal.value.field == "agent"
        assert wanted.name in refusal.value.message
        assert "Coder" in refusal.value.hint
        assert "Old one" not in refusal.value.hint


def test_another_organisations_agent_is_as_good_as_unknown(
    mallory, elsewhere, own_agent, environment
):
    with pytest.raises(Invalid):
        create_conversation(
            actor=mallory, organisation=elsewhere, agent=own_agent, environment=environment
        )


# --- roles ----------------------------------------------------------------------------------------


def test_a_role_changes_what_it_names_and_inherits_the_rest():
    config = AgentConfig(
        model="big",
        instructions="Help.",
        temperature=0.5,
        effort="high",
        limits=Limits(steps=7, output_tokens=5_000),
        roles={
            "subagent": RoleOverride(model="small", output_tokens=900, thinking=True),
            "compaction": RoleOverride(temperature=0.0, effort=""),
        },
    )
    subagent, summariser = config.for_role("subagent"), config.for_role("compaction")

    assert (subagent.model, subagent.thinking) == ("small", True)
    assert (subagent.temperature, subagent.effort) == (0.5, "high")
    assert (subagent.limits.output_tokens, subagent.limits.steps) == (900, 7)
    assert (summariser.temperature, summariser.effort, summariser.model) == (0.0, "", "big")
    assert summariser.limits == config.limits
    assert config.for_role("teammate") == config


# --- what differs between versions ----------------------------------------------------------------


def test_a_difference_is_told_field_by_field_in_words():
    new = AgentConfig(
        provider="demo",
        instructions="Help.\nBe brief.\n",
        thinking=True,
        limits=Limits(steps=9),
        tools=(ToolRule(tool="*"), ToolRule(tool="grep", permission="always_ask")),
        roles={"subagent": RoleOverride(model="small")},
    )
    changes = {change.field: change for change in changes_between(CONFIG, new)}

    assert set(changes) == {"instructions", "thinking", "limits_steps", "tools", "subagent_model"}
    assert [(line.kind, line.text) for line in changes["instructions"].lines] == [
        ("same", "Help."),
        ("added", "Be brief."),
        ("same", ""),
    ]
    assert ("added", "grep: asks first") in [
        (line.kind, line.text) for line in changes["tools"].lines
    ]
    assert (changes["limits_steps"].before, changes["limits_steps"].after) == ("50", "9")
    assert (changes["thinking"].before, changes["thinking"].after) == ("off", "on")
    assert (changes["subagent_model"].before, changes["subagent_model"].after) == (
        "as the agent",
        "small",
    )


def test_equal_configurations_do_not_differ():
    assert changes_between(CONFIG, CONFIG.model_copy()) == []


def test_every_limit_has_a_label_of_its_own():
    for name in Limits.model_fields:
        assert f"limits_{name}" in LABELS


def test_a_description_leaves_out_what_a_role_inherits():
    config = AgentConfig(roles={"teammate": RoleOverride(effort="low")})
    described = dict(description_of(config))

    assert described[label_of("teammate_effort")] == "low"
    assert label_of("subagent_effort") not in described


def test_whoever_left_the_organisation_finds_its_agent_no_more(bob, acme, own_agent):
    Membership.objects.filter(user=bob).delete()
    with pytest.raises(NotFound):
        change(bob, own_agent)
    join(bob, acme, Role.OWNER)
    assert change(bob, own_agent).current.config == OTHER


def test_an_organisation_with_agents_and_conversations_can_be_deleted(alice, acme, converse):
    """A tenant can leave: what hangs together is deleted together."""
    conversation, _ = converse()
    agent = conversation.agent_version.agent
    agent.organisation = acme
    agent.save(update_fields=["organisation"])
    acme.delete()
    assert not type(conversation).objects.filter(pk=conversation.pk).exists()
    assert not type(agent).objects.filter(pk=agent.pk).exists()

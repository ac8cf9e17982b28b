"""Agents that members make for themselves: whose they are, what bounds them, and what a copy is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from accounts.models import Membership, ProviderKey, Role
from agents.actions.agents import (
    archive_agent,
    change_agent,
    create_agent,
    delete_agent,
    restore_version,
)
from agents.actions.metadata import note_agent
from agents.actions.own import (
    change_own_agent,
    duplicate_agent,
    make_own_agent,
    restore_own_version,
    wishes_of,
)
from agents.models import Agent, AgentVersion
from agents.narrowing import Wishes
from audit.models import AuditEntry
from conversations.actions.conversations import create_conversation, find_agent
from conversations.actions.preferences import set_shared_defaults
from harness.agentconfig import AgentConfig, Features, Limits, RoleOverride, ToolRule
from harness.errors import Conflict, Forbidden, Invalid, NotFound

BASE = AgentConfig(
    provider="demo",
    instructions="Help.",
    tools=(ToolRule(tool="*"), ToolRule(tool="bash", permission="always_ask")),
    limits=Limits(steps=7, context_window=500_000),
    roles={"compaction": RoleOverride(model="small", thinking=False)},
    sandbox="version: 1",
)
WISHES = Wishes(
    instructions="Review.",
    provider="demo",
    tools=(ToolRule(tool="write_file", permission="always_deny"),),
)


@pytest.fixture
def preset(staff):
    return create_agent(actor=staff, organisation=None, name="Work", description="", config=BASE)


@pytest.fixture
def own(bob, acme, preset):
    return make_own_agent(
        actor=bob, organisation=acme, base=preset, name="Reviewer", description="", wishes=WISHES
    )


def change(actor, agent, wishes, **values):
    given = {"name": agent.name, "description": agent.description, **values}
    return change_own_agent(actor=actor, agent=agent, wishes=wishes, **given)


def numbers(agent):
    return list(agent.versions.order_by("number").values_list("number", flat=True))


# --- making one -----------------------------------------------------------------------------------


def test_a_member_makes_an_agent_that_does_no_more_than_its_base(bob, acme, own, preset):
    config = own.current.config

    assert (own.owner, own.private, own.organisation) == (bob, True, acme)
    assert (own.current.base, own.current.draft) == (preset.current, True)
    assert config.tools == (*BASE.tools, *WISHES.tools)
    assert (config.instructions, config.limits, config.sandbox) == (
        "Review.",
        BASE.limits,
        BASE.sandbox,
    )
    assert AuditEntry.objects.filter(
        action="agent_made", actor=bob, details__agent=own.uid
    ).exists()


def test_nobody_but_its_owner_and_staff_see_it(alice, mallory, staff, bob, acme, own, environment):
    assert Agent.objects.visible_to(bob).contains(own)
    for other in (alice, mallory):
        assert not Agent.objects.visible_to(other).contains(own)
        assert not AgentVersion.objects.visible_to(other).filter(agent=own).exists()
    with pytest.raises(Invalid, match="not on offer"):
        create_conversation(actor=alice, organisation=acme, agent=own, environment=environment)
    with pytest.raises(Invalid, match="not on offer"):
        find_agent(actor=alice, organisation=acme, wanted="Reviewer")
    with pytest.raises(Invalid, match="not on offer"):
        set_shared_defaults(actor=alice, organisation=acme, agent=own, environment=None)
    begun = create_conversation(actor=bob, organisation=acme, agent=own, environment=environment)
    assert begun.agent_version == own.current


@pytest.mark.parametrize("who", ["alice", "mallory"])
def test_to_others_a_private_agent_does_not_exist(who, request, acme, own):
    other = request.getfixturevalue(who)
    for attempt in (
        lambda: change(other, own, WISHES),
        lambda: change_agent(actor=other, agent=own, name="X", description="", config=BASE),
        lambda: restore_version(actor=other, agent=own, number=1),
        lambda: restore_own_version(actor=other, agent=own, number=1),
        lambda: archive_agent(actor=other, agent=own),
        lambda: delete_agent(actor=other, agent=own),
        lambda: duplicate_agent(actor=other, organisation=acme, agent=own),
        lambda: note_agent(actor=other, agent=own, metadata={"a": "b"}),
    ):
        with pytest.raises(NotFound):
            attempt()
    assert numbers(own) == [1]


def test_mallory_makes_nothing_in_an_organisation_that_is_not_hers(mallory, acme, preset):
    with pytest.raises(NotFound):
        make_own_agent(
            actor=mallory, organisation=acme, base=preset, name="X", description="", wishes=WISHES
        )
    with pytest.raises(NotFound):
        duplicate_agent(actor=mallory, organisation=acme, agent=preset)
    assert not Agent.objects.filter(owner=mallory).exists()


def test_a_base_is_an_agent_that_is_on_offer_to_the_person(
    alice, bob, acme, elsewhere, mallory, own, preset
):
    theirs = create_agent(
        actor=mallory, organisation=elsewhere, name="T", description="", config=BASE
    )
    archived = archive_agent(
        actor=alice,
        agent=create_agent(actor=alice, organisation=acme, name="Old", description="", config=BASE),
    )
    for base in (theirs, archived):
        with pytest.raises(Invalid) as refusal:
            make_own_agent(
                actor=bob, organisation=acme, base=base, name="X", description="", wishes=WISHES
            )
        assert refusal.value.field == "base"


def test_without_a_key_a_provider_is_refused_beside_its_field(
    bob, acme, own, monkeypatch, settings
):
    settings.AGENTSITE_PROVIDER_KEYS = {}
    wishes = replace(WISHES, provider="anthropic", model="claude-sonnet-5-5")

    with pytest.raises(Invalid) as refusal:
        change(bob, own, wishes)
    assert refusal.value.field == "provider"

    ProviderKey.objects.create(
        provider="anthropic", user=bob, base_url="https://models.example.org"
    )
    config = change(bob, own, wishes).current.config
    assert config.roles["compaction"].model is None, "another provider has other models"


def test_a_window_is_no_larger_than_the_models(bob, own, settings):
    settings.AGENTSITE_PROVIDER_KEYS = {"anthropic": {"key": "k" * 20}}
    changed = change(bob, own, replace(WISHES, provider="anthropic", model="claude-haiku-4-5"))

    assert changed.current.config.limits.context_window == 200_000
    assert BASE.limits.context_window > 200_000


# --- changing it ----------------------------------------------------------------------------------


def test_a_change_is_a_new_version_and_the_same_again_is_none(bob, own):
    wishes = replace(WISHES, instructions="Review well.")
    change(bob, own, wishes)
    change(bob, own, wishes)

    own.refresh_from_db()
    assert numbers(own) == [1, 2]
    assert (own.current.number, own.current.draft) == (2, True)


def test_what_is_only_tried_begins_no_conversation_by_itself(bob, acme, own, environment):
    change(bob, own, replace(WISHES, instructions="Try."), released=False)
    own.refresh_from_db()
    assert (own.current.number, own.newest.number) == (1, 2)

    tried = create_conversation(
        actor=bob, organisation=acme, agent=own, environment=environment, version=2
    )
    usual = create_conversation(actor=bob, organisation=acme, agent=own, environment=environment)

    assert (tried.agent_version.number, usual.agent_version.number) == (2, 1)
    change(bob, own, replace(WISHES, instructions="Try."))
    own.refresh_from_db()
    assert (own.current.number, numbers(own)) == (2, [1, 2])


def test_who_began_with_an_older_version_is_told(bob, own):
    change(bob, own, replace(WISHES, instructions="One."))

    with pytest.raises(Conflict):
        change(bob, own, replace(WISHES, instructions="Two."), expected_version=1)
    assert numbers(own) == [1, 2]


def test_an_earlier_version_comes_back_as_the_newest(bob, own):
    change(bob, own, replace(WISHES, instructions="Worse."))
    restore_own_version(actor=bob, agent=own, number=1)

    own.refresh_from_db()
    assert (own.current.number, own.current.config.instructions) == (3, "Review.")
    with pytest.raises(NotFound):
        restore_own_version(actor=bob, agent=own, number=9)


def test_at_the_next_change_it_is_bounded_by_what_its_base_is_then(bob, own, preset, staff):
    stricter = BASE.model_copy(
        update={"tools": (*BASE.tools, ToolRule(tool="web_fetch", permission="always_deny"))}
    )
    change_agent(actor=staff, agent=preset, name="Work", description="", config=stricter)

    changed = change(bob, own, replace(wishes_of(own.current), instructions="Anew."))

    assert changed.current.config.tools == (*stricter.tools, *WISHES.tools)
    assert changed.current.base.number == 2


def test_the_owner_goes_round_no_bound_by_the_actions_for_managers(bob, own):
    for attempt in (
        lambda: change_agent(actor=bob, agent=own, name="X", description="", config=AgentConfig()),
        lambda: restore_version(actor=bob, agent=own, number=1),
    ):
        with pytest.raises(Forbidden):
            attempt()
    assert numbers(own) == [1]


def test_staff_may_change_it_and_what_they_made_bounds_the_owner(bob, staff, own):
    wider = AgentConfig(provider="demo")
    change_agent(actor=staff, agent=own, name="Reviewer", description="", config=wider)

    changed = change(bob, own, replace(WISHES, instructions="Go on."))

    assert changed.current.config.tools == (*wider.tools, *WISHES.tools)


def test_its_owner_archives_offers_again_and_deletes_it(bob, own):
    assert archive_agent(actor=bob, agent=own).archived_at is not None
    assert archive_agent(actor=bob, agent=own, archived=False).archived_at is None
    note_agent(actor=bob, agent=own, metadata={"team": "docs"})
    assert Agent.objects.get(pk=own.pk).metadata == {"team": "docs"}

    delete_agent(actor=bob, agent=own)

    assert not Agent.objects.filter(pk=own.pk).exists()


def test_an_agent_that_bounds_another_stays(staff, own, preset):
    with pytest.raises(Conflict):
        delete_agent(actor=staff, agent=preset)


def test_who_left_has_no_agent_there_any_more(bob, acme, own):
    Membership.objects.filter(user=bob, organisation=acme).delete()

    with pytest.raises(NotFound):
        change(bob, own, WISHES)
    assert not Agent.objects.visible_to(bob).contains(own)


def test_the_agents_of_a_deleted_account_stay_nobodys(bob, alice, acme, own):
    Membership.objects.filter(user=bob).delete()
    bob.delete()

    own.refresh_from_db()
    assert (own.owner, own.private) == (None, True)
    assert not Agent.objects.visible_to(alice).contains(own)


# --- duplicating ----------------------------------------------------------------------------------


def test_a_copy_is_the_persons_own_and_bounded_like_what_was_copied(bob, acme, own, preset):
    copied = duplicate_agent(actor=bob, organisation=acme, agent=own)
    assert (copied.owner, copied.private, copied.name) == (bob, True, "Reviewer (copy)")
    assert copied.current.config == own.current.config
    assert copied.current.base == preset.current

    with pytest.raises(Invalid) as refusal:
        change(
            bob, copied, replace(WISHES, tools=(ToolRule(tool="x__*", permission="always_allow"),))
        )
    assert refusal.value.field == "tools"


def test_a_preset_is_copied_and_bounds_its_copy(bob, acme, preset):
    copied = duplicate_agent(actor=bob, organisation=acme, agent=preset, name="Mine")

    assert copied.current.config == BASE
    assert copied.current.base == preset.current


def test_switches_that_hold_back_stay_on(bob, acme, staff):
    careful = create_agent(
        actor=staff,
        organisation=None,
        name="Careful",
        description="",
        config=AgentConfig(provider="demo", features=Features(approval=True)),
    )
    with pytest.raises(Invalid) as refusal:
        make_own_agent(
            actor=bob, organisation=acme, base=careful, name="X", description="", wishes=WISHES
        )
    assert refusal.value.field == "features.approval"


def test_an_administrator_has_no_more_rights_on_anothers_private_agent(bob, acme, own, alice):
    assert Membership.objects.role_in(acme, alice) is Role.OWNER
    with pytest.raises(NotFound):
        archive_agent(actor=alice, agent=own)


def test_a_base_that_is_offered_no_more_widens_nothing(alice, bob, staff, acme, preset, own):
    Agent.objects.filter(pk=own.pk).update(private=False)
    own.versions.update(draft=False)
    archive_agent(actor=staff, agent=preset)
    copy = duplicate_agent(actor=alice, organisation=acme, agent=own)
    made = make_own_agent(
        actor=alice,
        organisation=acme,
        base=own,
        name="Wide",
        description="",
        wishes=replace(WISHES, tools=()),
    )
    for actor, agent in ((alice, copy), (alice, made), (bob, own)):
        wide = change(actor, agent, replace(WISHES, instructions="Anew.", tools=()))
        assert wide.newest.config.tools == own.current.config.tools
        again = change(actor, agent, replace(WISHES, instructions="Again.", tools=()))
        assert again.newest.config.tools == own.current.config.tools

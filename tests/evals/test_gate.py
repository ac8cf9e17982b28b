"""A version comes into use by green suites or by a person with a reason; what does worse is named."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.db import transaction

from accounts.actions.service_accounts import create_service_account
from accounts.models import Membership, Role
from agents.actions.agents import change_agent, create_agent
from agents.models import Agent, AgentVersion
from audit.models import AuditEntry
from evals.actions.releases import need_no_more, release_version, require_suite, roll_back
from evals.gate import words_on
from evals.models import Release
from harness.agentconfig import AgentConfig, PromptUse
from harness.errors import Conflict, Forbidden, Invalid, NotFound
from prompts.actions.prompts import (
    add_fetched,
    add_version,
    create_prompt,
    drop_overtaken,
    import_prompt,
    move_label,
    spec_of,
)
from prompts.actions.sources import add_source, allow_pulled
from prompts.models import Prompt, PulledLabel
from prompts.using import told as told_texts

from .conftest import spec, states

pytestmark = pytest.mark.django_db(transaction=True)

RULE = "Never promise a refund."
REPLIES = [
    {"say": "I pass this on.", "if_told": RULE},
    {"say": "You will get a refund.", "unless_told": RULE},
]
CHECKS = [{"type": "text", "none": ["will get a refund"], "name": "promises no refund"}]


@pytest.fixture
def agent(alice, acme) -> Agent:
    made: Agent = create_agent(
        actor=alice, organisation=acme, name="Clerk", description="", config=config(f"Help. {RULE}")
    )
    return made


def config(instructions: str) -> AgentConfig:
    return AgentConfig(provider="demo", instructions=instructions)


def changed(alice: Any, agent: Agent, instructions: str) -> AgentVersion:
    change_agent(
        actor=alice, agent=agent, name="Clerk", description="", config=config(instructions)
    )
    newest = agent.newest
    assert newest is not None
    return newest


@pytest.fixture
def gated(alice, agent, suite, add_cases, try_it):
    add_cases(spec("house-rule", script={"replies": REPLIES}, checks=CHECKS), spec("greets"))
    require_suite(actor=alice, agent=agent, suite=suite, by_script=True)
    try_it(version=agent.current)
    return agent


def in_use(agent: Agent) -> int:
    return Agent.objects.select_related("current").get(pk=agent.pk).current.number


def test_a_prompt_that_forgets_a_rule_is_caught_and_named(gated, alice, try_it):
    worse = changed(alice, gated, "Help.")
    assert (worse.draft, in_use(gated)) == (True, 1)
    with pytest.raises(Conflict, match="was not tried"):
        release_version(actor=alice, agent=gated, version=worse)

    try_it(version=worse)
    with pytest.raises(Conflict) as refused:
        release_version(actor=alice, agent=gated, version=worse)

    assert "house-rule: promises no refund: it says “will get a refund”" in refused.value.message
    assert "greets" not in refused.value.message
    assert in_use(gated) == 1
    assert not Release.objects.exists()


def test_a_green_version_is_released_and_rolled_back(gated, alice, try_it):
    better = changed(alice, gated, f"Help kindly. {RULE}")
    try_it(version=better)

    release_version(actor=alice, agent=gated, version=better)
    assert in_use(gated) == 2
    assert not AgentVersion.objects.get(pk=better.pk).draft

    roll_back(actor=alice, agent=gated)
    assert in_use(gated) == 1
    with pytest.raises(Conflict):
        roll_back(actor=alice, agent=gated)
    told = AuditEntry.objects.filter(action__startswith="version_").order_by("id")
    assert [entry.action for entry in told] == ["version_released", "version_rolled_back"]


def test_a_person_lets_one_pass_with_a_reason_that_stays(gated, alice):
    worse = changed(alice, gated, "Help.")

    release_version(actor=alice, agent=gated, version=worse, reason="The rule is gone.")

    release = Release.objects.get()
    assert (release.reason, release.released_by) == ("The rule is gone.", alice)
    assert release.report[0]["green"] is False
    entry = AuditEntry.objects.get(action="version_released")
    assert entry.details["not_green"] == ["Manners"]
    assert in_use(gated) == 2


def test_a_program_lets_none_pass(gated, alice, acme):
    worse = changed(alice, gated, "Help.")
    service = create_service_account(actor=alice, organisation=acme, name="CI")
    Membership.objects.filter(user=service).update(role=Role.ADMIN)

    with pytest.raises(Forbidden):
        release_version(actor=service, agent=gated, version=worse, reason="Because.")


def test_a_case_that_changed_since_is_to_be_tried_again(gated, alice, add_cases, try_it):
    better = changed(alice, gated, f"Help kindly. {RULE}")
    try_it(version=better)
    assert [word.green for word in words_on(better)] == [True]

    add_cases(spec("another"))

    assert [word.green for word in words_on(better)] == [False]


def test_scripts_count_only_where_that_is_said(gated, alice, suite, try_it):
    require_suite(actor=alice, agent=gated, suite=suite, by_script=False)
    better = changed(alice, gated, f"Help kindly. {RULE}")
    try_it(version=better)

    assert [word.green for word in words_on(better)] == [False]


def test_other_versions_of_prompts_are_tried_and_say_nothing_of_the_agents_version(
    alice, mallory, acme, agent, suite, add_cases, try_it
):
    tone = create_prompt(
        actor=alice, organisation=acme, name="tone", text="Greet warmly.", label="production"
    )
    add_version(actor=alice, prompt=tone, text="Be curt.")
    replies = [
        {"say": "Good morning", "if_told": "Greet warmly."},
        {"say": "What?", "if_told": "Be curt."},
    ]
    add_cases(spec(script={"replies": replies}))
    require_suite(actor=alice, agent=agent, suite=suite, by_script=True)
    told = AgentConfig(provider="demo", prompts=(PromptUse(name="tone"),))
    change_agent(actor=alice, agent=agent, name="Clerk", description="", config=told)
    version = agent.newest

    assert states(try_it(version=version, prompts={"tone": "2"})) == ["failed"]
    assert "It was not tried" in words_on(version)[0].why
    assert states(try_it(version=version)) == ["passed"]
    assert words_on(version)[0].green
    for wrong, error in (
        ({"tune": "1"}, Invalid),
        ({"tone": "9"}, NotFound),
        ({"tone": ""}, NotFound),
        ({"tone": "x" * 51}, NotFound),
    ):
        with pytest.raises(error, match=next(iter(wrong))):
            try_it(version=version, prompts=wrong)
    labelled = try_it(version=version, prompts={"tone": "production"})
    assert labelled.overrides["prompts"][0]["version"] == "1", "it may move meanwhile"
    with pytest.raises(NotFound, match="suite"):
        try_it(actor=mallory, version=version, prompts={"tune": "1"})


def test_a_fetched_text_is_tried_while_it_waits_and_then_allowed_without_a_reason(
    alice, bob, acme, agent, suite, add_cases, try_it
):
    tone = create_prompt(
        actor=alice, organisation=acme, name="tone", text="Greet warmly.", label="production"
    )
    source = add_source(
        actor=alice,
        organisation=acme,
        kind="langfuse",
        address="https://prompts.example.org",
        secret="public:secret",
        labels={"production": "production"},
    )
    fetched = {"actor": alice, "organisation": acme, "name": "tone", "variables": ()}
    with transaction.atomic():
        waiting = add_fetched(text="Greet warmly, always.", source=source, origin="x", **fetched)
        pulled = PulledLabel.objects.create(
            source=source,
            prompt=tone,
            label="production",
            version=waiting,
            remote_name="tone",
            remote_version="7",
        )
    told = AgentConfig(provider="demo", prompts=(PromptUse(name="tone"),))
    change_agent(actor=alice, agent=agent, name="Clerk", description="", config=told)
    replies = [
        {"say": "Good morning, always", "if_told": "warmly, always"},
        {"say": "Good morning", "unless_told": "warmly, always"},
    ]
    add_cases(spec(script={"replies": replies}))
    require_suite(actor=alice, agent=agent, suite=suite, by_script=True)
    version = agent.newest
    try_it(version=version)
    with pytest.raises(Conflict, match="not tried with version 2"):
        allow_pulled(actor=alice, pulled=pulled, number=2)
    # Who may have suites tried, and not allow texts, may not have an agent told it either.
    bob.is_staff = True
    bob.save()
    bob.user_permissions.set(Permission.objects.filter(codename__in=("view_suite", "change_suite")))
    with pytest.raises(NotFound, match="not allowed yet"):
        try_it(actor=bob, version=version, prompts={"tone": "2"})

    tried = try_it(version=version, prompts={"tone": "2"})
    assert states(tried) == ["passed"]
    trial = tried.trials.get().conversation
    assert [each.text for each in told_texts(trial)] == ["Greet warmly, always."]
    waiting.refresh_from_db()
    assert waiting.waits
    with transaction.atomic():
        add_fetched(text="Greet.", source=source, origin="y", **fetched)
        PulledLabel.objects.filter(pk=pulled.pk).delete()
        assert drop_overtaken(tone) == 0, "a log is explained by it"
        transaction.set_rollback(True)
    plain = try_it(version=version).trials.get().conversation
    assert [each.text for each in told_texts(plain)] == ["Greet warmly."]

    allow_pulled(actor=alice, pulled=pulled, number=2)
    assert spec_of(tone).labels == {"production": 2}


def test_an_agent_is_given_another_text_only_when_its_suites_are_green_or_with_a_reason(
    alice, staff, acme, agent, suite, add_cases, try_it
):
    tone = create_prompt(
        actor=alice, organisation=acme, name="tone", text="Greet warmly.", label="production"
    )
    for text in ("Be curt.", "Greet warmly, always."):
        add_version(actor=alice, prompt=tone, text=text)
    mood = create_prompt(actor=alice, organisation=acme, name="mood", text="Be calm.")
    create_prompt(actor=staff, organisation=None, name="all", text="Be.", label="production")
    prompts = (
        PromptUse(name="tone"),
        PromptUse(name="mood", version="latest"),
        PromptUse(name="all"),
    )
    told = AgentConfig(provider="demo", prompts=prompts)
    change_agent(actor=alice, agent=agent, name="Clerk", description="", config=told)
    replies = [
        {"say": "Good morning", "if_told": "Greet warmly"},
        {"say": "What?", "unless_told": "Greet warmly"},
    ]
    add_cases(spec(script={"replies": replies}))
    require_suite(actor=alice, agent=agent, suite=suite, by_script=True)
    version = agent.newest

    def move(number: str, **given: Any) -> None:
        given = {"actor": alice, **given}
        move_label(prompt=tone, label="production", version=number, **given)

    spec_before = spec_of(tone)
    file = spec_before.model_copy(update={"labels": {"production": 2}})
    for way in (
        lambda: move("3"),
        lambda: add_version(actor=alice, prompt=tone, text="Be rude.", label="production"),
        lambda: add_version(actor=alice, prompt=mood, text="Be wild."),
        lambda: import_prompt(actor=alice, organisation=acme, spec=file),
        lambda: create_prompt(
            actor=alice, organisation=acme, name="all", text="Be ours.", label="production"
        ),
    ):
        with pytest.raises(Conflict, match=r"Clerk: .*It was not tried with version"):
            way()
    assert (spec_of(tone), mood.versions.count()) == (spec_before, 1)
    assert not Prompt.objects.filter(organisation=acme, name="all").exists()

    try_it(version=version)
    for number in ("2", "3"):
        try_it(version=version, prompts={"tone": number})
    move("3")
    with pytest.raises(Conflict, match="Cases do worse"):
        move("2")
    with pytest.raises(Invalid, match="longer"):
        move("2", reason="x" * 501)
    service = create_service_account(actor=alice, organisation=acme, name="CI")
    Membership.objects.filter(user=service).update(role=Role.ADMIN)
    with pytest.raises(Forbidden):
        move("2", actor=service, reason="Because.")
    assert spec_of(tone).labels == {"production": 3}

    move("2", reason="The house wants it so.")
    assert spec_of(tone).labels == {"production": 2}
    [entry] = AuditEntry.objects.filter(details__reason="The house wants it so.")
    said = {name: entry.details[name] for name in ("label", "before", "version", "agent")}
    assert said == {"label": "production", "before": 3, "version": 2, "agent": agent.uid}


def test_without_a_suite_each_change_comes_into_use_at_once(gated, alice):
    need_no_more(actor=alice, requirement=gated.requirements.get())

    changed(alice, gated, "Help.")

    assert in_use(gated) == 2


def test_only_who_makes_its_versions_has_a_say(gated, alice, bob, mallory, elsewhere, suite):
    worse = changed(alice, gated, "Help.")
    for person, refusal in ((bob, Forbidden), (mallory, NotFound)):
        with pytest.raises(refusal):
            release_version(actor=person, agent=gated, version=worse, reason="Mine.")
        with pytest.raises(refusal):
            roll_back(actor=person, agent=gated)
        with pytest.raises((Forbidden, NotFound)):
            require_suite(actor=person, agent=gated, suite=suite)
        assert worse not in AgentVersion.objects.visible_to(person)
    assert worse in AgentVersion.objects.visible_to(alice)


def test_an_owner_sees_what_is_blocked_and_lets_it_pass(gated, alice, try_it, client_of, mallory):
    worse = changed(alice, gated, "Help.")
    try_it(version=worse)
    client = client_of(alice)

    page = client.get(f"/evals/agents/{gated.uid}/").content.decode()
    assert "blocked" in page
    assert "house-rule: promises no refund" in page
    refused = client.post(f"/evals/agents/{gated.uid}/release/", {"version": worse.number})
    assert refused.status_code == 409
    assert "house-rule" in refused.content.decode()
    client.post(
        f"/evals/agents/{gated.uid}/release/", {"version": worse.number, "reason": "Wanted."}
    )
    assert in_use(gated) == 2
    client.post(f"/evals/agents/{gated.uid}/roll-back/")
    assert in_use(gated) == 1
    assert client_of(mallory).get(f"/evals/agents/{gated.uid}/").status_code == 404

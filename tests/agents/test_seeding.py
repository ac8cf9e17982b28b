"""Seeding at start-up: ours is brought up to date, what staff changed stays as it is."""

from __future__ import annotations

import dataclasses
from decimal import Decimal

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents import seeding
from agents.actions.agents import change_agent
from agents.actions.environments import change_environment
from agents.actions.prompts import change_prompt, reset_prompt
from agents.models import Agent, AgentVersion, Environment, Prompt
from agents.seeds import AGENTS
from agentsite.seeding import seed
from harness.policy import Policy
from harness.texts import Texts
from providers.table import KINDS
from spending import seeding as price_seeding
from spending.actions.prices import change_price
from spending.models import ModelPrice
from spending.seeds import PRICES
from tools_app.catalogue import all_tools

MODEL = ("anthropic", "claude-opus-5", 0)


@pytest.fixture
def seeded(db):
    seed()


@pytest.fixture
def newer(monkeypatch):
    """The next version of this software: it brings other agents, texts, prices, a description."""

    @dataclasses.dataclass(frozen=True)
    class NewTexts(Texts):
        stopped_note: str = "(Stopped.)"

    newer_agents = {
        name: dataclasses.replace(
            seed, config=seed.config.model_copy(update={"instructions": "Newer words."})
        )
        for name, seed in AGENTS.items()
    }
    monkeypatch.setattr(seeding, "AGENTS", newer_agents)
    monkeypatch.setattr(seeding, "Texts", NewTexts)
    monkeypatch.setattr(price_seeding, "PRICES", {**PRICES, MODEL: ("7", "8", "9", "1")})
    monkeypatch.setattr(seeding, "DEFAULT_ENVIRONMENT", ("Own workspace", "Newer words."))


def opus() -> ModelPrice:
    provider, model, size = MODEL
    return ModelPrice.objects.get(provider=provider, model=model, from_prompt_tokens=size)


def test_a_new_installation_has_a_coding_and_a_general_agent(seeded):
    agents = Agent.objects.on_offer().select_related("current")

    assert {agent.seed_name for agent in agents} == {"coding", "work"}
    for agent in agents:
        assert agent.description
        assert agent.current.config.instructions
    assert Environment.objects.on_offer().count() == 1


def test_every_sentence_of_the_harness_is_there_to_be_edited(seeded):
    texts = dataclasses.asdict(Texts())
    stored = {row.name.replace("-", "_"): row for row in Prompt.objects.all()}

    assert {name: row.text for name, row in stored.items()} == texts
    assert all(row.description for row in stored.values())


def test_every_provider_with_a_default_model_knows_its_price(seeded):
    for kind in KINDS.values():
        if kind.offered and kind.default_model:
            prices = ModelPrice.objects.filter(provider=kind.name).values_list("model", flat=True)
            assert any(kind.default_model.startswith(name) for name in prices), kind.name


def test_a_second_start_writes_nothing(seeded):
    with CaptureQueriesContext(connection) as queries:
        seed()

    writes = [
        query["sql"]
        for query in queries
        if query["sql"].lstrip().upper().startswith(("INSERT", "UPDATE", "DELETE"))
    ]
    assert not writes
    assert AgentVersion.objects.count() == len(AGENTS)


def test_what_nobody_touched_is_brought_up_to_date(seeded, newer):
    seed()

    agent = Agent.objects.select_related("current").get(seed_name="coding")
    assert (agent.current.number, agent.current.config.instructions) == (2, "Newer words.")
    assert Prompt.objects.get(name="stopped-note").text == "(Stopped.)"
    assert opus().input == Decimal(7)
    assert Environment.objects.get(seed_name="default").description == "Newer words."


def test_what_staff_changed_is_never_overwritten(seeded, staff, newer):
    agent = Agent.objects.select_related("current").get(seed_name="coding")
    config = agent.current.config.model_copy(update={"instructions": "Ours."})
    change_agent(
        actor=staff, agent=agent, name=agent.name, description=agent.description, config=config
    )
    change_prompt(actor=staff, prompt=Prompt.objects.get(name="stopped-note"), text="Ours.")
    row = opus()
    change_price(
        actor=staff,
        price=row,
        rates={
            "input": Decimal(3),
            "output": row.output,
            "cache_write": row.cache_write,
            "cache_read": row.cache_read,
        },
    )
    environment = Environment.objects.get(seed_name="default")
    change_environment(
        actor=staff,
        environment=environment,
        name="Ours",
        description=environment.description,
        upload_limit=environment.upload_limit,
    )
    seed()

    agent.refresh_from_db()
    assert (agent.current.number, agent.current.config.instructions) == (2, "Ours.")
    assert Prompt.objects.get(name="stopped-note").text == "Ours."
    assert opus().input == Decimal(3)
    environment.refresh_from_db()
    assert (environment.name, environment.description) == ("Ours", environment.description)
    assert environment.description != "Newer words."
    # The rest of the same tables went on.
    other = Agent.objects.select_related("current").get(seed_name="work")
    assert other.current.config.instructions == "Newer words."


def test_an_agent_that_staff_only_renamed_is_theirs(seeded, staff, newer):
    agent = Agent.objects.select_related("current").get(seed_name="coding")
    change_agent(
        actor=staff,
        agent=agent,
        name="Engineer",
        description=agent.description,
        config=agent.current.config,
    )
    seed()

    agent.refresh_from_db()
    assert (agent.name, agent.current.number) == ("Engineer", 1)


def test_a_prompt_that_was_reset_is_brought_up_to_date_again(seeded, staff, newer):
    prompt = Prompt.objects.get(name="stopped-note")
    change_prompt(actor=staff, prompt=prompt, text="Ours.")
    reset_prompt(actor=staff, prompt=prompt)
    seed()

    prompt.refresh_from_db()
    assert prompt.text == "(Stopped.)"


def test_the_seeded_agents_offer_every_tool_of_the_catalogue(seeded):
    for agent in Agent.objects.select_related("current"):
        config = agent.current.config
        policy = Policy(config.tools)
        plain = [tool for tool in all_tools().values() if not tool.feature]
        assert plain
        assert all(policy.offers(tool, config.features) for tool in plain)

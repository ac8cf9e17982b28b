"""Picking a model: what is offered with price and window, what is sent, and what comes back refused."""

from __future__ import annotations

import pytest

from accounts.models import Organisation, User
from agents.models import Agent, Environment
from conversations.models import Conversation
from spending.seeding import seed_prices
from tests.cast import ClientOf, shown
from tests.conversations.conftest import MakeAgent
from tests.conversations.scenes import begin

OPUS = {"provider": "anthropic", "model": "claude-opus-4-5", "effort": "low"}


@pytest.fixture
def agent(make_agent: MakeAgent, settings) -> Agent:
    settings.AGENTSITE_PROVIDER_KEYS = {"anthropic": {"key": "k"}}
    seed_prices()
    return make_agent(provider="demo")


def test_a_conversation_begins_with_the_picked_model_and_without_one_with_the_agents_own(
    alice: User, acme: Organisation, agent: Agent, environment: Environment, client_of: ClientOf
):
    client = client_of(alice)
    html = client.get("/models/", {"agent": agent.uid}).content.decode()
    assert "$5 in, $25 out per million" in html
    assert "200 K tokens" in html
    assert "gpt-5" not in html, "there is no key for it"
    given = shown(acme, agent=agent.uid, environment=environment.uid)
    for picked, kept in (
        ({}, {}),
        ({"model": "", "effort": ""}, {}),
        ({"model": "anthropic:claude-opus-4-5", "effort": "low"}, OPUS),
        (
            {"model": "other", "other_provider": "anthropic", "other_model": "claude-opus-4-5"},
            {**OPUS, "effort": ""},
        ),
    ):
        client.post("/new/", {**given, **picked})
        assert Conversation.objects.latest("pk").overrides == kept
    refused = client.post("/new/", {**given, "model": "demo:demo", "effort": "low"})
    assert refused.status_code == 422
    assert "knows no effort" in refused.content.decode()
    assert Conversation.objects.count() == 4


def test_the_fold_of_a_conversation_chooses_says_so_and_keeps_what_it_refuses_open(
    alice: User,
    mallory: User,
    acme: Organisation,
    agent: Agent,
    environment: Environment,
    client_of: ClientOf,
):
    conversation = begin(alice, acme, agent, environment)
    address = f"{conversation.get_absolute_url()}model/"
    picked = {"model": "anthropic:claude-opus-4-5", "effort": "low"}
    assert client_of(mallory).post(address, picked).status_code == 404

    client = client_of(alice)
    answer = client.post(address, picked, headers={"HX-Request": "true"})
    assert answer.status_code == 204
    assert "on: claude-opus-4-5" in answer["HX-Trigger"]
    page = client.get(conversation.get_absolute_url()).content.decode()
    assert "From the next message on: claude-opus-4-5. Effort: low." in page
    assert 'value="anthropic:claude-opus-4-5" data-efforts="low medium high" checked' in (
        client.get(address).content.decode()
    )

    for given in ({"model": "openai_compatible:gpt-5"}, {"model": "demo:demo", "effort": "max"}):
        refused = client.post(address, given, headers={"HX-Request": "true"})
        assert refused.status_code == 422
        assert 'role="alert"' in refused.content.decode()
    conversation.refresh_from_db()
    assert conversation.overrides == OPUS

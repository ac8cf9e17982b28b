"""Clients of model services: shared by runs, bounded in number, closed when nobody needs them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from accounts.actions.provider_keys import store_provider_key
from accounts.models import Scope
from accounts.provider_connections import JudgedConnections
from conversations.kits import (
    Choice,
    Providers,
    Unavailable,
    choose_provider,
    preload_services,
)
from harness.agentconfig import AgentConfig
from harness.messages import ModelRequest, Piece
from providers.table import ProviderConfig


class Client:
    """A provider that nobody asks anything; it counts how often it was closed."""

    def __init__(self, config: ProviderConfig) -> None:
        self.name, self.config, self.closed = config.name, config, 0

    async def stream(self, request: ModelRequest) -> AsyncIterator[Piece]:
        nothing: tuple[Piece, ...] = ()
        for piece in nothing:
            yield piece

    async def aclose(self) -> None:
        self.closed += 1


def clients(**more: Any) -> Any:
    return Providers(make=Client, **more)


def choice(key: str, **more) -> Choice:
    return Choice("anthropic", "m", config=ProviderConfig("anthropic", key, **more))


async def test_runs_with_one_key_share_a_client():
    providers = clients()
    assert providers.get(choice("a")) is providers.get(choice("a"))
    assert providers.get(choice("b")) is not providers.get(choice("a"))


async def test_no_more_idle_clients_stay_open_than_are_kept_and_the_oldest_goes_first():
    providers = clients(kept=2)
    made = [providers.get(choice(key)) for key in "abcd"]
    assert [client.closed for client in made] == [0, 0, 0, 0], "all of them are in use"
    for client in made:
        await providers.let_go(client)
    assert [client.closed for client in made] == [1, 1, 0, 0]
    assert providers.get(choice("d")) is made[3]
    assert providers.get(choice("a")) is not made[0]


async def test_a_client_in_use_is_not_closed_for_another():
    providers = clients(kept=0)
    first, again = providers.get(choice("a")), providers.get(choice("a"))
    await providers.let_go(providers.get(choice("b")))
    await providers.let_go(again)
    assert first.closed == 0
    await providers.let_go(first)
    assert first.closed == 1


async def test_a_client_whose_configuration_changed_is_closed_when_its_last_run_ends():
    providers = clients()
    old = providers.get(choice("a", timeout=1.0))
    new = providers.get(choice("a", timeout=2.0))
    assert (old is new, old.closed) == (False, 0)
    await providers.let_go(old)
    assert (old.closed, new.closed) == (1, 0)
    await providers.let_go(new)
    newest = providers.get(choice("a", timeout=3.0))
    assert newest is not new
    await providers.let_go(newest)
    assert (new.closed, newest.closed) == (1, 0), "one that nobody used goes as well"


async def test_what_is_open_is_closed_with_its_loop():
    providers = clients()
    client = providers.get(choice("a"))
    await providers.close()
    assert client.closed == 1
    await providers.let_go(client)
    assert client.closed == 1


async def test_a_stand_in_needs_no_closing():
    providers = clients()
    missing = providers.get(replace(choice("a"), config=None))
    assert isinstance(missing, Unavailable)
    await providers.let_go(missing)


@pytest.mark.django_db
def test_where_a_key_may_lead_is_judged_for_people_and_not_for_the_operator(alice, acme, staff):
    config = AgentConfig(provider="anthropic", model="m")
    given: dict[str, Any] = {
        "provider": "anthropic",
        "key": "sk-test",
        "base_url": "http://localhost:11434",
    }
    store_provider_key(actor=staff, scope=Scope.DEPLOYMENT, **given)
    assert choose_provider(config, alice, acme).config.connect is None
    store_provider_key(actor=alice, scope=Scope.USER, **given)
    assert choose_provider(config, alice, acme).config.connect == JudgedConnections()


def test_libraries_are_loaded_ahead_for_services_whose_key_is_known_and_for_no_others(
    alice, settings, monkeypatch
):
    settings.AGENTSITE_PROVIDER_KEYS = {"anthropic": {"key": "", "base_url": ""}}
    loaded: list[str] = []
    monkeypatch.setattr("providers.table.importlib.import_module", loaded.append)
    preload_services()
    assert loaded == []
    settings.AGENTSITE_PROVIDER_KEYS = {"anthropic": {"key": "given", "base_url": ""}}
    preload_services()
    assert loaded == ["providers.anthropic", "anthropic"]
    store_provider_key(
        actor=alice, scope=Scope.USER, provider="openai_compatible", key="own", base_url=""
    )
    loaded.clear()
    preload_services()
    assert loaded[2:] == ["providers.openai_compatible", "openai"]

"""Every provider passes the same clauses."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from harness.errors import ProviderTimedOut
from harness.messages import ModelRequest
from harness.provider import Provider
from providers.demo import Demo
from providers.scripted import Script, Scripted
from providers.table import ProviderConfig, build
from tests.patience import PATIENCE
from tests.standins.messages_api import MessagesApi
from tests.standins.provider_contract import AnyProvider, Playing, ScriptableProvider, Traits

SILENCE = 4.0
"""Seconds after which a service that says nothing by its script is called silent."""


@dataclass
class OverAWire:
    provider: Provider
    api: MessagesApi

    @property
    def requests(self) -> list[ModelRequest]:
        return self.api.requests

    @property
    def closed_early(self) -> int:
        return self.api.closed_early


class WireStage:
    def __init__(self, traits: Traits, suffix: str = "") -> None:
        self.traits = traits
        self._suffix = suffix

    @asynccontextmanager
    async def playing(self, script: Script, *, fragment: int = 0) -> AsyncIterator[Playing]:
        async with MessagesApi(script, fragment=fragment) as api:
            url = api.base_url + self._suffix
            seconds = SILENCE if ProviderTimedOut.__name__ in repr(script) else PATIENCE
            provider = build(ProviderConfig(self.traits.name, "key-12345", url, timeout=seconds))
            try:
                yield OverAWire(provider, api)
                assert not api.refusals
            finally:
                await provider.aclose()


@dataclass
class InProcess:
    provider: Provider
    scripted: Scripted

    @property
    def requests(self) -> list[ModelRequest]:
        return self.scripted.requests

    @property
    def closed_early(self) -> int:
        return self.scripted.closed_early


class ScriptedStage:
    traits = Traits("scripted")

    @asynccontextmanager
    async def playing(self, script: Script, *, fragment: int = 0) -> AsyncIterator[Playing]:
        scripted = Scripted(script)
        yield InProcess(scripted, scripted)


class TestScripted(ScriptableProvider):
    @pytest.fixture
    def stage(self) -> ScriptedStage:
        return ScriptedStage()


class TestAnthropic(ScriptableProvider):
    @pytest.fixture
    def stage(self) -> WireStage:
        return WireStage(Traits("anthropic"))


class TestOpenAICompatible(ScriptableProvider):
    @pytest.fixture
    def stage(self) -> WireStage:
        traits = Traits(
            "openai_compatible",
            signatures=False,
            cache_writes=False,
            ends=frozenset({"end_turn", "tool_use", "max_tokens", "refusal"}),
        )
        return WireStage(traits, "/v1")


class TestDemo(AnyProvider):
    @pytest.fixture
    def provider(self) -> Demo:
        return Demo(pause=0)

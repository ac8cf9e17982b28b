"""A base URL is judged again by what it leads to, at each connection."""

from __future__ import annotations

import pytest

from harness.errors import BadRequest, ProviderUnreachable
from harness.providers.table import ProviderConfig, build
from harness.testing.messages_api import MessagesApi
from harness.testing.provider_contract import ask, pieces_of, pieces_until_error

KEY = "sk-test"


class Judge:
    """Answers what it is told to, and remembers what it was asked."""

    def __init__(self, *answers: str) -> None:
        self._answers = answers
        self.asked: list[tuple[str, str]] = []

    def __call__(self, host: str, address: str) -> str:
        self.asked.append((host, address))
        return self._answers[min(len(self.asked), len(self._answers)) - 1]


def address_of(api: MessagesApi, host: str) -> str:
    return api.base_url.replace("127.0.0.1", host)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
async def test_what_is_allowed_is_reached_under_its_own_name(host: str):
    judge = Judge("")
    async with MessagesApi(lambda _request: "Hello.") as api:
        config = ProviderConfig("anthropic", KEY, address_of(api, host), judge=judge)
        provider = build(config)
        assert await pieces_of(provider, ask("Hi."))
        await provider.aclose()
        sent = {name.lower(): value for name, value in api.headers[0].items()}
        assert sent["host"] == address_of(api, host).removeprefix("http://")
    assert (host, "127.0.0.1") in judge.asked


@pytest.mark.parametrize("name", ["anthropic", "openai_compatible"])
async def test_what_is_refused_hears_nothing_and_is_not_tried_again(name: str):
    judge = Judge("It leads inside.")
    async with MessagesApi(lambda _request: "Hello.") as api:
        config = ProviderConfig(name, KEY, address_of(api, "localhost"), judge=judge)
        provider = build(config)
        _pieces, error = await pieces_until_error(provider, ask("Hi."))
        await provider.aclose()
        assert isinstance(error, BadRequest)
        assert error.message == "It leads inside."
        assert not error.retryable
        assert api.headers == []


async def test_a_name_that_changes_its_mind_is_judged_again():
    async with MessagesApi(lambda _request: "Hello.") as api:
        judge = Judge("", "It leads inside by now.")
        config = ProviderConfig("anthropic", KEY, api.base_url, judge=judge)
        provider = build(config)
        assert await pieces_of(provider, ask("Hi."))
        _pieces, error = await pieces_until_error(provider, ask("Hi again."))
        await provider.aclose()
        assert isinstance(error, BadRequest)
        assert len(api.headers) == 1


async def test_a_name_that_leads_nowhere_may_lead_somewhere_later():
    config = ProviderConfig("anthropic", KEY, "http://nowhere.invalid", judge=Judge(""))
    provider = build(config)
    _pieces, error = await pieces_until_error(provider, ask("Hi."))
    await provider.aclose()
    assert isinstance(error, ProviderUnreachable)
    assert error.retryable

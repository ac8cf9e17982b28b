"""Choosing a provider is data."""

from __future__ import annotations

import subprocess
import sys

import pytest

from harness.errors import NotConfigured
from providers.scripted import ScriptExhausted, registered
from providers.table import KINDS, ProviderConfig, build
from tests.standins.provider_contract import ask, pieces_of


@pytest.mark.parametrize("name", KINDS)
def test_each_kind_can_be_built(name):
    assert build(ProviderConfig(name, "key-12345", "http://127.0.0.1:9/v1")).name == name


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (ProviderConfig("nobody"), "anthropic"),
        (ProviderConfig("anthropic"), "Provider keys"),
        (ProviderConfig("openai_compatible", "key"), "base URL"),
        (ProviderConfig("anthropic", "key with space"), "Enter it again"),
        (ProviderConfig("anthropic", "key\n"), "Enter it again"),
        (ProviderConfig("anthropic", "schlüssel"), "Enter it again"),
    ],
)
def test_what_is_missing_is_named_with_its_remedy(config, said):
    with pytest.raises(NotConfigured) as caught:
        build(config)
    assert said in f"{caught.value.message} {caught.value.hint}"
    assert not config.api_key or config.api_key not in str(caught.value)


async def test_a_registered_script_goes_on_where_it_was():
    with registered("greeting", ["One", "Two"]) as script:
        for _ in range(2):
            await pieces_of(build(ProviderConfig("scripted")), ask(model="greeting"))
        assert len(script.requests) == 2
        with pytest.raises(ScriptExhausted, match="2 replies and this is request 3"):
            await pieces_of(build(ProviderConfig("scripted")), ask(model="greeting"))
    with pytest.raises(NotConfigured, match="greeting"):
        await pieces_of(build(ProviderConfig("scripted")), ask(model="greeting"))


def test_building_a_provider_imports_no_sdk():
    """A second start has six seconds; the SDKs take two of them."""
    code = (
        "import sys\n"
        "from providers.table import KINDS, ProviderConfig, build\n"
        "for name in KINDS: build(ProviderConfig(name, 'key', 'http://127.0.0.1:9'))\n"
        "assert not {'anthropic', 'openai', 'httpx2'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)

"""Which providers there are, and how to get one from its configuration.

A provider's module is imported when one is first built, the SDK it needs on the first request. Which
key and address a conversation uses is decided by `accounts` (the vault) and the agent, not here.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from harness.errors import NotConfigured
from harness.provider import Provider

if TYPE_CHECKING:
    import httpx2


@dataclass(frozen=True, slots=True)
class ProviderConfig:
    """Everything needed to speak to one model service: nothing is taken from the process's environment.
    Its repr shows neither key nor headers."""

    name: str
    api_key: str = field(default="", repr=False)
    base_url: str = ""
    """Empty: the service's own address."""
    timeout: float = 300.0
    """Seconds of silence after which a request is given up, before its first piece or later."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Sent with each request, for gateways."""
    connect: Callable[[httpx2.Timeout], httpx2.AsyncClient] | None = None
    """Makes the client for an address that somebody typed who does not run this server. It decides
    where it connects, raising `AddressRefused`; and errors repeat no word of what answers there, which
    may be no model service at all. None: every address will do."""
    prompt_caching: bool = True
    """Mark the stable beginning of a prompt for the service's cache, where it has one."""


@dataclass(frozen=True, slots=True)
class ProviderKind:
    """What forms need to know of a provider. Its module has `build(config) -> Provider`."""

    name: str
    label: str
    module: str
    needs_key: bool = False
    takes_base_url: bool = False
    needs_base_url: bool = False
    default_model: str = ""
    """Asked for when an agent names none; empty: an agent must name one."""
    offered: bool = True
    """Shown where people choose a provider."""
    sdk: str = ""
    """The library its first request imports."""


KINDS: Mapping[str, ProviderKind] = {
    kind.name: kind
    for kind in (
        ProviderKind(
            "anthropic",
            "Anthropic (Messages API)",
            "providers.anthropic",
            needs_key=True,
            takes_base_url=True,
            sdk="anthropic",
            default_model="claude-sonnet-5-5",
        ),
        ProviderKind(
            "openai_compatible",
            "OpenAI-compatible (Ollama, vLLM and others)",
            "providers.openai_compatible",
            takes_base_url=True,
            needs_base_url=True,
            sdk="openai",
        ),
        ProviderKind(
            "demo",
            "Demo (offline, not a language model)",
            "providers.demo",
            default_model="demo",
        ),
        ProviderKind(
            "scripted",
            "Scripted (tests and evals)",
            "providers.scripted",
            default_model="scripted",
            offered=False,
        ),
    )
}


def kind_of(name: str) -> ProviderKind:
    """The kind called `name`; raises `NotConfigured` naming those there are."""
    try:
        return KINDS[name]
    except KeyError:
        raise NotConfigured(
            f"There is no provider {name!r}.", hint=f"Choose one of: {', '.join(KINDS)}."
        ) from None


def preload(config: ProviderConfig) -> None:
    """Import what the provider needs, if it can be built. That takes seconds: do it in a thread, or
    every run of the loop stands still meanwhile. Raises `NotConfigured` for an unknown name."""
    kind = kind_of(config.name)
    if kind.needs_key and not config.api_key:
        return
    importlib.import_module(kind.module)
    if kind.sdk:
        importlib.import_module(kind.sdk)


def build(config: ProviderConfig) -> Provider:
    """A provider for `config`; it retries nothing by itself.

    Build, use and close it on one event loop. Raises `NotConfigured` for an unknown name, or a key
    or address that is missing or cannot be one; nothing is sent.
    """
    kind = kind_of(config.name)
    if kind.needs_key and not config.api_key:
        raise NotConfigured(
            f"{kind.label} needs a key and there is none.",
            hint="Add one under Settings → Provider keys, or choose the demo provider.",
        )
    if not (config.api_key.isascii() and config.api_key.isprintable()) or " " in config.api_key:
        raise NotConfigured(
            f"The key for {kind.label} holds characters that no key has, such as spaces.",
            hint="Enter it again under Settings → Provider keys.",
        )
    if kind.needs_base_url and not config.base_url:
        raise NotConfigured(
            f"{kind.label} needs a base URL and there is none.",
            hint="Set it, for example http://127.0.0.1:11434/v1 for Ollama.",
        )
    return cast(Provider, importlib.import_module(kind.module).build(config))

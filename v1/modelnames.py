"""Models by one name on the wire: `claude-…`, `provider/model`, `provider`, or a bare model's name.

Ours are two words, provider and model; `auto` is the first provider the person has a key for.
"""

from __future__ import annotations

from providers.table import KINDS

AUTO = "auto"
CLAUDE = "claude-"


def to_wire(provider: str, model: str) -> str:
    """The one name; `from_wire` gives back both words."""
    if not model:
        return provider
    if provider == "anthropic" and model.startswith(CLAUDE):
        return model
    if provider == AUTO and not model.startswith(CLAUDE) and _is_bare(model):
        return model
    return f"{provider}/{model}"


def from_wire(name: str) -> tuple[str, str]:
    """Provider and model. What names no provider is left to whichever there is a key for."""
    if name.startswith(CLAUDE):
        return "anthropic", name
    if name == AUTO or name in KINDS:
        return name, ""
    provider, slash, model = name.partition("/")
    if slash and (provider == AUTO or provider in KINDS):
        return provider, model
    return AUTO, name


def _is_bare(model: str) -> bool:
    return from_wire(model) == (AUTO, model)

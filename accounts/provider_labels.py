"""What providers are called where people read it: words in their language, names as they are.

Which providers there are says `providers.table`, which is plain Python and knows no languages: its labels
stand in messages that are kept as they were said.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from django.utils.translation import gettext_lazy as _

from providers.table import KINDS, ProviderKind

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise

_WORDS: Mapping[str, _StrPromise] = {
    "openai_compatible": _("OpenAI-compatible (Ollama, vLLM and others)"),
    "demo": _("Demo (offline, not a language model)"),
    "scripted": _("Scripted (tests and evals)"),
}
"""By the provider's name; the labels of the others are names."""


def provider_label(kind: ProviderKind) -> str | _StrPromise:
    """Drawn in the language of whoever reads it."""
    return _WORDS.get(kind.name, kind.label)


def told_label(said: str) -> str:
    """The same for a label that stands in a message; what is none stays as it was said."""
    return next((str(provider_label(kind)) for kind in KINDS.values() if kind.label == said), said)

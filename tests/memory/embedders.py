"""Embedders that a test has a deployment choose, such as one that makes one vector at a time."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from documents.models import Passage, PassageVector
from memory.embedding.chosen import EMBEDDERS
from memory.embedding.letters import Letters
from memory.models import EmbeddingClaim, Memory, MemoryVector
from tests.patience import until

_numbers = itertools.count()


def vectors_made() -> None:
    """Wait until jobs have made all of them."""

    def are_made() -> bool:
        memories, passages = Memory.objects.count(), Passage.objects.current().count()
        made = MemoryVector.objects.count(), PassageVector.objects.count()
        at_it = EmbeddingClaim.objects.exclude(holder="").exists()
        return made == (memories, passages) and not at_it

    until(are_made)


class OneAtATime(Letters):
    at_once = 1


@pytest.fixture
def embedder(monkeypatch, settings) -> Callable[[Letters], None]:
    """Has the deployment use it from now on."""

    def use(made: Letters) -> None:
        name = f"of a test {next(_numbers)}"  # each process makes one by a name
        monkeypatch.setitem(EMBEDDERS, name, lambda: made)
        settings.AGENTSITE_EMBEDDINGS = name

    return use

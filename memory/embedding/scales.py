"""What cosines of a model mean: from which on a text is about a question, and from which on about the same.

An embedder of ours says so itself. A service's model is measured once, by sentences that have nothing to do
with each other: where theirs lie, and how far they spread, says where likeness begins.
"""

from __future__ import annotations

from importlib import import_module

from memory.models import EmbeddingScale

from .contract import Embedder, Scale
from .service import Service

APART = (
    "The train to the coast leaves at half past seven.",
    "She paints her kitchen in a warm yellow.",
    "Our database was moved to another server on Friday.",
    "He has never liked the taste of olives.",
    "The contract ends in March unless it is renewed.",
    "A heron stood in the shallow water for an hour.",
    "Please send the invoice to the accounting department.",
    "The violin was built by a pupil of the old master.",
    "Two goals in the last minute decided the match.",
    "Add salt only when the beans are soft.",
    "The tests fail when the clock is set back.",
    "My grandmother grew up on an island without roads.",
    "The dentist has moved her appointment to Tuesday.",
    "Volcanic soil is rich in minerals.",
    "The lock on the garden gate is rusty.",
    "Nobody knows who wrote the second letter.",
)
"""Sentences about nothing in common."""
FLOOR, ALIKE = 2.0, 5.0
"""Times that they spread, above where they lie."""
MOST = 0.95


def scale_of(embedder: Embedder) -> Scale | None:
    """None: it was not measured yet, so there are no vectors of it either."""
    if embedder.is_here:
        return Scale(embedder.floor, embedder.alike)
    known = EmbeddingScale.objects.filter(pk=embedder.name).first()
    return None if known is None else Scale(known.floor, known.alike)


def is_measured(service: Service) -> bool:
    return EmbeddingScale.objects.filter(pk=service.name).exists()


def measure(service: Service) -> int | None:
    """One request; the tokens that it took, as the service counted them. Raises Unanswered."""
    numpy = import_module("numpy")  # needed by few installations
    made = service.ask(APART)
    cosines = (made.vectors @ made.vectors.T)[numpy.triu_indices(len(APART), 1)]
    lies, spreads = float(cosines.mean()), float(cosines.std())
    floor, alike = (min(MOST, lies + times * spreads) for times in (FLOOR, ALIKE))
    EmbeddingScale.objects.update_or_create(
        pk=service.name, defaults={"floor": round(floor, 4), "alike": round(alike, 4)}
    )
    return made.tokens

"""Vectors of texts by the letters of their words: it needs no model and knows no meaning.

Words that share most of their letters are near each other, so that what is spelt wrong, compounded or bent in
a language that is not stemmed is found. For that, and where a model would be too much, as in tests.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib import import_module

from memory.retrieval.question import FUNCTION_WORDS
from memory.retrieval.words import plain, terms_of

from .contract import WIDTH, Vectors

DIMENSIONS = 512
LETTERS = 3
"""Side by side, with the ends of words as letters of their own."""


class Letters:
    name = f"letters-{LETTERS}-{DIMENSIONS}-f{WIDTH}"
    reads = 4_000
    floor, alike = 0.25, 0.5
    share = (0.05, 0.4)
    at_once = 16
    is_here = True

    def embed(self, texts: Sequence[str]) -> Vectors:
        numpy = import_module("numpy")  # needed by few installations
        made = numpy.zeros((len(texts), DIMENSIONS), dtype=numpy.float32)
        for row, text in enumerate(texts):
            for place, count in Counter(_places(text[: self.reads])).items():
                made[row, place] = count**0.5
        lengths = numpy.linalg.norm(made, axis=1, keepdims=True)
        return made / numpy.where(lengths > 0, lengths, 1)


def _places(text: str) -> Iterator[int]:
    words = " ".join(word for word in text.split() if plain(word) not in FUNCTION_WORDS)
    for term in terms_of(words):
        word = f"<{term}>"
        for at in range(max(1, len(word) - LETTERS + 1)):
            yield zlib.crc32(word[at : at + LETTERS].encode("utf-8", "replace")) % DIMENSIONS

"""Vectors as few bits: on which side of planes a vector lies, so that many can be compared at once.

Of two vectors the share of planes that lie between them is their angle, give or take a few hundredths. How
far one of them lies from each plane tells more, at a price that only few are worth (`likeness`). Both choose
whom to compare exactly (`nearest`), and never say how near somebody is. The planes are the same on every
machine and for ever, or codes that are kept would mean nothing.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from importlib import import_module

from .contract import Vectors

BITS = 1_024
WORDS = BITS // 64
BYTES = BITS // 8
_SUMMED = 3
"""Words whose bits are counted in one byte: 192 at most."""


def heights_of(vector: Vectors) -> Vectors:
    """How far above each plane it lies, below it less than nothing."""
    numpy = import_module("numpy")  # needed by few installations
    # For something so small the library behind `@` wakes threads and waits for them.
    return numpy.einsum("i,ij->j", vector.astype(numpy.float32), _planes(len(vector)))


def code_at(heights: Vectors) -> bytes:
    """Of the vector that has these."""
    numpy = import_module("numpy")  # needed by few installations
    made: bytes = numpy.packbits(heights > 0).tobytes()
    return made


def code_of(vector: Vectors) -> bytes:
    return code_at(heights_of(vector))


def as_words(codes: bytes) -> Vectors:
    """Of codes one behind the other: a row for each word, a column for each code."""
    numpy = import_module("numpy")  # needed by few installations
    return numpy.frombuffer(codes, dtype=numpy.uint64).reshape(-1, WORDS).T


def distances(codes: Vectors, asked: Vectors) -> Vectors:
    """Planes between each of `codes` (`as_words`) and one."""
    numpy = import_module("numpy")  # needed by few installations
    found = numpy.zeros(codes.shape[1], dtype=numpy.uint16)
    for first in range(0, WORDS, _SUMMED):
        words = range(first, min(WORDS, first + _SUMMED))
        some = numpy.zeros(codes.shape[1], dtype=numpy.uint8)
        for word in words:
            some += numpy.bitwise_count(codes[word] ^ asked[word])
        found += some
    return found


def likeness(codes: Vectors, heights: Vectors) -> Vectors:
    """How much each of `codes` (`as_words`) is like the vector that has these heights: the same planes count
    the more, the farther it lies from them. Greater is nearer; nothing else is said by the figure."""
    numpy = import_module("numpy")  # needed by few installations
    each = numpy.ascontiguousarray(codes.T).view(numpy.uint8)
    above = numpy.unpackbits(each, axis=1).astype(numpy.float32)
    return numpy.einsum("ij,j->i", above, heights)


def least(far: Vectors, most: int) -> Vectors:
    """Places of the `most` smallest of these distances, and of the same the last ones."""
    numpy = import_module("numpy")  # needed by few installations
    until = numpy.bincount(far, minlength=BITS + 1).cumsum().searchsorted(most)
    nearer, same = numpy.flatnonzero(far < until), numpy.flatnonzero(far == until)
    return numpy.concatenate([nearer, same[len(same) - (most - len(nearer)) :]])


@lru_cache(maxsize=4)  # a service may answer with another size each time
def _planes(dimensions: int) -> Vectors:
    """Of ones and minus ones, drawn from a hash: a generator's numbers may change with its release."""
    numpy = import_module("numpy")  # needed by few installations
    drawn = hashlib.shake_256(b"agentsite planes").digest(dimensions * BYTES)
    bits = numpy.unpackbits(numpy.frombuffer(drawn, dtype=numpy.uint8))
    return bits.reshape(dimensions, BITS).astype(numpy.float32) * 2 - 1

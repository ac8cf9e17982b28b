"""Vectors by a model service: any that answers `POST …/embeddings` as OpenAI's does.

One request and what came of it. Who waits for it and for how long, and who pays, is said by `asking` and
`indexing`. The address is the operator's: it may lead inside the network, never to what hands out
credentials.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import httpx2
from asgiref.sync import async_to_sync

from harness.errors import AddressRefused, Declined
from net.addresses import NEVER, Address, sort_of
from net.guarded import guarded_client
from reading.digits import number_of
from reading.foreignjson import Unreadable, read_json
from reading.wholetext import json_of

from .contract import WIDTH, Vectors

SECONDS = 30.0
"""Of a request in the background, to the last byte of its answer."""
MOST_BYTES = 32 * 1024 * 1024
SHORTEST = 500
"""Characters: a text that is refused is tried with half of itself down to here; then it has no vector."""
LONGEST_WAIT = 3_600.0
"""Of what a service asks for."""
LARGEST = 1e6
"""Of a vector's numbers: beyond it their squares are none."""
_PLAIN = 0.3
_UNSENT = (httpx2.ConnectTimeout, httpx2.PoolTimeout)
"""Of what took too long: nothing had reached the service."""
_BROKEN_OFF = (httpx2.ReadError, httpx2.RemoteProtocolError)
"""Of what went wrong otherwise: it had all reached the service."""


class Unanswered(Exception):
    """There are no vectors now; the message says why, in words that hold no secret."""

    def __init__(
        self, why: str, *, wait: float = 0.0, texts: bool = False, counted: bool = False
    ) -> None:
        super().__init__(why)
        self.wait = wait
        """Seconds that the service wants to be left alone."""
        self.texts = texts
        """It refused what it was given: others may do."""
        self.counted = counted
        """It may have read what it was given, and want to be paid for it."""


@dataclass(frozen=True, slots=True)
class Made:
    vectors: Vectors
    tokens: int | None
    """As the service counted them; None: it does not say."""


@dataclass(frozen=True, slots=True)
class Service:
    address: str
    """Up to where `/embeddings` follows."""
    model: str
    key: str = field(default="", repr=False)
    dimensions: int = 0
    """That are asked for; 0: as many as the model has."""

    reads = 6_000
    at_once = 32
    share = (0.1, 0.6)
    is_here = False
    floor, alike = _PLAIN, 2 * _PLAIN
    """Of no model: what this one's are is measured (`scales`)."""

    @property
    def name(self) -> str:
        told = f"{self.address}\n{self.model}\n{self.dimensions}\nf{WIDTH}"
        return f"{self.model[:60]}@{hashlib.sha256(told.encode()).hexdigest()[:12]}"

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Without anybody who pays, for a program that an operator runs. Raises Declined."""
        try:
            pieces = [
                self.ask(texts[at : at + self.at_once]).vectors
                for at in range(0, len(texts), self.at_once)
            ]
        except Unanswered as problem:
            raise Declined(f"The service of embeddings gave none: {problem}.") from problem
        numpy = import_module("numpy")  # needed by few installations
        return numpy.concatenate(pieces) if pieces else numpy.zeros((0, 1), numpy.float32)

    def ask(self, texts: Sequence[str], *, seconds: float = SECONDS) -> Made:
        """One request; a text that says nothing is not sent and has no length. Raises Unanswered."""
        said = [text[: self.reads] for text in texts]
        sent = [number for number, text in enumerate(said) if text.strip()]
        rows, tokens = [], None
        if sent:
            body = async_to_sync(self._post)([said[number] for number in sent], seconds)
            rows, tokens = _rows(body, len(sent), self.dimensions), _tokens(body)
        numpy = import_module("numpy")  # needed by few installations
        made = numpy.zeros((len(texts), len(rows[0]) if rows else 1), dtype=numpy.float32)
        if rows:
            given = numpy.array(rows, dtype=numpy.float64)
            if (abs(given) > LARGEST).any():
                raise Unanswered("its vectors are out of range", counted=True)
            lengths = numpy.linalg.norm(given, axis=1, keepdims=True)
            made[sent] = given / numpy.where(lengths > 0, lengths, 1)
        return Made(made, tokens)

    def nothing(self) -> Vectors:
        """The vector of a text of which the service makes none."""
        return import_module("numpy").zeros(1, dtype="float32")  # needed by few installations

    async def _post(self, texts: list[str], seconds: float) -> Any:
        asked: dict[str, Any] = {"model": self.model, "input": texts, "encoding_format": "float"}
        if self.dimensions:
            asked["dimensions"] = self.dimensions
        headers = {"Content-Type": "application/json"}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        address = f"{self.address.rstrip('/')}/embeddings"
        try:
            async with guarded_client(
                _judge, timeout=httpx2.Timeout(seconds), seconds=seconds, most_bytes=MOST_BYTES
            ) as client:
                answer = await client.post(address, content=json_of(asked), headers=headers)
        except AddressRefused as problem:
            raise Unanswered(problem.message) from problem
        except httpx2.TimeoutException as problem:
            late = f"it did not answer within {seconds:g} seconds"
            raise Unanswered(late, counted=not isinstance(problem, _UNSENT)) from problem
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as problem:
            why = f"it cannot be reached ({type(problem).__name__})"
            raise Unanswered(why, counted=isinstance(problem, _BROKEN_OFF)) from problem
        if answer.status_code != 200:
            wait = number_of(answer.headers.get("Retry-After", "").strip(), most=999_999)
            raise Unanswered(
                f"it answered {answer.status_code}",
                wait=min(float(wait or 0), LONGEST_WAIT),
                texts=answer.status_code in {400, 413, 422},
            )
        try:
            return read_json(answer.content, limit=MOST_BYTES, parts=2_000_000)
        except Unreadable as problem:
            raise Unanswered("its answer is no JSON that can be read", counted=True) from problem


def _rows(body: Any, count: int, dimensions: int) -> list[list[float]]:
    """Of each text, in the order of the texts. Raises Unanswered."""
    given = body.get("data") if isinstance(body, dict) else None
    found: dict[int, list[float]] = {}
    for place, each in enumerate(given if isinstance(given, list) else []):
        number = each.get("index", place) if isinstance(each, dict) else None
        row = each.get("embedding") if isinstance(each, dict) else None
        if not isinstance(number, int) or not isinstance(row, list) or not row:
            break
        if not all(map(_is_number, row)):
            break
        found[number] = row
    if set(found) != set(range(count)):
        raise Unanswered("its answer has no vector for each text", counted=True)
    sizes = {len(row) for row in found.values()}
    if len(sizes) != 1 or (dimensions and sizes != {dimensions}):
        raise Unanswered("its vectors are not of the size that was asked for", counted=True)
    return [found[number] for number in range(count)]


def _is_number(value: Any) -> bool:
    """No whole number that is larger than any fraction, either, which nothing can be reckoned with."""
    try:
        return type(value) in {int, float} and math.isfinite(value)
    except OverflowError:
        return False


def _tokens(body: Any) -> int | None:
    usage = body.get("usage") if isinstance(body, dict) else None
    if not isinstance(usage, dict):
        return None
    told = usage.get("total_tokens", usage.get("prompt_tokens"))
    if not isinstance(told, int) or isinstance(told, bool):
        return None
    return told if 0 < told < 2**31 else None  # nothing is read for nothing: that is not said


def _judge(host: str, address: Address, _port: int) -> None:
    if sort_of(address) in NEVER:
        raise AddressRefused(
            f"{host} leads to an address that nothing is sent to.",
            hint="Set AGENTSITE_EMBEDDINGS to the service's own address.",
        )

"""What the loop needs from outside, as protocols: somewhere durable to write, somewhere live to say.

`conversations.runner` implements them over tables and sockets; `tests.standins` in memory.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from harness.history import Entry
from harness.messages import ModelRequest
from reading.growingtext import GrowingText


class Journal(Protocol):
    async def append(self, *entries: Entry) -> Sequence[Entry]:
        """Store `entries` in one transaction; they are durable on return.

        Returns everything the log has gained since the last call, in order and numbered: these
        entries and what others appended meanwhile. Raises `LeaseLost` when this run no longer owns
        the conversation; then nothing was stored. With no entries it only fetches.
        """
        ...

    async def append_if_unchanged(self, *entries: Entry) -> Sequence[Entry]:
        """`append` for entries that hold only as long as nobody else says anything: when the log has
        gained something since the last call, nothing is stored and only that is returned.

        Of a model request that a limit refuses nothing is noted: it is meant to be asked for again by
        `append`, with what led to it stored.
        """
        ...


@dataclass(frozen=True, slots=True)
class LiveBlock:
    """A text block that is arriving, and what came of it. Its id is the one its event will have."""

    uid: str
    kind: Literal["text", "thinking"]
    model_request_id: str
    continues: str | None = None
    text: GrowingText = field(default_factory=GrowingText, compare=False)


class Live(Protocol):
    """Carries deltas to whoever watches. Never fails; losing one loses nothing."""

    def begin(self, block: LiveBlock) -> None: ...

    def delta(self, block: LiveBlock, text: str) -> None:
        """`text` came, and stands at the end of the block's."""
        ...

    def end(self, block: LiveBlock) -> None: ...

    async def stride(self) -> None:
        """What came of a reply was said. Returns at once, or after as short a while as nobody who
        reads along would notice; then what came meanwhile is said in one go."""
        ...


class Tracer(Protocol):
    """Keeps what was sent and what came back, where tracing is on."""

    def request(self, model_request_id: str, request: ModelRequest) -> Awaitable[None]: ...

    def response(self, model_request_id: str, response: dict[str, Any]) -> Awaitable[None]: ...


class Silent:
    """A `Live` and `Tracer` nobody listens to."""

    def begin(self, block: LiveBlock) -> None:
        pass

    def delta(self, block: LiveBlock, text: str) -> None:
        pass

    def end(self, block: LiveBlock) -> None:
        pass

    async def stride(self) -> None:
        pass

    async def request(self, model_request_id: str, request: ModelRequest) -> None:
        pass

    async def response(self, model_request_id: str, response: dict[str, Any]) -> None:
        pass

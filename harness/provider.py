"""The contract between the loop and code that speaks to a model service.

Every provider passes `tests.standins.provider_contract`. Retrying is not a provider's business:
the loop puts a failed request off and asks again (`harness.loop`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

from harness.messages import ModelRequest, Piece


class Provider(Protocol):
    @property
    def name(self) -> str: ...

    def stream(self, request: ModelRequest) -> AsyncIterator[Piece]:
        """Send one request and yield the reply's pieces as they arrive.

        Blocks come one after another; each text or thinking block gives its deltas and then its
        `…Done`, each call only `ToolCallDone`; `ReplyDone` is last. Failures raise a `ProviderError`
        (never the SDK's own class); what was yielded before stays valid. Closing the iterator early
        closes the connection at once. Nothing is retried here.
        """
        ...

    async def aclose(self) -> None:
        """Release connections. Calling it twice is harmless."""
        ...

"""Results without a `resultType` are whole ones, as the protocol has it for servers that leave it out.

The official client refuses them from 2026-07-28 on, as not of the schema; before, the word means nothing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import TracebackType

from mcp.client._transport import ReadStream, Transport, TransportStreams
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCResponse

Heard = SessionMessage | Exception


@asynccontextmanager
async def completing(transport: Transport) -> AsyncIterator[TransportStreams]:
    async with transport as (heard, said):
        yield _Completing(heard), said


class _Completing:
    def __init__(self, heard: ReadStream[Heard]) -> None:
        self._heard = heard

    @property
    def last_context(self) -> object:
        """Whoever reads looks for it where a stream has one."""
        return getattr(self._heard, "last_context", None)

    async def receive(self) -> Heard:
        return _completed(await self._heard.receive())

    async def aclose(self) -> None:
        await self._heard.aclose()

    def __aiter__(self) -> _Completing:
        return self

    async def __anext__(self) -> Heard:
        return _completed(await self._heard.__anext__())

    async def __aenter__(self) -> _Completing:
        await self._heard.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        return await self._heard.__aexit__(kind, problem, trace)


def _completed(item: Heard) -> Heard:
    if isinstance(item, SessionMessage) and isinstance(item.message, JSONRPCResponse):
        item.message.result.setdefault("resultType", "complete")
    return item

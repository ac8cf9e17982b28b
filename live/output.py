"""What running commands print, on its way to whoever watches: decoded, coalesced, bounded.

Travels beside the log like streaming text, as a block of the call it belongs to; the stored result
takes its place. Losing some of it loses nothing.
"""

from __future__ import annotations

import asyncio
import codecs
from dataclasses import dataclass, field

from live.hub import Hub

WINDOW = 0.1
"""Seconds for which output is gathered before it is sent on: eyes follow no faster."""
LIMIT = 64_000
"""Characters of one command that are shown while it runs."""
LINGERS = 2.0
"""Seconds for which a command's output stays after its end, until its result is stored and drawn."""
MORE = "\n[… it goes on; the result will show its end …]\n"


def block_of(call_uid: str) -> str:
    """The id of the block of a call's output."""
    return f"{call_uid}.out"


@dataclass(slots=True)
class _Open:
    decoders: dict[str, codecs.IncrementalDecoder] = field(default_factory=dict)
    unsent: list[str] = field(default_factory=list)
    length: int = 0
    timer: asyncio.TimerHandle | None = None
    closing: asyncio.TimerHandle | None = None


class LiveOutput:
    """For the commands of one run; used on one event loop."""

    def __init__(self, hub: Hub, conversation_uid: str) -> None:
        self._hub = hub
        self._uid = conversation_uid
        self._loop = asyncio.get_running_loop()
        self._open: dict[str, _Open] = {}

    def hear(self, call_uid: str, stream: str, data: bytes) -> None:
        """Take a piece of output. Never blocks."""
        held = self._open.get(call_uid)
        if held is None:
            held = self._open[call_uid] = _Open()
            self._hub.open(self._uid, block_of(call_uid), "output")
        decoder = held.decoders.get(stream)
        if decoder is None:
            decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
            held.decoders[stream] = decoder
        text = decoder.decode(data)
        if not text or held.length > LIMIT:
            return
        room = LIMIT - held.length
        held.length += len(text)
        held.unsent.append(text[:room] + (MORE if len(text) > room else ""))
        if held.timer is None:
            held.timer = self._loop.call_later(WINDOW, self._send, call_uid, held)

    def ended(self, call_uid: str) -> None:
        """The command is over; its block goes once its result had time to be drawn."""
        held = self._open.get(call_uid)
        if held is not None and held.closing is None:
            held.closing = self._loop.call_later(LINGERS, self._close, call_uid)

    def abandon(self) -> None:
        """The run is over: what is open goes now."""
        for call_uid in tuple(self._open):
            self._close(call_uid)

    def _send(self, call_uid: str, held: _Open) -> None:
        held.timer = None
        text = "".join(held.unsent)
        held.unsent.clear()
        self._hub.extend(self._uid, block_of(call_uid), text)

    def _close(self, call_uid: str) -> None:
        held = self._open.pop(call_uid, None)
        if held is None:
            return
        for timer in (held.timer, held.closing):
            if timer is not None:
                timer.cancel()
        self._hub.close(self._uid, block_of(call_uid))

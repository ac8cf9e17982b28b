"""A Messages API on loopback that does nothing but keep its pace: `python -m bench.model_service`.

It takes its orders from the prompt (the last `bench …` in it), checks nothing and parses next to
nothing, so that thousands of deltas a second leave on time. For correctness there is
`tests.standins.messages_api`; this one is for load.

    bench stream COUNT PER_SECOND   COUNT deltas of 16 characters, each the time it was due; 0: at once
    bench loop STEPS                a call of `think` for each of STEPS replies, then a text
    bench children N COUNT RATE     N calls of `subagent`, each to `bench stream COUNT RATE`, then a text
    bench calls N                   N calls of `think` in one reply, then a text
    bench nested N                  a call of the bench's skill that calls `think` N times, then a text
    bench input SIZE                a call of `write_file` with SIZE characters in pieces of 20, then a text

GET /stats says how late its deltas were and which requests came when; POST /watch?pid=… has it read
the processor clock of these processes whenever a request arrives; POST /reset forgets.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

import uvloop

from bench.figures import STAMP
from bench.machine import family_seconds

_ORDER = re.compile(rb"bench (stream|loop|input|calls|nested) (\d+)(?: (\d+))?")
_CHILDREN = re.compile(rb"bench children (\d+) (\d+) (\d+)")

_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
    b"cache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n"
)
_LAST = b"0\r\n\r\n"


def _event(kind: str, **fields: Any) -> bytes:
    data = json.dumps({"type": kind, **fields}, separators=(",", ":"))
    return f"event: {kind}\ndata: {data}\n\n".encode()


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def _start(index: int, block: dict[str, Any]) -> bytes:
    return _event("content_block_start", index=index, content_block=block)


def _opening(block: dict[str, Any]) -> bytes:
    message: dict[str, Any] = {
        "id": "msg_bench",
        "type": "message",
        "role": "assistant",
        "model": "bench",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 100, "output_tokens": 1},
    }
    return _event("message_start", message=message) + _event("ping") + _start(0, block)


def _closing(reason: str, index: int = 0) -> bytes:
    return (
        _event("content_block_stop", index=index)
        + _event(
            "message_delta",
            delta={"stop_reason": reason, "stop_sequence": None},
            usage={"output_tokens": 20},
        )
        + _event("message_stop")
    )


_TEXT_OPENING = _opening({"type": "text", "text": ""})
_DELTA = _chunk(
    _event("content_block_delta", index=0, delta={"type": "text_delta", "text": "X" * STAMP})
).replace(b"X" * STAMP, b"%15.5f ")
_END_OF_TEXT = _chunk(_closing("end_turn")) + _LAST
_END_OF_CALL = _chunk(_closing("tool_use")) + _LAST


def _input_delta(text: str, index: int = 0) -> bytes:
    delta = {"type": "input_json_delta", "partial_json": text}
    return _event("content_block_delta", index=index, delta=delta)


SKILL_TOOL = "skill__bench__many"
"""Calls `think` as often as it is told to."""


def fan_out(count: int, name: str, given: str) -> bytes:
    """A whole reply with so many calls of the tool, each with the same arguments."""
    pieces = []
    for place in range(count):
        call = {"type": "tool_use", "id": f"toolu_{place}", "name": name, "input": {}}
        end = _event("content_block_stop", index=place - 1) if place else b""
        opening = end + _start(place, call) if place else _opening(call)
        pieces.append(_chunk(opening + _input_delta(given, place)))
    return _HEAD + b"".join(pieces) + _chunk(_closing("tool_use", count - 1)) + _LAST


def call_reply(name: str, size: int, piece: int = 20) -> bytes:
    """A whole reply with one call: `think`, or `write_file` with `size` characters of content."""
    text = "thinking " * (size // 9) + "." * (size % 9)
    raw = json.dumps({"thought": text} if name == "think" else {"path": "a.txt", "content": text})
    pieces = [raw[start : start + piece] for start in range(0, len(raw), piece)]
    body = b"".join(_chunk(_input_delta(text)) for text in pieces)
    opening = _opening({"type": "tool_use", "id": "toolu_1", "name": name, "input": {}})
    return _HEAD + _chunk(opening) + body + _END_OF_CALL


class Service:
    """What all connections share."""

    def __init__(self) -> None:
        self.watched: list[int] = []
        self.small_call = call_reply("think", 10)
        self.reset()

    def reset(self) -> None:
        self.late: list[float] = []
        self.arrivals: list[tuple[float, float]] = []
        self.last_body = b""
        self.began = time.process_time(), time.monotonic()

    def stats(self) -> dict[str, Any]:
        late = sorted(self.late)
        used = time.process_time() - self.began[0]
        return {
            "deltas": len(late),
            "late_p99_ms": late[int(len(late) * 0.99)] * 1000 if late else 0.0,
            "cores": used / max(1e-9, time.monotonic() - self.began[1]),
            "arrivals": self.arrivals,
        }


class Connection(asyncio.Protocol):
    """HTTP/1.1 as far as the SDK speaks it: one request after another, bodies with a length."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._loop = asyncio.get_running_loop()
        self._data = bytearray()
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is none by name

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def data_received(self, data: bytes) -> None:
        self._data += data
        end = self._data.find(b"\r\n\r\n")
        if end < 0:
            return
        head = bytes(self._data[:end])
        found = re.search(rb"content-length: *(\d+)", head, re.IGNORECASE)
        size = int(found[1]) if found else 0
        if len(self._data) < end + 4 + size:
            return
        body = bytes(self._data[end + 4 : end + 4 + size])
        del self._data[: end + 4 + size]
        method, target, _ = head.split(b"\r\n", 1)[0].decode().split(" ")
        self._answer(method, target, body)

    def _answer(self, method: str, target: str, body: bytes) -> None:
        service, address = self._service, urlsplit(target)
        match method, address.path:
            case "POST", "/v1/messages":
                used = family_seconds(service.watched) if service.watched else 0.0
                service.arrivals.append((time.monotonic(), used))
                service.last_body = body
                self._reply(body)
            case "GET", "/stats":
                self._send_json(json.dumps(service.stats()).encode())
            case "GET", "/last-body":
                self._send_json(service.last_body)
            case "POST", "/reset":
                service.reset()
                self._send_json(b"{}")
            case "POST", "/watch":
                service.watched = [int(pid) for pid in parse_qs(address.query).get("pid", ())]
                self._send_json(b"{}")
            case _:
                self._transport.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")

    def _send_json(self, body: bytes) -> None:
        head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
        self._transport.write(head % len(body) + body)

    def _reply(self, body: bytes) -> None:
        orders = _ORDER.findall(body)
        what, count, rate = orders[-1] if orders else (b"stream", b"1", b"0")
        done = body.count(b'"tool_result"')
        children = _CHILDREN.search(body)
        if children and not done:
            many, deltas, per_second = map(int, children.groups())
            order = f"bench stream {deltas} {per_second}"
            given = json.dumps({"description": "Stream", "prompt": order})
            self._transport.write(fan_out(many, "subagent", given))
            return
        if children:
            what, count, rate = b"stream", b"1", b"0"
        if what == b"loop" and done < int(count):
            self._transport.write(self._service.small_call)
        elif what == b"calls" and not done:
            self._transport.write(fan_out(int(count), "think", '{"thought": "thinking"}'))
        elif what == b"nested" and not done:
            self._transport.write(fan_out(1, SKILL_TOOL, f'{{"times": {int(count)}}}'))
        elif what == b"input" and not done:
            self._transport.write(call_reply("write_file", int(count)))
        elif what == b"stream" and rate and int(rate):
            self._stream(int(count), 1 / int(rate))
        else:
            deltas = int(count) if what == b"stream" else 1
            now = time.monotonic()
            burst = b"".join(_DELTA % now for _ in range(deltas))
            self._transport.write(_HEAD + _chunk(_TEXT_OPENING) + burst + _END_OF_TEXT)

    def _stream(self, count: int, gap: float) -> None:
        late, write, call_later = self._service.late, self._transport.write, self._loop.call_later
        left, clock = count, time.monotonic

        def tick(due: float) -> None:
            nonlocal left
            now = clock()
            late.append(now - due)
            left -= 1
            write(_DELTA % due if left else _DELTA % due + _END_OF_TEXT)
            if left and not self._transport.is_closing():
                due += gap
                self._timer = call_later(max(0.0, due - now), tick, due)

        write(_HEAD + _chunk(_TEXT_OPENING))
        tick(clock())


async def serve() -> None:
    service = Service()
    server = await asyncio.get_running_loop().create_server(
        lambda: Connection(service), "127.0.0.1", 0, backlog=2048
    )
    sys.stdout.write(json.dumps({"port": server.sockets[0].getsockname()[1]}) + "\n")
    sys.stdout.flush()
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve())

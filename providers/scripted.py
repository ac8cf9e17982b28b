"""Replies written beforehand: a provider for tests and evals, and the words scripts are written in.

    Scripted([reply(think("Look first."), call("read_file", path="a.py")), say("Done.")])

The same scripts drive the loopback service in `tests.standins.messages_api`. Answering people who
have no key is done by `providers.demo`.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field
from typing import Any

from harness.errors import NotConfigured, ProviderError
from harness.messages import (
    ModelRequest,
    Piece,
    ReplyDone,
    ReplyEnd,
    TextDelta,
    TextDone,
    ThinkingDelta,
    ThinkingDone,
    ToolCallDone,
    Usage,
)
from providers.failures import broken_by
from providers.table import ProviderConfig
from providers.wiretext import Mender
from reading.wholetext import mended

DEFAULT_USAGE = Usage(input_tokens=10, output_tokens=5)
"""What a reply reports unless its script says otherwise; fixed, so that tests can add it up."""


class ScriptExhausted(ProviderError):
    """More was asked than the script answers."""

    code = "script_exhausted"


# --- the words of a script ------------------------------------------------------------------------


class Signal:
    """Like `asyncio.Event`, but it may be set from any thread and awaited on any loop."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_set = False
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        with self._lock:
            self._is_set = True
            waiting, self._waiting = self._waiting, []
        for loop, event in waiting:
            if not loop.is_closed():
                loop.call_soon_threadsafe(event.set)

    async def wait(self) -> None:
        with self._lock:
            if self._is_set:
                return
            event = asyncio.Event()
            self._waiting.append((asyncio.get_running_loop(), event))
        await event.wait()


class Hold:
    """A place where the reply stands still: it sets `reached` and goes on when `release` is set."""

    def __init__(self) -> None:
        self.reached = Signal()
        self.release = Signal()

    async def pass_through(self) -> None:
        self.reached.set()
        await self.release.wait()


@dataclass(frozen=True, slots=True)
class Fail:
    """The stream breaks here with `error`; the block it stands in is never finished."""

    error: BaseException


Stretch = str | Hold | Fail
"""What the inside of one text or thinking block is made of."""


@dataclass(frozen=True, slots=True)
class Say:
    stretches: tuple[Stretch, ...]

    @property
    def text(self) -> str:
        return _joined(self.stretches)


@dataclass(frozen=True, slots=True)
class Think:
    stretches: tuple[Stretch, ...]
    signature: str = ""
    redacted_data: str = ""

    @property
    def text(self) -> str:
        return _joined(self.stretches)


@dataclass(frozen=True, slots=True)
class Call:
    name: str
    input: Mapping[str, Any]
    invalid: str = ""
    """Raw argument text that is not a JSON object, sent in place of `input`."""


def _joined(stretches: tuple[Stretch, ...]) -> str:
    return "".join(stretch for stretch in stretches if isinstance(stretch, str))


ScriptPart = Say | Think | Call | Hold | Fail


@dataclass(frozen=True, slots=True)
class Reply:
    """One whole reply. `end` defaults to `tool_use` when it holds a call, else to `end_turn`."""

    parts: tuple[ScriptPart, ...]
    end: ReplyEnd | None = None
    usage: Usage = DEFAULT_USAGE
    detail: str = ""
    chunk: int = 0
    """Characters per delta; 0 sends each stretch in one."""
    delay: float = 0.0
    """Seconds before each delta."""

    @property
    def ending(self) -> ReplyEnd:
        if self.end is not None:
            return self.end
        return "tool_use" if any(isinstance(part, Call) for part in self.parts) else "end_turn"


def say(*stretches: Stretch) -> Say:
    """One text block. `say("Half of ", Fail(error))` breaks inside it, a `Hold` waits inside it."""
    return Say(stretches)


def think(*stretches: Stretch, signature: str = "", redacted_data: str = "") -> Think:
    return Think(stretches, signature, redacted_data)


def call(name: str, /, **arguments: Any) -> Call:
    return Call(name, arguments)


def garbled_call(name: str, raw: str) -> Call:
    """A call whose arguments are `raw`, which is not a JSON object."""
    return Call(name, {}, invalid=raw)


def reply(
    *parts: ScriptPart | str,
    end: ReplyEnd | None = None,
    usage: Usage = DEFAULT_USAGE,
    detail: str = "",
    chunk: int = 0,
    delay: float = 0.0,
) -> Reply:
    """A reply of several parts; a plain string is a text block."""
    whole = tuple(say(part) if isinstance(part, str) else part for part in parts)
    return Reply(whole, end, usage, detail, chunk, delay)


Answer = Reply | ScriptPart | str | BaseException | Sequence["ScriptPart | str"]
"""What may stand for one reply: the whole, its parts, a single part, or an error raised at once."""

Brain = Callable[[ModelRequest], Answer]
"""Chooses the reply by looking at the request, which serves concurrent conversations."""

Script = Sequence["Answer | Brain"] | Brain


def as_reply(answer: Answer) -> Reply | BaseException:
    if isinstance(answer, Reply | BaseException):
        return answer
    if isinstance(answer, str | Say | Think | Call | Hold | Fail):
        return reply(answer)
    return reply(*answer)


class Prompter:
    """Hands out a script's replies in order, or as its brain chooses, and keeps the requests."""

    def __init__(self, script: Script) -> None:
        self._brain = script if callable(script) else None
        self._replies = () if callable(script) else tuple(script)
        self._lock = threading.Lock()
        self.requests: list[ModelRequest] = []

    def next(self, request: ModelRequest) -> Reply | BaseException:
        """The reply to `request`; raises `ScriptExhausted` past the end of a list."""
        with self._lock:
            self.requests.append(request)
            number = len(self.requests)
        if self._brain is not None:
            return as_reply(self._brain(request))
        if number > len(self._replies):
            raise ScriptExhausted(
                f"The script holds {len(self._replies)} replies and this is request {number}.",
                hint="Add a reply to the script, or look for a request that should not be made.",
            )
        answer = self._replies[number - 1]
        return as_reply(answer(request) if callable(answer) else answer)


# --- the provider ---------------------------------------------------------------------------------


@dataclass(slots=True)
class Scripted:
    """Plays a script. `requests` holds every request it got, `closed_early` how many of its streams
    were closed before their end."""

    script: Script
    name: str = "scripted"
    closed_early: int = 0
    closed: bool = False
    _prompter: Prompter = field(init=False)

    def __post_init__(self) -> None:
        self._prompter = Prompter(self.script)

    @property
    def requests(self) -> list[ModelRequest]:
        return self._prompter.requests

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Piece]:
        answer = self._prompter.next(request)
        if isinstance(answer, BaseException):
            raise answer
        begun = finished = False
        try:
            async for piece in play(answer):
                begun = True
                yield piece
            finished = True
        except ProviderError as error:
            finished = True
            raise (broken_by(error) if begun else error) from None
        except Exception:
            finished = True
            raise
        finally:
            if not finished:
                self.closed_early += 1

    async def aclose(self) -> None:
        self.closed = True


class RegisteredScripts:
    """Plays the script that was registered under the name a request gives as its model."""

    name = "scripted"

    async def stream(self, request: ModelRequest) -> AsyncIterator[Piece]:
        try:
            script = _REGISTERED[request.model]
        except KeyError:
            raise NotConfigured(
                f"No script is registered as {request.model!r}.",
                hint=f"Registered are: {', '.join(_REGISTERED) or 'none'}.",
            ) from None
        async with aclosing(script.stream(request)) as pieces:
            async for piece in pieces:
                yield piece

    async def aclose(self) -> None:
        """The scripts stay: they go on where they are in the next run."""


_REGISTERED: dict[str, Scripted] = {}


@contextmanager
def registered(name: str, script: Script) -> Iterator[Scripted]:
    """While this is open, agents with provider `scripted` and model `name` play `script`.

    In this process only. Its place in the script is kept from run to run.
    """
    _REGISTERED[name] = scripted = Scripted(script)
    try:
        yield scripted
    finally:
        _REGISTERED.pop(name, None)


def build(config: ProviderConfig) -> RegisteredScripts:
    return RegisteredScripts()


async def play(answer: Reply) -> AsyncIterator[Piece]:
    """The pieces of one scripted reply, with its delays, holds and breaks.

    Blocks without text or signature are left out, as every provider leaves a service's empty ones.
    """
    index = 0
    for part in answer.parts:
        match part:
            case Hold():
                await part.pass_through()
            case Fail():
                raise part.error
            case Call():
                yield ToolCallDone(index, part.name, dict(part.input), part.invalid)
                index += 1
            case Say():
                async for text in _deltas(part.stretches, answer):
                    yield TextDelta(index, text)
                if part.text:
                    yield TextDone(index, mended(part.text))
                    index += 1
            case Think():
                async for text in _deltas(part.stretches, answer):
                    yield ThinkingDelta(index, text)
                if part.text or part.signature or part.redacted_data:
                    text = mended(part.text)
                    yield ThinkingDone(index, text, part.signature, part.redacted_data)
                    index += 1
    yield ReplyDone(answer.ending, answer.usage, raw_end=answer.ending, detail=answer.detail)


async def _deltas(stretches: tuple[Stretch, ...], answer: Reply) -> AsyncIterator[str]:
    mender = Mender()
    for stretch in stretches:
        if isinstance(stretch, Hold):
            await stretch.pass_through()
        elif isinstance(stretch, Fail):
            raise stretch.error
        else:
            for text in chunks(stretch, answer.chunk):
                await asyncio.sleep(answer.delay)
                if shown := mender.feed(text):
                    yield shown
    if rest := mender.rest():
        yield rest


def chunks(text: str, size: int) -> list[str]:
    """`text` cut into pieces of `size` characters (one piece for 0); nothing for an empty text."""
    if not text or size <= 0:
        return [text] if text else []
    return [text[start : start + size] for start in range(0, len(text), size)]

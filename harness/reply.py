"""One model request from its start event to its end event.

Streams the reply, stores each block as it ends, keeps what had arrived when the stream breaks or a
person stops it, and never leaves a request without its end. What to do next is the loop's question.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, assert_never

from harness.content import Text
from harness.errors import (
    AgentError,
    BadReply,
    BrokenStream,
    LimitReached,
    Overloaded,
    ProviderError,
    ProviderTimedOut,
    ProviderUnreachable,
    RateLimited,
)
from harness.estimates import (
    CHARACTERS_PER_TOKEN,
    likely_prompt_tokens,
    prompt_tokens_at_most,
    unopened_tokens_at_most,
)
from harness.events import (
    AgentCustomToolUse,
    AgentMcpToolUse,
    AgentMessage,
    AgentThinking,
    AgentThreadContextCompacted,
    AgentToolUse,
    Event,
    McpElsewhere,
    ModelUsage,
    ServiceEdited,
    SpanModelRequestEnd,
    SpanModelRequestStart,
)
from harness.external import FRONT_END
from harness.held import MOST_CHARACTERS, too_long
from harness.history import Entry, History
from harness.ids import new_event_id
from harness.kit import Kit, Signal, first_of
from harness.messages import (
    CompactionDone,
    ElsewhereDone,
    Lull,
    ModelRequest,
    Piece,
    ReplyDone,
    TextDelta,
    TextDone,
    ThinkingDelta,
    ThinkingDone,
    ToolCallDone,
    Unshown,
    Usage,
    UsageSeen,
)
from harness.policy import Verdict
from harness.ports import LiveBlock

logger = logging.getLogger(__name__)

Append = Callable[..., Awaitable[None]]
"""Stores entries and folds what the log gained into the history."""


@dataclass(frozen=True, slots=True)
class Replied:
    """How a request ended. `error` is set when the provider failed."""

    end: str
    detail: str = ""
    error: AgentError | None = None
    begun: bool = False
    """Part of the reply had arrived and is kept; asking again would say it twice."""


class Reply:
    """One request; make one, `await run()`, or store its `start` and `await receive()`; throw it away."""

    def __init__(self, kit: Kit, history: History, append: Append, signal: Signal) -> None:
        self.kit = kit
        self.history = history
        self.append = append
        self.signal = signal
        self.uid = new_event_id()
        self._open: dict[int, LiveBlock] = {}
        self._calls: list[Entry] = []
        self._seen = Usage()
        self._output_characters = 0
        self._unshown = 0
        """Characters of blocks that are under way and were not given yet."""
        self._prompt_at_most = self._probable_prompt = 0
        self._began = 0.0
        self._first_delta: float | None = None
        self._done: ReplyDone | None = None
        self._continues: str | None = None
        self._trace: list[dict[str, Any]] = []
        self._elsewhere: dict[str, tuple[str, str]] = {}
        """By the service's id for each of its own calls, the event and the server."""
        self._model = self._read = ""
        """What is asked, and the last entry of which it is told."""
        self._summary_at_most = 0
        self._compacted = 0
        """Characters of a summary that the service made by itself."""
        self._calls_elsewhere = False
        """The service may call tools by itself."""

    async def run(self, request: ModelRequest, *, continues: str | None = None) -> Replied:
        """Send `request`; `continues` is the text block that a cut-off reply left open."""
        start = self.start(request, self.history)
        if self.kit.tracer:
            # Traces stand before the events that tell of them, so that whoever reads one finds both.
            await self.kit.tracer.request(self.uid, request)
        try:
            # Storing the start reserves what the request may cost at most.
            await self.append(start)
        except LimitReached as limit:
            return Replied("limit", error=limit)
        return await self.receive(request, continues=continues)

    def start(self, request: ModelRequest, history: History) -> Entry:
        """What is to be stored before `request` leaves; `history` is the log in front of it."""
        self._began = self.kit.clock()
        self._prompt_at_most = request.prompt_at_most or prompt_tokens_at_most(request)
        unopened = unopened_tokens_at_most(request)
        self._probable_prompt = likely_prompt_tokens(self._prompt_at_most - unopened)
        self._model = request.model
        self._read = history.entries[-1].uid if history.entries else ""
        if request.edits and 0 < request.edits.compact_at < self._prompt_at_most:
            self._summary_at_most = self._prompt_at_most
        start = SpanModelRequestStart(
            purpose=request.purpose,
            provider=self.kit.provider.name,
            model=request.model,
            step=history.turn.steps + 1,
            turn=history.turn.uid,
            prompt_tokens_at_most=self._prompt_at_most + self._summary_at_most,
            summary_tokens_at_most=self._summary_at_most,
            unopened_tokens_at_most=unopened,
            output_tokens_at_most=request.max_output_tokens,
            server_keys=self.kit.server_keys,
            plan=request.plan,
            servers=tuple(server.name for server in request.remote),
        )
        return Entry(self.uid, start)

    async def receive(self, request: ModelRequest, *, continues: str | None = None) -> Replied:
        """`run` for a request whose start is stored."""
        self._continues = continues
        work = asyncio.ensure_future(self._stream(request))
        if await first_of(work, self.signal):
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
            return await self._cut_short("interrupted")
        try:
            work.result()
        except ProviderError as problem:
            return await self._cut_short("error", problem)
        return await self._finish()

    # --- streaming --------------------------------------------------------------------------------

    async def _stream(self, request: ModelRequest) -> None:
        if request.remote:
            # Only now, so that what is kept of the request has no token in it.
            admitted = await self.kit.admitted(request.remote, self.history)
            request = replace(request, remote=admitted)
            self._calls_elsewhere = bool(admitted)
        stream = self.kit.provider.stream(request)
        time = asyncio.timeout(self.kit.reply_seconds)
        try:
            async with time:
                while (piece := await self._next(stream)) is not None:
                    if (rest := self._take(piece)) is not None:
                        await rest
        except TimeoutError:
            if not time.expired():
                raise
            raise _endless(self.kit.reply_seconds) from None
        finally:
            close = getattr(stream, "aclose", None)
            if close is not None:
                await close()
        if self._done is None:
            raise BrokenStream("The reply ended before it was complete.")

    async def _next(self, stream: AsyncIterator[Piece]) -> Piece | None:
        """The next piece, None at the end. Whatever else a provider raises becomes its error."""
        try:
            return await anext(stream)
        except StopAsyncIteration:
            return None
        except ProviderError:
            raise
        except Exception as problem:
            logger.exception("provider %s broke its contract", self.kit.provider.name)
            raise ProviderError(
                f"The provider failed unexpectedly: {type(problem).__name__}: {str(problem)[:500]}"
            ) from problem

    def _take(self, piece: Piece) -> Awaitable[None] | None:
        """What is left to be awaited. Nearly all pieces need nothing of it, and no coroutine."""
        match piece:
            case TextDelta():
                self._extend(piece.index, "text", piece.text)
            case ThinkingDelta():
                self._extend(piece.index, "thinking", piece.text)
            case Lull():
                return self.kit.live.stride()
            case TextDone():
                return self._text_done(piece)
            case ThinkingDone():
                return self._thinking_done(piece)
            case ToolCallDone():
                return self._call_done(piece)
            case ElsewhereDone():
                return self._elsewhere_done(piece)
            case CompactionDone():
                return self._compaction_done(piece)
            case UsageSeen():
                self._seen = piece.usage
            case Unshown():
                self._unshown += piece.characters
            case ReplyDone():
                self._done = piece
            case _:
                assert_never(piece)
        return None

    def _extend(self, index: int, kind: Literal["text", "thinking"], text: str) -> None:
        if not text:
            return
        if self._first_delta is None:
            self._first_delta = self.kit.clock()
        block = self._open.get(index)
        if block is None:
            block = self._open[index] = self._begin(kind)
        self._count(len(text))
        block.text.append(text)
        self.kit.live.delta(block, text)

    def _count(self, characters: int) -> None:
        self._output_characters += characters
        if self._output_characters > MOST_CHARACTERS:
            raise too_long(MOST_CHARACTERS)

    def _begin(self, kind: Literal["text", "thinking"]) -> LiveBlock:
        continues = self._continues if kind == "text" else None
        if kind == "text":
            self._continues = None
        block = LiveBlock(new_event_id(), kind, self.uid, continues)
        self.kit.live.begin(block)
        return block

    async def _text_done(self, piece: TextDone) -> None:
        block = self._open.pop(piece.index, None) or (self._begin("text") if piece.text else None)
        if block is None:
            return
        if piece.text:
            await self.append(Entry(block.uid, self._message(block, piece.text)))
            self._trace.append({"type": "text", "text": piece.text})
        self.kit.live.end(block)

    async def _thinking_done(self, piece: ThinkingDone) -> None:
        block = self._open.pop(piece.index, None) or self._begin("thinking")
        event = AgentThinking(
            thinking=piece.text,
            signature=piece.signature,
            redacted_data=piece.redacted_data,
            model_request_id=self.uid,
        )
        await self.append(Entry(block.uid, event))
        self._trace.append({"type": "thinking", "thinking": piece.text})
        self.kit.live.end(block)

    async def _elsewhere_done(self, piece: ElsewhereDone) -> None:
        """Stored as it comes: what ran is told of also where the reply breaks off."""
        self._unshown = 0
        self._count(len(str(piece.block)))
        if self._first_delta is None:
            self._first_delta = self.kit.clock()
        uid, server = (
            self._elsewhere.get(piece.id, ("", "")) if piece.kind == "result" else ("", "")
        )
        event = McpElsewhere(
            kind=piece.kind,
            server=piece.server or server,
            block=dict(piece.block),
            tool_use_id=uid,
            model_request_id=self.uid,
        )
        entry = Entry.of(event)
        if piece.kind == "use":
            self._elsewhere[piece.id] = entry.uid, piece.server
        await self.append(entry)
        self._trace.append(dict(piece.block))

    async def _compaction_done(self, piece: CompactionDone) -> None:
        """Stored at once: it is not paid for again where the reply breaks off."""
        self._unshown = 0
        self._count(len(piece.summary))
        self._compacted += len(piece.summary)
        if self._first_delta is None:
            self._first_delta = self.kit.clock()
        event = AgentThreadContextCompacted(
            summary=piece.summary,
            through=self._read,
            tokens_before=self.history.context_tokens,
            model_request_id=self.uid,
            block=dict(piece.block),
            provider=self.kit.provider.name,
            model=self._model,
        )
        await self.append(Entry.of(event))
        self._trace.append({"type": "compaction", "content": piece.summary})

    async def _call_done(self, piece: ToolCallDone) -> None:
        self._unshown = 0
        self._count(len(str(piece.input)) + len(piece.invalid) + len(piece.name))
        judgement = await self.kit.judge_aside(piece.name, self.history, arguments=piece.input)
        tool = self.kit.tools_in(self.history).get(piece.name)
        event: AgentToolUse | AgentMcpToolUse | AgentCustomToolUse
        if tool is not None and tool.external and judgement.verdict is not Verdict.DENY:
            event = AgentCustomToolUse(
                name=piece.name,
                input=dict(piece.input),
                model_request_id=self.uid,
                invalid_input=piece.invalid,
                of_front_end=tool.owner == FRONT_END,
            )
        elif tool is not None and tool.mcp_server:
            event = AgentMcpToolUse(
                name=piece.name,
                mcp_server_name=tool.mcp_server,
                host=tool.host,
                input=dict(piece.input),
                model_request_id=self.uid,
                evaluated_permission=judgement.verdict.value,
                reason=judgement.reason,
                invalid_input=piece.invalid,
                terms=judgement.terms,
            )
        else:
            event = AgentToolUse(
                name=piece.name,
                input=dict(piece.input),
                model_request_id=self.uid,
                evaluated_permission=judgement.verdict.value,
                reason=judgement.reason,
                invalid_input=piece.invalid,
                terms=judgement.terms,
            )
        entry = Entry.of(event)
        self._calls.append(entry)
        self._trace.append(
            {"type": "tool_use", "id": entry.uid, "name": piece.name, "input": dict(piece.input)}
        )

    def _message(self, block: LiveBlock, text: str, *, interrupted: bool = False) -> AgentMessage:
        return AgentMessage(
            content=(Text(text=text),),
            model_request_id=self.uid,
            continues=block.continues,
            interrupted=interrupted,
        )

    # --- endings ----------------------------------------------------------------------------------

    async def _finish(self) -> Replied:
        done = self._done
        assert done is not None  # noqa: S101 - _stream raised otherwise
        await self._close_open()
        await self._trace_response(done.end)
        # The calls and the end of the request are one commit: a reply that was cut off before its
        # end leaves no call that might run.
        usage, estimated = self._usage_of_whole_reply(done)
        told = {"cached": done.cached, "edited": _edited(done), "estimated": estimated}
        ended = self._end_event(done.end, usage).model_copy(update=told)
        await self.append(*self._calls, Entry.of(ended))
        return Replied(done.end, done.detail)

    async def _cut_short(self, end: str, error: AgentError | None = None) -> Replied:
        await self._close_open()
        charged = (
            error is None
            or self._first_delta is not None
            or self._unshown > 0
            or isinstance(error, BadReply | BrokenStream)
            or (isinstance(error, ProviderTimedOut) and error.was_sent)
        )
        usage, estimated = self._usage_of_cut_reply(charged)
        ending = self._end_event(end, usage, is_error=error is not None)
        await self._trace_response(end if error is None else f"error: {error}")
        await self.append(Entry.of(ending.model_copy(update={"estimated": estimated})))
        # What may have had the service call tools is not asked for again by itself.
        lost = self._calls_elsewhere and error is not None and not _is_turned_away(error)
        return Replied(end, error=error, begun=lost or self._first_delta is not None)

    async def _close_open(self) -> None:
        """Keep, marked, the text of blocks that never ended."""
        for block in self._open.values():
            if text := str(block.text):
                event: Event = (
                    self._message(block, text, interrupted=True)
                    if block.kind == "text"
                    else AgentThinking(thinking=text, model_request_id=self.uid, interrupted=True)
                )
                await self.append(Entry(block.uid, event))
            self.kit.live.end(block)
        self._open.clear()

    def _usage_of_cut_reply(self, charged: bool) -> tuple[Usage, bool]:
        """What the service reported so far, and whether part of it is our estimate.

        A service charges for the prompt of a reply that had begun, that a person stopped, or that did not
        come in time, whether or not it still said so; a request it refused, or never had, costs nothing.
        """
        came = self._output_characters + self._unshown
        output = max(self._seen.output_tokens, came // CHARACTERS_PER_TOKEN)
        seen = replace(self._seen, output_tokens=output)
        if self._compacted:
            # What a summary took is told with the end of a reply alone.
            unseen = max(0, self._probable_prompt - seen.prompt_tokens)
            return replace(seen, input_tokens=seen.input_tokens + unseen), True
        if seen.prompt_tokens or not charged:
            return seen, output > self._seen.output_tokens
        return replace(seen, input_tokens=self._probable_prompt), True

    def _usage_of_whole_reply(self, done: ReplyDone) -> tuple[Usage, bool]:
        """The same of one that came to its end: what a service does not report is not free."""
        usage = done.usage
        if done.cached:
            return usage, False
        if not usage.prompt_tokens:
            usage = replace(usage, input_tokens=self._probable_prompt)
        if not usage.output_tokens:
            output = -(-self._output_characters // CHARACTERS_PER_TOKEN)
            usage = replace(usage, output_tokens=output)
        return usage, usage != done.usage

    def _end_event(self, end: str, usage: Usage, *, is_error: bool = False) -> SpanModelRequestEnd:
        first = self._first_delta
        return SpanModelRequestEnd(
            model_request_start_id=self.uid,
            model_usage=ModelUsage(
                input_tokens=usage.input_tokens,
                output_tokens=usage.output_tokens,
                cache_creation_input_tokens=usage.cache_creation_input_tokens,
                cache_read_input_tokens=usage.cache_read_input_tokens,
            ),
            is_error=is_error,
            end=end,
            milliseconds=round((self.kit.clock() - self._began) * 1000),
            first_delta_milliseconds=None if first is None else round((first - self._began) * 1000),
        )

    async def _trace_response(self, end: str) -> None:
        if self.kit.tracer:
            await self.kit.tracer.response(self.uid, {"content": self._trace, "end": end})


def _edited(done: ReplyDone) -> ServiceEdited | None:
    if not (done.compaction or done.cleared_results or done.cleared_tokens):
        return None
    return ServiceEdited(
        cleared_results=done.cleared_results,
        cleared_tokens=done.cleared_tokens,
        compaction=ModelUsage(**asdict(done.compaction)) if done.compaction else None,
    )


def _is_turned_away(error: AgentError) -> bool:
    """Whether the service has surely done nothing about the request. Its 500, 502 and 504 may come at the end
    of its work."""
    match error:
        case RateLimited():
            return True
        case Overloaded():
            return error.status in {503, 529}
        case ProviderTimedOut() | ProviderUnreachable():
            return error.status is None and not error.was_sent
    return False


def _endless(seconds: float) -> ProviderTimedOut:
    failure = ProviderTimedOut(
        f"The reply had not ended after {seconds:g} seconds, and was cut.",
        hint="What had arrived is kept. Ask for less at once, or raise AGENTSITE_PROVIDER_REPLY_SECONDS.",
    )
    failure.was_sent = True
    return failure

"""The Messages API through the official SDK, against Anthropic or any service that speaks it.

The SDK sends the request and sorts its failures; the reply's bytes are split here, because typed
events cost several times as much. Its accumulating helper would parse tool input anew at each piece,
at quadratic cost. Nothing is retried here, neither by the SDK.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import orjson

from harness.errors import BadRequest, ProviderError
from harness.held import Held, figure, misshapen, word
from harness.messages import (
    CompactionDone,
    ElsewhereDone,
    Lull,
    ModelRequest,
    Piece,
    ReplyDone,
    ReplyEnd,
    TextDelta,
    TextDone,
    ThinkingDelta,
    ThinkingDone,
    ToolCallDone,
    Unshown,
    Usage,
    UsageSeen,
)
from providers import failures
from providers.anthropic_request import COMPACTION, FEATURES, betas_of, request_text
from providers.failures import Report
from providers.sse import EventData
from providers.table import ProviderConfig
from providers.wiretext import (
    Blanker,
    Mender,
    parsed_arguments,
    parsed_event,
    whole_arguments,
)
from reading.foreignjson import NESTING
from reading.growingtext import GrowingText
from reading.wholetext import json_of, mended

if TYPE_CHECKING:
    from anthropic import APIStatusError, AsyncAnthropic, AsyncStream

Event = Mapping[str, Any]
"""One event of the stream, as the service sent it."""

ENDS: Mapping[str, ReplyEnd] = {
    "end_turn": "end_turn",
    "tool_use": "tool_use",
    "max_tokens": "max_tokens",
    "stop_sequence": "stop_sequence",
    "pause_turn": "pause",
    "refusal": "refusal",
    "model_context_window_exceeded": "context_full",
}
"""Every stop reason of the SDK's type. One that it does not know counts as the end of the turn."""

ELSEWHERE: Mapping[str, Literal["use", "result", "listing"]] = {
    "mcp_tool_use": "use",
    "mcp_tool_result": "result",
    "mcp_tool_listing": "listing",
}
"""Blocks that tell of tools of MCP servers which the service called by itself."""

_LOG = logging.getLogger(__name__)

TRICKLE = 16
"""Deltas that come at once are no trickle if they are more than these: waiting would save nothing."""
_LULL = Lull()
_DELTAS = (TextDelta, ThinkingDelta)
_ADDRESS = "https://api.anthropic.com"
"""Said to the SDK, which would go by a variable of this process otherwise: with anybody's key."""
_CONNECT_SECONDS = 10.0
_SHORT = 16_384
"""Characters of an event that may hold whatever it wants but nesting."""
_SHORTEST = 2 * NESTING
"""Characters of one that cannot be nested deeper than anybody's."""
_DRAIN_SECONDS = 1.0
"""How long the end of a finished response is awaited, so that its connection can be used again."""


def build(config: ProviderConfig) -> Anthropic:
    return Anthropic(config)


class Anthropic:
    name = "anthropic"

    @property
    def runs_mcp(self) -> bool:
        """Whether it may be given servers to call, with tokens for them: not at an address somebody typed."""
        return self._config.connect is None

    @property
    def features(self) -> frozenset[str]:
        """What `harness.modelcards` names that it has: what speaks its dialect at an address somebody typed
        may have none of it."""
        return FEATURES if self._config.connect is None else frozenset()

    def __init__(self, config: ProviderConfig) -> None:
        self._config = config
        self._client: AsyncAnthropic | None = None

    async def stream(self, request: ModelRequest) -> AsyncIterator[Piece]:
        if request.remote and not self.runs_mcp:
            raise BadRequest("MCP servers are not told to a model service at this address.")
        body = _Body(request_text(request, provider=self.name, caching=self._config.prompt_caching))
        client = self._connected()
        tokens = [server.token for server in request.remote]
        compacts = bool(request.edits and request.edits.compact_at)
        reply = _Reply({server.name for server in request.remote}, tokens, compacts=compacts)
        begun = False
        failure: ProviderError | None = None
        stream: AsyncStream[Any] | None = None
        chunks: AsyncIterator[bytes] | None = None
        try:
            stream = await _post(client, body, betas_of(request))
            body.forget()
            chunks = stream.response.aiter_bytes()
            data = EventData()
            async for chunk in chunks:
                deltas = 0
                for event in _events(data, chunk):
                    if event.get("type") == "error":
                        failure = self._failure_in(event, request)
                        break
                    for piece in reply.pieces(event):
                        if isinstance(piece, _DELTAS):
                            deltas += 1
                            begun = True
                        elif not begun:
                            begun = not isinstance(piece, UsageSeen | Unshown)
                        yield piece
                    if reply.ended:
                        return
                if failure is not None:
                    break
                if 0 < deltas <= TRICKLE:
                    yield _LULL
        except Exception as error:
            failure = self._failure(error, request, opened=stream is not None)
            if failure is None:
                raise
        finally:
            if stream is not None:
                await _finish(stream, chunks if reply.ended else None)
        # Raised out here, free of the SDK's exception, which holds the request with its key.
        if failure is None:
            raise failures.ended_early()
        if self._config.connect is not None:
            _LOG.info("From %s: %s", self._config.base_url, failure.message[:500])
            failure = failures.without_words(failure)
        raise failures.broken_by(failure) if begun else failure

    async def aclose(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    def _connected(self) -> AsyncAnthropic:
        if self._client is None:
            import httpx2  # noqa: PLC0415 - heavy, imported on first use
            from anthropic import (  # noqa: PLC0415 - heavy, imported on first use
                AsyncAnthropic,
                DefaultAioHttpClient,
            )

            timeout = httpx2.Timeout(
                self._config.timeout, connect=min(_CONNECT_SECONDS, self._config.timeout)
            )
            if self._config.connect is None:
                # Reading a stream through it costs a third of what the default transport costs.
                http_client: httpx2.AsyncClient = DefaultAioHttpClient(follow_redirects=False)
            else:
                http_client = self._config.connect(timeout)
            self._client = AsyncAnthropic(
                http_client=http_client,
                api_key=self._config.api_key,
                base_url=self._config.base_url or _ADDRESS,
                timeout=timeout,
                max_retries=0,
                default_headers=dict(self._config.headers),
                # Spans and trace headers are the site's business: no id of ours leaves unasked.
                open_telemetry={"traces": False, "propagation": False},
            )
            # Nor do headers of ANTHROPIC_CUSTOM_HEADERS, to wherever a person's key leads.
            self._client._custom_headers = dict(self._config.headers)  # noqa: SLF001
        return self._client

    def _failure(
        self, error: Exception, request: ModelRequest, *, opened: bool
    ) -> ProviderError | None:
        """The service's failure in our terms; None when the fault is ours."""
        import anthropic  # noqa: PLC0415 - heavy, imported on first use
        import httpx2  # noqa: PLC0415 - heavy, imported on first use

        if isinstance(error.__cause__, ProviderError):
            return error.__cause__  # from the connection, where it was refused
        match error:
            case anthropic.APITimeoutError() | httpx2.TimeoutException():
                return failures.timed_out(self._config.timeout, error)
            case anthropic.APIStatusError():
                return failures.failure_of(self._report(error, request), model=request.model)
            case anthropic.AnthropicError() | httpx2.HTTPError() | httpx2.StreamError():
                return failures.disconnected(error, opened=opened)
            case httpx2.InvalidURL() | json.JSONDecodeError() | UnicodeDecodeError():
                return failures.disconnected(error, opened=opened)
            case ProviderError():
                return error
            case LookupError() | TypeError() | AttributeError() | RecursionError() if opened:
                _LOG.warning("A reply of another form", exc_info=error)
                return misshapen()
        return None

    def _failure_in(self, event: Event, request: ModelRequest) -> ProviderError:
        """The failure that an event in the middle of a stream tells of."""
        report = failures.report_of(
            event.get("error"),
            otherwise="The service reported an error.",
            secret=self._config.api_key,
            tokens=[server.token for server in request.remote],
        )
        return failures.failure_of(report, model=request.model)

    def _report(self, error: APIStatusError, request: ModelRequest) -> Report:
        return failures.report_of(
            {
                "message": error.api_message or error.message,
                "type": error.type,
                "code": error.error_code,
            },
            otherwise="The service reported an error.",
            secret=self._config.api_key,
            tokens=[server.token for server in request.remote],
            status=error.status_code if error.status_code >= 300 else None,
            headers=error.response.headers,
        )


class _Body:
    """What is sent, for as long as it may have to be sent again. The SDK keeps a request with its
    response, so that plain bytes would be held while the reply streams."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self.length = len(content)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._content

    def forget(self) -> None:
        """The service has answered."""
        self._content = b""


async def _post(client: AsyncAnthropic, body: _Body, betas: str) -> AsyncStream[Any]:
    """`messages.create` without its walks over the whole history, which cost more than all the rest of
    a request; retries, errors and headers are the SDK's all the same."""
    from anthropic import AsyncStream  # noqa: PLC0415 - heavy, imported on first use
    from anthropic.types import (  # noqa: PLC0415 - heavy, imported on first use
        Message,
        RawMessageStreamEvent,
    )

    return await client.post(
        "/v1/messages",
        cast_to=Message,
        content=body,
        # Its length is known: without this it would be sent in chunks.
        options={
            "headers": {
                "content-length": str(body.length),
                **({"anthropic-beta": betas} if betas else {}),
            }
        },
        stream=True,
        stream_cls=AsyncStream[RawMessageStreamEvent],
    )


def _events(data: EventData, chunk: bytes) -> Iterator[Event]:
    """The events that are complete with this chunk, unchecked. What is no JSON raises what `_failure`
    knows."""
    for text in data.feed(chunk):
        event = _event(text)
        if isinstance(event, dict):
            yield event


def _event(text: str) -> Any:
    """Nearly all are short and flat, and quickly read by a reader that knows no bounds."""
    length = len(text)
    if length <= _SHORTEST or (length <= _SHORT and text.count("[") + text.count("{") <= NESTING):
        try:
            return orjson.loads(text)
        except orjson.JSONDecodeError:
            pass  # `parsed_event` knows halves of characters, which services send
    return parsed_event(text)


async def _finish(stream: AsyncStream[Any], rest: AsyncIterator[bytes] | None) -> None:
    """Close the response at once; the rest of a finished one is read first, to keep its connection."""
    try:
        if rest is not None:
            async with asyncio.timeout(_DRAIN_SECONDS):
                async for _ in rest:
                    pass
    except Exception as error:  # the reply is whole: nothing that comes after it matters
        _LOG.debug("After the end of a reply: %s", failures.root_cause(error))
    finally:
        await stream.close()


# --- reading the reply ----------------------------------------------------------------------------


@dataclass(slots=True)
class _Block:
    kind: str
    name: str = ""
    input: Any = None
    signature: GrowingText = field(default_factory=GrowingText)
    data: str = ""
    content: Event = field(default_factory=dict)
    """Of what the service did by itself, as it came."""
    text: GrowingText = field(default_factory=GrowingText)
    """So far; of a call, its arguments as JSON."""
    mender: Mender = field(default_factory=Mender)
    blanker: Blanker = field(default_factory=Blanker)


class _Reply:
    """Turns the service's events into pieces. Blocks without content get no number."""

    def __init__(
        self,
        remote: Set[str] = frozenset(),
        tokens: Sequence[str] = (),
        *,
        compacts: bool = False,
    ) -> None:
        self._remote = remote
        """The MCP servers that the service was given to call; it tells of no others."""
        self._tokens = tokens
        """What it was given for them: a server may answer it back, and then the model says it, too."""
        self._compacts = compacts
        """It may summarise what it was sent."""
        self.ended = False
        self._blocks: dict[int, _Block] = {}
        self._next = 0
        self._usage = Usage()
        self._compaction: Usage | None = None
        self._cleared = (0, 0)
        """Results, and tokens of these and of thinking, that it left out of the prompt."""
        self._stop = ""
        self._detail = ""
        self._called = False
        self._held = Held()
        self._used: set[str] = set()
        """Ids of its own calls."""

    def pieces(self, event: Event) -> Iterable[Piece]:
        match event.get("type"):
            case "content_block_delta":
                return self._delta(self._blocks.get(event["index"]), event["delta"])
            case "content_block_start":
                return self._start(event["index"], event["content_block"])
            case "content_block_stop":
                return self._done(self._blocks.pop(event["index"], None))
            case "message_start":
                self._count(event["message"].get("usage"))
                return (UsageSeen(self._usage),)
            case "message_delta":
                delta = event["delta"]
                self._stop = word(delta.get("stop_reason")) or self._stop
                details = delta.get("stop_details")
                if details:
                    said = details.get("explanation") or details.get("category")
                    self._detail = Blanker(self._tokens).whole(word(said))
                self._count(event.get("usage"))
                self._edited(event.get("context_management"))
            case "message_stop":
                self.ended = True
                results, tokens = self._cleared
                done = ReplyDone(
                    self._end(),
                    self._usage + (self._compaction or Usage()),
                    self._stop,
                    self._detail,
                    compaction=self._compaction,
                    cleared_results=results,
                    cleared_tokens=tokens,
                )
                return (done,)
        return ()

    def _start(self, index: int, content: Event) -> Iterator[Piece]:
        self._held.block()
        block = self._blocks[index] = _Block(content["type"], blanker=Blanker(self._tokens))
        match block.kind:
            case "text":
                yield from self._show(block, content.get("text") or "")
            case "thinking":
                block.signature.append(self._held.text(content.get("signature") or ""))
                yield from self._show(block, content.get("thinking") or "")
            case "redacted_thinking":
                block.data = mended(self._held.text(content["data"]))
            case "tool_use":
                block.name, block.input = self._held.name(content["name"]), content.get("input")
            case kind if kind == COMPACTION and self._compacts:
                block.text.append(self._held.text(content.get("content") or ""))
                rest = {name: value for name, value in content.items() if name != "content"}
                self._held.text(json_of(rest).decode())
                block.content = rest
            case kind if kind in ELSEWHERE and self._remote:
                self._held.text(json_of(content).decode())
                block.content = content

    def _delta(self, block: _Block | None, delta: Event) -> Iterable[Piece]:
        if block is None:
            return ()
        match delta["type"]:
            case "text_delta":
                return self._show(block, delta["text"])
            case "thinking_delta":
                return self._show(block, delta["thinking"])
            case "signature_delta":
                block.signature.append(self._held.text(delta["signature"]))
            case "compaction_delta" if block.kind == COMPACTION:
                kept = self._keep(block, delta.get("content") or "")
                if sealed := delta.get("encrypted_content"):
                    block.data = mended(self._held.text(sealed))
                return kept
            case "input_json_delta":
                return self._keep(block, delta["partial_json"])
        return ()

    def _keep(self, block: _Block, text: str) -> Iterable[Piece]:
        block.text.append(self._held.text(text))
        return (Unshown(len(text)),) if text else ()

    def _show(self, block: _Block, text: str) -> Iterable[Piece]:
        text = block.mender.feed(self._held.text(text))
        return self._shown(block, block.blanker.feed(text) if self._tokens else text)

    def _shown(self, block: _Block, text: str) -> Iterable[Piece]:
        if not text:
            return ()
        block.text.append(text)
        delta = TextDelta if block.kind == "text" else ThinkingDelta
        return (delta(self._next, text),)

    def _done(self, block: _Block | None) -> Iterator[Piece]:
        """The block's last piece; blocks of kinds that were not asked for are passed over."""
        if block is None:
            return
        if block.kind == "tool_use":
            yield self._call(block)
        elif block.kind == COMPACTION:
            if (summed := self._summary(block)) is not None:
                yield summed
            return
        elif block.kind in ELSEWHERE:
            done = self._elsewhere(block)
            if done is None:
                return
            yield done
        elif block.kind == "redacted_thinking":
            yield ThinkingDone(self._next, "", redacted_data=block.data)
        elif block.kind in ("text", "thinking"):
            yield from self._show(block, block.mender.rest())
            yield from self._shown(block, block.blanker.rest())
            text = str(block.text)
            if block.blanker.found:
                block.signature = GrowingText()  # it fits those words no more
            if not text and not len(block.signature):
                return
            if block.kind == "text":
                yield TextDone(self._next, text)
            else:
                yield ThinkingDone(self._next, text, mended(str(block.signature)))
        else:
            return
        self._next += 1

    def _call(self, block: _Block) -> ToolCallDone:
        self._called = True
        arguments, invalid = parsed_arguments(str(block.text))
        if not arguments and not invalid and isinstance(block.input, dict):
            # some services send it with the start of the block
            arguments, invalid = whole_arguments(block.input)
        whole = block.blanker.whole
        return ToolCallDone(self._next, block.name, whole(arguments), whole(invalid))

    def _elsewhere(self, block: _Block) -> ElsewhereDone | None:
        """None: it tells of a server that was not given to it."""
        kind = ELSEWHERE[block.kind]
        content, invalid = whole_arguments(dict(block.content))
        server = content.get("mcp_server_name" if kind == "listing" else "server_name", "")
        if invalid:
            raise misshapen()
        if not content or (kind != "result" and server not in self._remote):
            return None
        if kind == "use":
            given, invalid = parsed_arguments(str(block.text))
            content["input"] = given if len(block.text) else content.get("input", {})
            if invalid or not isinstance(content["input"], dict):
                raise misshapen()
        uid = self._held.text(content.get("id" if kind == "use" else "tool_use_id", ""))
        if kind == "use":
            self._used.add(uid)
            self._held.name(content.get("name"))
        elif kind == "result" and uid not in self._used:
            return None
        self._used -= {uid} if kind == "result" else set()
        return ElsewhereDone(self._next, kind, uid, server, block.blanker.whole(content))

    def _summary(self, block: _Block) -> CompactionDone | None:
        """None: it could make none, or was not asked to."""
        text = mended(str(block.text))
        if not text or not self._compacts:
            return None
        content, invalid = whole_arguments(dict(block.content))
        if invalid:
            raise misshapen()
        content["content"] = text
        if block.data:
            content["encrypted_content"] = block.data
        clean = block.blanker.whole(content)
        # Words that had to be blanked fit its signature no more.
        return CompactionDone(clean["content"], content if clean == content else {})

    def _edited(self, told: Event | None) -> None:
        applied = (told or {}).get("applied_edits") or ()
        self._cleared = (
            sum(figure(edit.get("cleared_tool_uses")) for edit in applied),
            sum(figure(edit.get("cleared_input_tokens")) for edit in applied),
        )

    def _count(self, usage: Event | None) -> None:
        """Keep the highest figure of each kind: the service's counts are running totals. What its own
        summaries took is in none of them."""
        if not usage:
            return
        made = [each for each in usage.get("iterations") or () if each.get("type") == COMPACTION]
        before = self._usage
        if made:
            counts = [Usage(**{n: figure(each.get(n)) for n in asdict(Usage())}) for each in made]
            self._compaction = sum(counts, Usage())
            before = Usage()  # what it told at first was read for the summary
        self._usage = Usage(
            **{name: max(known, figure(usage.get(name))) for name, known in asdict(before).items()}
        )

    def _end(self) -> ReplyEnd:
        return ENDS.get(self._stop, "tool_use" if self._called else "end_turn")

"""Chat completions through the `openai` SDK, for OpenAI and the many servers that speak like it.

Such servers differ in what they leave out: usage, ids, numbers of calls, the reason for the end. The
SDK sends; the stream is read here, so that none of that matters. Nothing is retried.
"""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from harness.errors import ProviderError
from harness.held import Held, figure, misshapen, word
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
    Unshown,
    Usage,
)
from providers import failures
from providers.failures import Report
from providers.openai_request import request_body
from providers.sse import EventData
from providers.table import ProviderConfig
from providers.wiretext import Mender, parsed_arguments, parsed_event

if TYPE_CHECKING:
    from openai import APIStatusError, AsyncOpenAI

ENDS: Mapping[str, ReplyEnd] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "content_filter": "refusal",
}
"""Every finish reason of the SDK's type. One that it does not know counts as the end of the turn."""

_CONNECT_SECONDS = 10.0
_LOG = logging.getLogger(__name__)
_NO_KEY = "none"
"""Sent where no key is set: the SDK wants one, local servers do not look at it."""


def build(config: ProviderConfig) -> OpenAICompatible:
    return OpenAICompatible(config)


class OpenAICompatible:
    name = "openai_compatible"

    def __init__(self, config: ProviderConfig) -> None:
        self._config = config
        self._client: AsyncOpenAI | None = None

    async def stream(self, request: ModelRequest) -> AsyncIterator[Piece]:
        body = request_body(request)
        create = self._connected().chat.completions.with_streaming_response.create
        reply = _Reply()
        begun = opened = False
        failure: ProviderError | None = None
        try:
            async with create(**body) as response:
                opened = True
                events = EventData()
                async for received in response.iter_bytes():
                    for data in events.feed(received):
                        for piece in reply.pieces(self._chunk(data, request.model)):
                            begun = begun or not isinstance(piece, Unshown)
                            yield piece
                for piece in reply.rest():
                    begun = True
                    yield piece
        except Exception as error:
            failure = self._failure(error, request.model, opened=opened)
            if failure is None:
                raise
        if failure is None:
            return
        # Raised out here, free of the SDK's exception, which holds the request with its key.
        if self._config.connect is not None:
            _LOG.info("From %s: %s", self._config.base_url, failure.message[:500])
            failure = failures.without_words(failure)
        raise failures.broken_by(failure) if begun else failure

    async def aclose(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    def _connected(self) -> AsyncOpenAI:
        if self._client is None:
            import httpx2  # noqa: PLC0415 - heavy, imported on first use
            from openai import AsyncOpenAI, DefaultAsyncHttpxClient  # noqa: PLC0415 - heavy, imported on first use

            timeout = httpx2.Timeout(
                self._config.timeout, connect=min(_CONNECT_SECONDS, self._config.timeout)
            )
            if self._config.connect is None:
                # The key goes nowhere that an answer names.
                http_client: httpx2.AsyncClient = DefaultAsyncHttpxClient(
                    timeout=timeout, follow_redirects=False
                )
            else:
                http_client = self._config.connect(timeout)
            self._client = AsyncOpenAI(
                http_client=http_client,
                api_key=self._config.api_key or _NO_KEY,
                base_url=self._config.base_url,
                timeout=timeout,
                max_retries=0,
                default_headers=dict(self._config.headers),
            )
            # What the SDK reads of this process's environment goes nowhere a person's key leads.
            self._client.organization = self._client.project = None
            self._client._custom_headers = dict(self._config.headers)  # noqa: SLF001
        return self._client

    def _chunk(self, data: str, model: str) -> Mapping[str, Any]:
        """One event's content; `{}` for the end mark. An error in the stream is raised."""
        if data.strip() == "[DONE]":
            return {}
        chunk = parsed_event(data)
        if not isinstance(chunk, dict):
            raise failures.malformed(data)
        if chunk.get("error"):
            raise failures.failure_of(self._report(chunk["error"], ""), model=model)
        return chunk

    def _failure(self, error: Exception, model: str, *, opened: bool) -> ProviderError | None:
        """The service's failure in our terms; None when the fault is ours."""
        import httpx2  # noqa: PLC0415 - heavy, imported on first use
        import openai  # noqa: PLC0415 - heavy, imported on first use

        if isinstance(error.__cause__, ProviderError):
            return error.__cause__  # from the connection, where it was refused
        match error:
            case ProviderError():
                return error
            case openai.APITimeoutError() | httpx2.TimeoutException():
                return failures.timed_out(self._config.timeout, error)
            case openai.APIStatusError():
                return failures.failure_of(self._status_report(error), model=model)
            case openai.OpenAIError() | httpx2.HTTPError() | httpx2.StreamError():
                return failures.disconnected(error, opened=opened)
            case httpx2.InvalidURL() | json.JSONDecodeError():
                return failures.disconnected(error, opened=opened)
            case LookupError() | TypeError() | AttributeError() | RecursionError() if opened:
                _LOG.warning("A reply of another form", exc_info=error)
                return misshapen()
        return None

    def _status_report(self, error: APIStatusError) -> Report:
        return self._report(error.body, error.message, error.status_code, error.response.headers)

    def _report(
        self,
        body: object,
        text: str,
        status: int | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Report:
        """What an error's body says: an object in most servers, a plain text in some."""
        nested = body.get("error") if isinstance(body, dict) else None
        return failures.report_of(
            nested if isinstance(nested, dict | str) else body,
            otherwise=text or "The service reported an error.",
            secret=self._config.api_key,
            status=status,
            headers=headers,
        )


# --- reading the reply ----------------------------------------------------------------------------


@dataclass(slots=True)
class _Call:
    id: str
    name: str
    pieces: list[str] = field(default_factory=list)


class _Reply:
    """Turns chunks into pieces. Calls are given out at the end, since their pieces may be mixed."""

    def __init__(self) -> None:
        self._next = 0
        self._open: type[TextDelta] | type[ThinkingDelta] | None = None
        self._texts: list[str] = []
        self._mender = Mender()
        self._calls: dict[int, _Call] = {}
        self._last = -1
        self._finish = ""
        self._refusal: list[str] = []
        self._finished = False
        self._usage = Usage()
        self._held = Held()

    def pieces(self, chunk: Mapping[str, Any]) -> Iterator[Piece]:
        if not chunk:
            self._finished = True
            return
        if chunk.get("usage"):
            self._count(chunk["usage"])
        choices = chunk.get("choices") or []
        if not choices:
            return
        choice = choices[0]
        delta = choice.get("delta") or {}
        thought = delta.get("reasoning_content") or delta.get("reasoning")
        if isinstance(thought, str):
            yield from self._show(ThinkingDelta, thought)
        for said in (delta.get("content"), delta.get("refusal")):
            if isinstance(said, str):
                yield from self._show(TextDelta, said)
        if delta.get("refusal"):
            self._refusal.append(delta["refusal"])
        for call in delta.get("tool_calls") or []:
            yield from self._add(call)
        if choice.get("finish_reason"):
            self._finish = word(choice["finish_reason"])
            self._finished = True

    def rest(self) -> Iterator[Piece]:
        """What is only known when the stream is over; raises `BrokenStream` if it is not complete."""
        if not self._finished:
            raise failures.ended_early()
        yield from self._close()
        for _, call in sorted(self._calls.items()):
            arguments, invalid = parsed_arguments("".join(call.pieces))
            yield ToolCallDone(self._next, call.name, arguments, invalid)
            self._next += 1
        yield ReplyDone(self._end(), self._usage, self._finish, word("".join(self._refusal)))

    def _show(self, kind: type[TextDelta] | type[ThinkingDelta], text: str) -> Iterator[Piece]:
        if self._open is not None and self._open is not kind and text:
            yield from self._close()
        text = self._mender.feed(self._held.text(text))
        if text:
            if self._open is None:
                self._held.block()
            self._open = kind
            self._texts.append(text)
            yield kind(self._next, text)

    def _close(self) -> Iterator[Piece]:
        """End the open block, if there is one."""
        kind = self._open or TextDelta
        yield from self._show(kind, self._mender.rest())
        if self._open is None:
            return
        text = "".join(self._texts)
        yield (TextDone if kind is TextDelta else ThinkingDone)(self._next, text)
        self._open = None
        self._texts = []
        self._next += 1

    def _add(self, delta: Mapping[str, Any]) -> Iterator[Piece]:
        """Put a piece to its call: by number where there is one, else by id, else to the last."""
        function = delta.get("function") or {}
        call_id, name = delta.get("id") or "", function.get("name") or ""
        number = delta.get("index")
        if not isinstance(number, int):
            number = self._last + 1 if call_id or name else self._last
        known = self._calls.get(number)
        if known and call_id and known.id and call_id != known.id:
            number, known = max(self._calls) + 1, None  # some servers number every call 0
        if known is None:
            self._held.block()
            known = _Call(self._held.text(call_id), self._held.name(name))
            self._calls[max(number, 0)] = known
        elif name and not known.name:
            known.name = self._held.name(name)
        self._last = number
        arguments = function.get("arguments")
        if isinstance(arguments, dict):  # some servers send the object itself
            arguments = json.dumps(arguments)
        known.pieces.append(self._held.text(arguments or ""))
        if arguments:
            yield Unshown(len(arguments))

    def _count(self, usage: Mapping[str, Any]) -> None:
        details = usage.get("prompt_tokens_details") or {}
        cached = figure(details.get("cached_tokens"))
        prompt, output = figure(usage.get("prompt_tokens")), figure(usage.get("completion_tokens"))
        if prompt:
            # What was thought, some services count in the sum alone.
            output = max(output, figure(usage.get("total_tokens")) - prompt)
        self._usage = Usage(
            input_tokens=max(prompt - cached, 0),
            output_tokens=output,
            cache_read_input_tokens=cached,
        )

    def _end(self) -> ReplyEnd:
        end = ENDS.get(self._finish, "end_turn")
        if self._refusal:
            return "refusal"
        return "tool_use" if self._calls and end == "end_turn" else end

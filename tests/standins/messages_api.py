"""A loopback stand-in for model services: the Messages API and OpenAI's chat completions.

    async with MessagesApi([reply("Hello", chunk=2), RateLimited("slow down", retry_after=1)]) as api:
        provider = build(ProviderConfig("anthropic", "key", api.base_url))

It plays the scripts of `providers.scripted` over real sockets, refuses what the services
refuse, and fails as they fail. As a process it lets a person try the SDK's path without a key:
`python -m tests.standins.messages_api --port 8788 --demo`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Mapping
from types import TracebackType
from typing import Any, NoReturn, Self

from harness.errors import BadCredentials, BrokenStream, ProviderTimedOut, ProviderUnreachable
from harness.messages import ModelRequest
from providers import demo
from providers.scripted import (
    Call,
    Fail,
    Hold,
    Prompter,
    Reply,
    Say,
    Script,
    Stretch,
    Think,
    chunks,
)
from tests.standins.anthropic_rules import Refused
from tests.standins.anthropic_wire import AnthropicDialect
from tests.standins.http import HOST, CutConnection, Exchange, HttpRequest, HttpServer
from tests.standins.openai_wire import OpenAIDialect
from tests.standins.wire import Dialect, HttpFault, Trouble, trouble_of

_DIALECTS: Mapping[str, type[AnthropicDialect] | type[OpenAIDialect]] = {
    "/v1/messages": AnthropicDialect,
    "/v1/chat/completions": OpenAIDialect,
}


class MessagesApi:
    """Serves `script` at `base_url` until closed.

    Errors in the script become the status, event or broken connection by which a service reports
    them; `ProviderTimedOut` becomes silence, `HttpFault` exactly what it says. `bodies` and `headers`
    hold what was sent, `requests` the same in our terms, `refusals` why requests were turned away.
    """

    def __init__(
        self, script: Script, *, api_key: str = "", port: int = 0, fragment: int = 0
    ) -> None:
        self._prompter = Prompter(script)
        self._api_key = api_key
        self._http = HttpServer(self._handle, port=port, fragment=fragment)
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[Mapping[str, str]] = []
        self.refusals: list[str] = []

    async def __aenter__(self) -> Self:
        await self._http.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._http.stop()

    @property
    def base_url(self) -> str:
        """For the `anthropic` SDK; the `openai` SDK wants `/v1` behind it."""
        return f"http://{HOST}:{self._http.port}"

    @property
    def requests(self) -> list[ModelRequest]:
        return self._prompter.requests

    @property
    def closed_early(self) -> int:
        """How many replies were cut off by their client."""
        return self._http.closed_early

    @property
    def connections(self) -> int:
        return self._http.connections

    async def serve_forever(self) -> None:
        await self._http.serve_forever()

    # --- one request ------------------------------------------------------------------------------

    async def _handle(self, request: HttpRequest, exchange: Exchange) -> None:
        dialect_class = _DIALECTS.get(request.path)
        if dialect_class is None or request.method != "POST":
            await exchange.answer(404, {"error": {"message": "Not found"}})
            return
        self.headers.append(request.headers)
        dialect = dialect_class(len(self.headers))
        try:
            self._check_key(request.headers)
            body = _json(request.body)
            dialect.check(body, request.headers.get("anthropic-beta", ""))
        except Refused as refusal:
            self.refusals.append(str(refusal))
            trouble = Trouble(400, "invalid_request_error", str(refusal))
        except BadCredentials as error:
            trouble = trouble_of(error)
        else:
            self.bodies.append(body)
            await self._reply(dialect, dialect.parse(body), exchange)
            return
        await exchange.answer(trouble.status, dialect.error_body(trouble))

    def _check_key(self, headers: Mapping[str, str]) -> None:
        given = headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ")
        if not given or (self._api_key and given != self._api_key):
            # Some services quote the key they refuse; whoever reads this must not pass it on.
            raise BadCredentials(f"invalid x-api-key: {given}")

    async def _reply(self, dialect: Dialect, request: ModelRequest, exchange: Exchange) -> None:
        try:
            answer = self._prompter.next(request)
        except Exception as error:
            answer = error
        if isinstance(answer, HttpFault):
            await exchange.answer(answer.status, answer.body, answer.headers)
        elif isinstance(answer, ProviderTimedOut):
            await _stay_silent()
        elif isinstance(answer, ProviderUnreachable | BrokenStream):
            raise CutConnection
        elif isinstance(answer, BaseException):
            trouble = trouble_of(answer)
            await exchange.answer(trouble.status, dialect.error_body(trouble), trouble.headers)
        else:
            await _Performance(dialect, answer, exchange).run()


class _Performance:
    """Writes one reply as events, with its delays, holds and breaks."""

    def __init__(self, dialect: Dialect, reply: Reply, exchange: Exchange) -> None:
        self._dialect = dialect
        self._reply = reply
        self._exchange = exchange

    async def run(self) -> None:
        dialect, exchange = self._dialect, self._exchange
        exchange.start_stream({})
        await exchange.send(dialect.opening(self._reply))
        try:
            for part in self._reply.parts:
                match part:
                    case Hold():
                        await self._pause(part)
                    case Fail():
                        await self._fail(part)
                    case Call():
                        await exchange.send(dialect.call(part, self._reply.chunk))
                    case Think() if part.redacted_data:
                        await exchange.send(dialect.redacted(part))
                    case Say():
                        await self._block("text", part, part.stretches)
                    case Think():
                        await self._block("thinking", part, part.stretches)
        except _Ended:
            pass
        else:
            await exchange.send(dialect.closing(self._reply))
        await exchange.finish()

    async def _block(self, kind: str, part: object, stretches: tuple[Stretch, ...]) -> None:
        exchange, dialect = self._exchange, self._dialect
        await exchange.send(dialect.block_start(kind))
        for stretch in stretches:
            match stretch:
                case Hold():
                    await self._pause(stretch)
                case Fail():
                    await self._fail(stretch)
                case _:
                    for text in chunks(stretch, self._reply.chunk):
                        if self._reply.delay:
                            await exchange.flush()
                            await asyncio.sleep(self._reply.delay)
                        await exchange.send(dialect.delta(kind, text))
        await exchange.send(dialect.block_stop(kind, part))

    async def _pause(self, hold: Hold) -> None:
        await self._exchange.flush()
        await hold.pass_through()

    async def _fail(self, fail: Fail) -> NoReturn:
        await self._exchange.flush()
        if isinstance(fail.error, ProviderTimedOut):
            await _stay_silent()
        if isinstance(fail.error, ProviderUnreachable | BrokenStream):
            raise CutConnection
        await self._exchange.send(self._dialect.error_event(trouble_of(fail.error)))
        raise _Ended


class _Ended(Exception):
    """The reply ended with an error event."""


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        raise Refused("The request body is not valid JSON") from None


async def _stay_silent() -> NoReturn:
    """Until the client gives up, which cancels the answer."""
    await asyncio.Event().wait()
    raise AssertionError("nobody sets this event")


async def _serve(script: Script, port: int) -> None:
    async with MessagesApi(script, port=port) as api:
        sys.stdout.write(f"Messages API on {api.base_url}, chat completions under /v1\n")
        sys.stdout.flush()
        await api.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.standins.messages_api")
    parser.add_argument("--port", type=int, default=8788)
    parser.add_argument("--demo", action="store_true", help="answer as the demo provider does")
    options = parser.parse_args()
    if not options.demo:
        parser.error("a script can only be given in Python; on the command line use --demo")
    try:
        asyncio.run(_serve(demo.answer, options.port))
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()

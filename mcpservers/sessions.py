"""Sessions with MCP servers: opened when a call needs one, closed when idle, of one conversation each.

Speaks the protocol by the official client, over connections that `net` judges, or with a program in a
sandbox. It knows no tables: what a server said is handed to whoever opened the session. A session is entered
and left in a task of its own, as the client wants it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, TypeVar

import httpx2
from django.conf import settings
from mcp import Client
from mcp.client._transport import Transport
from mcp.client.session import MessageHandlerFnT
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    ElicitRequestParams,
    ElicitResult,
    EmbeddedResource,
    GetPromptResult,
    Implementation,
    InputRequiredResult,
    Prompt,
    ReadResourceResult,
    Resource,
    TextContent,
    ToolListChangedNotification,
)
from pydantic import TypeAdapter, ValidationError

from harness.errors import AddressRefused, AgentError, ToolError
from jobs.engine import engine
from sandbox.contract import Program
from tools_app.web.credentials import HIDDEN

from .completing import completing
from .listing import CONNECT_SECONDS, Described, described
from .offers import MOST, Offers, offers_in
from .programs import Started
from .stdio import spoken_to
from .taskcalls import TaskBegun, Tasks, follow, give, is_of_task, state_of
from .transport import Answered, Challenge, GiveUp, Refused, client_for

T = TypeVar("T")

MOST_PAGES = 20
OFFERS_SECONDS = 5.0
"""In which it says what it has beside tools; the tools do not wait longer."""
LEAST_SECRET = 8
"""Characters of a header's value that is looked for; shorter ones stand in any text."""
CLOSING_SECONDS = 5.0
"""In which a session ends: a server may never answer that it has heard of its end."""
LAST_ERRORS = 2_000
"""Characters of what a program wrote into its errors that are told."""
BACKOFF = (2.0, 5.0, 15.0, 60.0)
"""Seconds in which one that could not be reached is not tried again, each time more."""

_UNKNOWN = frozenset({400, 404, 405})
"""What servers answer that know no messages at their address: those of before 2025-03-26 wait for a stream
to be opened there."""

_Answer: TypeAdapter[CallToolResult | InputRequiredResult | TaskBegun] = TypeAdapter(
    TaskBegun | CallToolResult | InputRequiredResult
)


class Unreachable(Exception):
    """No session, or none any more; the words are for people and models."""

    def __init__(self, words: str, challenge: Challenge | None = None, *, errors: str = "") -> None:
        super().__init__(words)
        self.challenge = challenge
        """What the server wants to see, if that is why. Nothing was done there, but for `task`."""
        self.task = ""
        """With what the call goes on (`Sessions.call`) where a task was begun for it; empty: none was."""
        self.errors = errors
        """The last that a program wrote into its errors: of the conversation's, and nobody else's."""


@dataclass(frozen=True, slots=True)
class Where:
    """One server for one conversation."""

    server_id: int
    conversation: str
    url: str
    """Empty: it is a program."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    program: Started | None = None

    @property
    def key(self) -> str:
        """Another credential is another session, and so is another sandbox."""
        marks = [f"{name}={value}" for name, value in sorted(self._secrets().items())]
        if self.program is not None:
            marks += [self.program.rules, *self.program.argv]
        mark = sha256("\n".join([self.url, *marks]).encode()).hexdigest()
        return f"{self.server_id} {self.conversation} {mark}"

    def authorised_by(self, token: str) -> Where:
        others = {
            name: value for name, value in self.headers.items() if name.lower() != "authorization"
        }
        return replace(self, headers={**others, "Authorization": f"Bearer {token}"})

    def without_secrets(self, text: str) -> str:
        """A text of the server's, which may repeat what it was sent."""
        for value in self._secrets().values():
            for secret in (value, value.rpartition(" ")[2]):
                if len(secret) >= LEAST_SECRET:
                    text = text.replace(secret, HIDDEN)
        return text

    def _secrets(self) -> Mapping[str, str]:
        return self.headers if self.program is None else self.program.environment


@dataclass(frozen=True, slots=True)
class Listing:
    tools: tuple[Described, ...]
    protocol: str
    software: str
    offers: Offers = Offers()  # noqa: RUF009 - frozen


OnListing = Callable[[Listing], Awaitable[None]]


OnProgram = Callable[[Program], None]


@asynccontextmanager
async def connected(
    where: Where,
    on_change: Callable[[], None],
    give_up: GiveUp,
    refused: Refused,
    on_program: OnProgram,
) -> AsyncIterator[Client]:
    """A session for as long as the block lasts. `give_up` is told why it is not worth going on, `refused`
    what the server wants to see, `on_program` what was started. Raises whatever went wrong, often in
    groups."""

    async def hear(message: object) -> None:
        if isinstance(message, ToolListChangedNotification):
            on_change()

    posted: list[int] = []

    def answered(method: str, status: int) -> None:
        if method == "POST":
            posted.append(status)

    async with AsyncExitStack() as stack:
        ways = _Ways(where, give_up, refused, on_program)
        try:
            client = await stack.enter_async_context(_client_over(ways.newest(answered), hear))
        except Exception as problem:
            if not posted or not _UNKNOWN.issuperset(posted):
                raise
            try:
                client = await stack.enter_async_context(_client_over(ways.legacy(), hear))
            except Exception:
                raise problem from None
        yield client


@asynccontextmanager
async def _client_over(
    way: AbstractAsyncContextManager[Transport], hear: MessageHandlerFnT
) -> AsyncIterator[Client]:
    async with way as transport:
        client = Client(
            completing(transport),
            client_info=Implementation(name="Agentsite", version="1"),
            message_handler=hear,
            elicitation_callback=_nobody_is_there,
            cache=None,
            extensions=[Tasks()],
        )
        async with client:
            yield client


@dataclass(frozen=True, slots=True)
class _Ways:
    """How a server is spoken to."""

    where: Where
    give_up: GiveUp
    refused: Refused
    on_program: OnProgram

    @asynccontextmanager
    async def newest(self, answered: Answered) -> AsyncIterator[Transport]:
        most, most_parts = _mosts()
        if self.where.program is not None:
            async with self.where.program.opened() as program:
                self.on_program(program)
                yield spoken_to(
                    program, most_bytes=most, most_parts=most_parts, give_up=self.give_up
                )
            return
        async with self._http(answered) as http:
            yield streamable_http_client(self.where.url, http_client=http, max_sse_event_size=most)

    @asynccontextmanager
    async def legacy(self) -> AsyncIterator[Transport]:
        """By one stream on which all answers come (HTTP with SSE, 2024-11-05): the whole of it is bounded as
        one answer is, and whoever wants more begins anew."""

        def answered(method: str, status: int) -> None:
            # Nothing would come on the stream for a message that was refused.
            if method == "POST" and status >= 400:
                self.give_up(f"It answered {status}.")

        def http(*_given: object, **_named: object) -> httpx2.AsyncClient:
            return self._http(answered)

        yield sse_client(self.where.url, httpx_client_factory=http)

    def _http(self, answered: Answered) -> httpx2.AsyncClient:
        most, most_parts = _mosts()
        http = client_for(
            timeout=httpx2.Timeout(CONNECT_SECONDS, read=600.0),
            most_bytes=most,
            most_parts=most_parts,
            give_up=self.give_up,
            refused=self.refused,
            answered=answered,
        )
        http.headers.update(self.where.headers)
        return http


def _mosts() -> tuple[int, int]:
    """Bytes and parts of one answer."""
    return settings.AGENTSITE_MCP_ANSWER_BYTES, settings.AGENTSITE_MCP_ANSWER_PARTS


async def _nobody_is_there(context: Any, params: ElicitRequestParams) -> ElicitResult:
    """To a question that comes while a call is under way, as before 2026-07-28: what rests for a person keeps
    no connection open. Later ones end the call, and are asked (`asking`)."""
    return ElicitResult(action="cancel")


async def listing_of(client: Client) -> Listing:
    """All its tools, up to the limits."""
    found: list[Described] = []
    cursor: str | None = None
    for _page in range(MOST_PAGES):
        page = await client.list_tools(cursor=cursor)
        found += map(described, page.tools)
        cursor = page.next_cursor
        if cursor is None or len(found) > settings.AGENTSITE_MCP_TOOLS_PER_SERVER:
            break
    info = client.server_info
    software = f"{info.name} {info.version}" if info else ""
    return Listing(tuple(found), client.protocol_version, software, await _offers_of(client))


async def _offers_of(client: Client) -> Offers:
    """What it has beside tools. One that says so and does not tell, or not in time, keeps its tools."""
    resources: list[Resource] = []
    prompts: list[Prompt] = []
    able = client.server_capabilities
    cursor: str | None = None
    try:
        async with asyncio.timeout(OFFERS_SECONDS):
            for _page in range(MOST_PAGES if able.resources else 0):
                some = await client.list_resources(cursor=cursor)
                resources += some.resources
                cursor = some.next_cursor
                if cursor is None or len(resources) > MOST:
                    break
            cursor = None
            for _page in range(MOST_PAGES if able.prompts else 0):
                more = await client.list_prompts(cursor=cursor)
                prompts += more.prompts
                cursor = more.next_cursor
                if cursor is None or len(prompts) > MOST:
                    break
    except (MCPError, ValidationError, TimeoutError):
        pass
    return offers_in(resources, prompts)


async def read_once(where: Where, uri: str, seconds: float) -> CallToolResult:
    """What a resource holds, as a tool would answer it, over a session of its own. Raises Unreachable."""

    async def read(client: Client) -> CallToolResult:
        held: ReadResourceResult = await client.read_resource(uri)
        parts = [EmbeddedResource(type="resource", resource=each) for each in held.contents]
        return CallToolResult(content=[*parts])

    return await _once(where, read, seconds)


async def prompt_once(
    where: Where, name: str, arguments: Mapping[str, str], seconds: float
) -> CallToolResult:
    """The same of a prompt: its messages in their order, each said whose it is if that is not the person."""

    async def ask(client: Client) -> CallToolResult:
        held: GetPromptResult = await client.get_prompt(name, dict(arguments))
        content: list[Any] = []
        for message in held.messages:
            if message.role != "user":
                content.append(TextContent(type="text", text=f"[{message.role}]"))
            content.append(message.content)
        return CallToolResult(content=content)

    return await _once(where, ask, seconds)


async def look_at(where: Where) -> Listing:
    """What a server says now, over a session of its own. Raises Unreachable."""
    return await _once(where, listing_of, CONNECT_SECONDS)


async def _once(where: Where, work: Callable[[Client], Awaitable[T]], seconds: float) -> T:
    told: list[str] = []
    wanted: list[Challenge] = []
    started: list[Program] = []
    try:
        async with asyncio.timeout(seconds):
            async with connected(
                where, lambda: None, told.append, wanted.append, started.append
            ) as client:
                return await work(client)
    except Exception as problem:
        words = told[0] if told else words_of(problem, where)
        errors = errors_of(started[0], where) if started else ""
        raise _unreachable(words, wanted[0] if wanted else None, errors) from None


@dataclass(slots=True, eq=False)
class Session:
    ready: asyncio.Future[Client]
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None
    used: float = 0.0
    in_use: int = 0
    listed: float = 0.0
    stale: bool = False
    """It said that its tools changed."""
    listing: Listing | None = None
    fault: str = ""
    """Why it was given up."""
    challenge: Challenge | None = None
    """What the server wanted to see when it refused us."""
    program: Program | None = None
    """What was started for it."""

    def began(self, program: Program) -> None:
        self.program = program

    def errors(self, where: Where) -> str:
        return errors_of(self.program, where) if self.program is not None else ""

    def refused(self, challenge: Challenge) -> None:
        self.challenge = challenge

    def give_up(self, words: str) -> None:
        self.fault = self.fault or words
        self.stop.set()


class Sessions:
    """Those of the process, by event loop: none outlives its own."""

    def __init__(self) -> None:
        self._open: dict[tuple[int, str], Session] = {}
        self._failed: dict[str, tuple[float, int, Unreachable]] = {}
        """Until when one is not tried again, after how many failures, and why."""

    async def call(
        self,
        where: Where,
        name: str,
        arguments: Mapping[str, Any],
        *,
        seconds: float,
        on_listing: OnListing,
        responses: Mapping[str, Any] | None = None,
        state: str = "",
        told: Mapping[str, str] | None = None,
    ) -> CallToolResult | InputRequiredResult:
        """Have a tool do its work. `responses` and `state` answer what it asked before; a `state` of a task
        alone (`Unreachable.task`) follows that to its end. `told` goes along beside the arguments (`_meta`).
        Raises Unreachable, TimeoutError, and what `on_listing` raises, which is told what tools there are
        before anything is called."""
        session = await self._session(where)
        session.in_use += 1
        task = ""
        try:
            client = session.ready.result()
            await self._told(session, client, on_listing)
            async with asyncio.timeout(seconds):
                if is_of_task(state):
                    if responses is not None:
                        await give(client, state, responses)
                    task = state
                    return await follow(client, task)
                given: dict[str, Any] = {"name": name, "arguments": dict(arguments)}
                if responses is not None:
                    given |= {"input_responses": dict(responses), "request_state": state or None}
                if told:
                    given["_meta"] = dict(told)
                params = CallToolRequestParams.model_validate(given)
                answer = await client.session.send_request(CallToolRequest(params=params), _Answer)
                if not isinstance(answer, TaskBegun):
                    return answer
                task = state_of(answer)
                return await follow(client, task, answer.poll_interval_ms)
        except (TimeoutError, AgentError, asyncio.CancelledError):
            raise
        except Exception as problem:
            session.stop.set()
            words = session.fault or words_of(problem, where)
            broken = _unreachable(words, session.challenge, session.errors(where))
            broken.task = task
            raise broken from None
        finally:
            session.in_use -= 1
            session.used = time.monotonic()

    async def close(self) -> None:
        """Those of this event loop, which ends."""
        loop = id(asyncio.get_running_loop())
        tasks = []
        for (owner, _key), session in list(self._open.items()):
            if owner == loop and session.task is not None:
                session.stop.set()
                tasks.append(session.task)
        if tasks:
            _done, left = await asyncio.wait(tasks, timeout=2.0)
            for task in left:
                task.cancel()

    async def _session(self, where: Where) -> Session:
        slot = (id(asyncio.get_running_loop()), where.key)
        until, failures, before = self._failed.get(where.key, (0.0, 0, None))
        if before is not None and time.monotonic() < until:
            raise Unreachable(str(before), before.challenge, errors=before.errors)
        session = self._open.get(slot)
        if session is None or session.stop.is_set():
            session = Session(asyncio.get_running_loop().create_future(), used=time.monotonic())
            self._open[slot] = session
            session.task = asyncio.create_task(self._own(slot, session, where))
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await asyncio.shield(session.ready)
        except (TimeoutError, Unreachable) as problem:
            if session.task is not None:
                session.task.cancel()
            told = str(problem) or f"It did not answer within {CONNECT_SECONDS:g} seconds."
            if len(self._failed) > 1_000:
                self._failed.clear()
            wait = BACKOFF[min(failures, len(BACKOFF) - 1)]
            errors = session.errors(where)
            why = Unreachable(told, getattr(problem, "challenge", None), errors=errors)
            self._failed[where.key] = (time.monotonic() + wait, failures + 1, why)
            raise Unreachable(told, why.challenge, errors=errors) from None
        self._failed.pop(where.key, None)
        return session

    async def _own(self, slot: tuple[int, str], session: Session, where: Where) -> None:
        def changed() -> None:
            session.stale = True

        try:
            async with (
                asyncio.timeout(None) as end,
                connected(
                    where, changed, session.give_up, session.refused, session.began
                ) as client,
            ):
                try:
                    session.listing = await listing_of(client)
                    session.listed = time.monotonic()
                    if not session.ready.done():
                        session.ready.set_result(client)
                    await self._until_idle(session)
                finally:
                    end.reschedule(asyncio.get_running_loop().time() + CLOSING_SECONDS)
        except Exception as problem:
            if not session.ready.done():
                words = session.fault or words_of(problem, where)
                session.ready.set_exception(_unreachable(words, session.challenge))
                session.ready.exception()  # somebody may have given up
        finally:
            session.stop.set()
            if not session.ready.done():
                session.ready.set_exception(Unreachable("The connection was given up."))
                session.ready.exception()
            if self._open.get(slot) is session:
                del self._open[slot]

    async def _until_idle(self, session: Session) -> None:
        idle: float = settings.AGENTSITE_MCP_IDLE_SECONDS
        while True:
            left = max(session.used + idle - time.monotonic(), 0.05)
            try:
                async with asyncio.timeout(left):
                    await session.stop.wait()
                return
            except TimeoutError:
                if not session.in_use and time.monotonic() - session.used >= idle:
                    return

    async def _told(self, session: Session, client: Client, on_listing: OnListing) -> None:
        again: float = settings.AGENTSITE_MCP_RELIST_SECONDS
        if session.stale or time.monotonic() - session.listed > again:
            session.stale = False
            async with asyncio.timeout(CONNECT_SECONDS):
                session.listing = await listing_of(client)
            session.listed = time.monotonic()
        if session.listing is not None:
            await on_listing(session.listing)
            session.listing = None


def _unreachable(words: str, challenge: Challenge | None, errors: str = "") -> Unreachable:
    if challenge is not None:
        words = f"It wants other credentials ({challenge.status})."
        if challenge.more:
            words = "It wants permissions that the credentials do not have (403)."
    return Unreachable(words, challenge, errors=errors)


def errors_of(program: Program, where: Where) -> str:
    """The last that it wrote there."""
    return where.without_secrets(program.last_errors().strip())[-LAST_ERRORS:]


def words_of(problem: BaseException, where: Where) -> str:
    """The first of what went wrong, in a sentence."""
    while isinstance(problem, BaseExceptionGroup):
        problem = problem.exceptions[0]
    if isinstance(problem, TimeoutError):
        return f"It did not answer within {CONNECT_SECONDS:g} seconds."
    if isinstance(problem, AddressRefused):
        return problem.words
    if isinstance(problem, ToolError):
        return problem.message
    if isinstance(problem, httpx2.HTTPStatusError):
        code = problem.response.status_code
        if code in {401, 403}:
            return f"It wants other credentials ({code})."
        return f"It answered {code}."
    text = where.without_secrets(" ".join(str(problem).split()))[:300]
    return text or type(problem).__name__


sessions = Sessions()
"""The process's own."""
engine.at_end(sessions.close)

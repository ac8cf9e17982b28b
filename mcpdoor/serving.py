"""The parts (`parts`) as one MCP server: for one person (stdio), or for whoever the request at hand is of.

Stateless, so both eras of the protocol are answered alike and no process has to remember anybody.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, lru_cache
from hashlib import sha256
from typing import Any

import mcp_types as types
from django.conf import settings
from mcp.server.caching import CacheHint
from mcp.server.context import CallNext, HandlerResult
from mcp.server.lowlevel import Server
from mcp.server.request_state import (
    AESGCMRequestStateCodec,
    RequestStateBoundary,
    RequestStateSecurity,
)
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from reading.foreignjson import without_nul

from .agents import Agents
from .library import Library
from .listening import Lists, listen_method
from .parts import Call, Context, Part, Tool, offer, offered
from .taskwire import EXTENSION, task_methods
from .tools import Principal

logger = logging.getLogger(__name__)

NAME = "Agentsite"
STATE_SECONDS = 24 * 60 * 60.0
"""How long a client may take to bring the answers to what it was asked."""
_LISTS = CacheHint(ttl_ms=60_000, scope="private")
"""What a token is shown depends on it alone, and that seldom changes."""

offer(Agents())
offer(Library())


_speaker: ContextVar[Principal] = ContextVar("mcp_speaker")


@contextmanager
def speaking_for(who: Principal) -> Iterator[None]:
    """What the server for all does meanwhile, here and in tasks that begin here, it does for her."""
    before = _speaker.set(who)
    try:
        yield
    finally:
        _speaker.reset(before)


def server_for(who: Principal) -> Server[Any]:
    return _server(lambda: who)


@cache
def server_for_all() -> Server[Any]:
    """For whom it is spoken, `speaking_for` says, and it serves nobody without. It is made once: making one
    takes as long as answering a small call."""
    return _server(_speaker.get)


def _server(speaker: Callable[[], Principal]) -> Server[Any]:
    parts = offered()

    async def list_tools(_context: Context, params: Any) -> types.ListToolsResult:
        _require_first(params)
        tools = [each.described for each in _tools(parts, speaker()).values()]
        return types.ListToolsResult(tools=tools)

    async def call_tool(context: Context, params: types.CallToolRequestParams) -> Any:
        call = Call(speaker(), context, params)
        found = _tools(parts, speaker()).get(params.name)
        if found is not None:
            return await found.call(call)
        for part in parts:
            if (answer := await part.unlisted(call)) is not None:
                return answer
        raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name[:100]}")

    async def list_resources(
        _context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        cursor = params.cursor if params is not None else None
        pages = [
            page for part in parts if (page := await part.resources(speaker(), cursor)) is not None
        ]
        if not pages:
            raise _no_cursor()
        following = [page.following for page in pages if page.following is not None]
        return types.ListResourcesResult(
            resources=[each for page in pages for each in page.resources],
            next_cursor=following[0] if following else None,
        )

    async def list_templates(_context: Context, params: Any) -> types.ListResourceTemplatesResult:
        _require_first(params)
        return types.ListResourceTemplatesResult(
            resource_templates=[each for part in parts for each in part.templates(speaker())]
        )

    async def read_resource(
        context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(params.uri)
        for part in parts:
            if (held := await part.read(speaker(), uri)) is not None:
                return types.ReadResourceResult(contents=list(held))
        raise MCPError(_not_found(context), "Resource not found", {"uri": uri[:2_000]})

    async def list_prompts(_context: Context, params: Any) -> types.ListPromptsResult:
        _require_first(params)
        found: dict[str, types.Prompt] = {}
        for part in parts:
            for each in await part.prompts(speaker()):
                found.setdefault(each.name, each)
        return types.ListPromptsResult(prompts=list(found.values()))

    async def get_prompt(_context: Context, params: types.GetPromptRequestParams) -> Any:
        for part in parts:
            if (said := await part.prompt(speaker(), params)) is not None:
                return said
        raise MCPError(types.INVALID_PARAMS, f"Unknown prompt: {params.name[:100]}")

    async def names(of: Lists) -> list[str]:
        match of:
            case "tools":
                return list(_tools(parts, speaker()))
            case "prompts":
                return [each.name for part in parts for each in await part.prompts(speaker())]
        pages = [await part.resources(speaker(), None) for part in parts]
        return sorted(str(each.uri) for page in pages if page for each in page.resources)

    def schema_of(name: str) -> Mapping[str, Any] | None:
        found = _tools(parts, speaker()).get(name)
        return found.described.input_schema if found is not None else None

    server: Server[Any] = Server(
        NAME,
        version="1",
        title=NAME,
        instructions="Agents of this site, to be asked and read. What they are asked goes on by itself.",
        cache_hints={
            "tools/list": _LISTS,
            "prompts/list": _LISTS,
            "resources/templates/list": _LISTS,
            "server/discover": _LISTS,
        },
        # Without it, each call is preceded by one of `list_tools`.
        get_tool_input_schema=schema_of,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
    )
    own = (task_methods(parts, speaker), listen_method(parts, speaker, names))
    for methods in (*own, *(part.methods() for part in parts)):
        for name, method in methods.items():
            server.add_request_handler(name, method.params, method.handle)
    server.extensions[EXTENSION] = {}
    server.middleware += [_unbroken, _storable, _sealed(speaker)]
    return server


async def _unbroken(ctx: Context, call_next: CallNext) -> HandlerResult:
    """What breaks here is nobody's business there, by whichever revision."""
    try:
        return await call_next(ctx)
    except (MCPError, ValidationError):
        raise
    except Exception:
        logger.exception("A request of an MCP client failed")
        raise MCPError(types.INTERNAL_ERROR, "Internal error") from None


async def _storable(ctx: Context, call_next: CallNext) -> HandlerResult:
    """A text with a NUL character, which not every database holds or looks for, comes to no part."""
    given = dict(ctx.params or {})
    if without_nul(given) != given:
        raise MCPError(types.INVALID_PARAMS, "A text holds a NUL character; leave it out")
    return await call_next(ctx)


def _tools(parts: Sequence[Part], who: Principal) -> dict[str, Tool]:
    """By name; of two the first counts."""
    found: dict[str, Tool] = {}
    for part in parts:
        for tool in part.tools(who):
            found.setdefault(tool.described.name, tool)
    return found


def _require_first(params: types.PaginatedRequestParams | None) -> None:
    """All of such a list is one page, so no cursor of it was ever given."""
    if params is not None and params.cursor is not None:
        raise _no_cursor()


def _no_cursor() -> MCPError:
    return MCPError(types.INVALID_PARAMS, "Invalid cursor")


def _not_found(context: Context) -> int:
    """Revisions before 2026-07-28 have a code of their own for a resource that is not there."""
    modern = context.protocol_version in MODERN_PROTOCOL_VERSIONS
    return types.INVALID_PARAMS if modern else RESOURCE_NOT_FOUND


RESOURCE_NOT_FOUND = -32002


def _sealed(speaker: Callable[[], Principal]) -> RequestStateBoundary:
    """What a client keeps for us between two rounds: sealed, and good for this person, request and day."""

    def person(_context: Context) -> str:
        who = speaker()
        return f"{who.organisation.pk}:{who.user.pk}"

    return RequestStateBoundary(
        RequestStateSecurity(
            codec=_codec(settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS),
            ttl=STATE_SECONDS,
            bind_principal=person,
        ),
        default_audience=NAME,
    )


@lru_cache(maxsize=4)
def _codec(*secrets: str) -> AESGCMRequestStateCodec:
    """The first seals, all of them open."""
    keys = dict.fromkeys(sha256(f"/mcp rounds:{each}".encode()).digest() for each in secrets)
    return AESGCMRequestStateCodec(list(keys))

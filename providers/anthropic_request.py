"""A request in the Messages API's dialect: messages, tools, cache marks, thinking.

Only translation; sending it and reading the reply is done in `providers.anthropic`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import orjson

from harness.content import (
    Base64Source,
    Block,
    Document,
    FileSource,
    Image,
    PlainTextSource,
    Source,
    Text,
    UrlSource,
)
from harness.errors import BadRequest
from harness.messages import (
    Elsewhere,
    Message,
    ModelRequest,
    ModelSettings,
    Part,
    RemoteServer,
    ServiceEdits,
    Thinking,
    ToolAnswer,
    ToolCall,
    ToolSpec,
)
from harness.modelcards import ModelCard, card_for

_CACHE = {"type": "ephemeral"}
_MARKED = 2
"""User messages of a request that carry a mark."""

_THINKING_BUDGETS = {"low": 2_048, "": 8_192, "medium": 8_192, "high": 16_384}
"""Tokens of thinking per effort, for models that want a number; anything higher gets the last."""

_SMALLEST_BUDGET = 1_024
"""The API's own minimum."""

_NOTHING = {"type": "text", "text": "(no content)"}
"""Stands where a message would be empty, which the API refuses."""

KEPT_BYTES = 64_000
"""A message that takes more, as one with an image does, is translated for each request: kept, it would
take its place in memory twice."""

Json = dict[str, Any]


def request_body(request: ModelRequest, *, provider: str, caching: bool) -> Json:
    """The arguments of `messages.create`, with what the SDK has no name for under `extra_body`.

    Equal beginnings of two requests give equal beginnings here, so that the service's prompt cache
    works: nothing depends on time, order of keys or length of the history.
    """
    tools = [*map(_tool, request.tools), *map(_toolset, request.remote)]
    body = _around_messages(request, tools)
    messages = [_message(message, request.model, provider) for message in request.messages]
    body["messages"] = messages
    if caching:
        _mark_for_cache(body, messages)
    return body


def request_text(request: ModelRequest, *, provider: str, caching: bool) -> bytes:
    """The same request as it is sent, for a streamed reply. What it has in common with the one before
    is not translated again."""
    try:
        return orjson.dumps(_as_sent(_body_half_written(request, provider, caching=caching)))
    except TypeError:
        # It knows halves of characters and endless numbers.
        return json.dumps(
            _as_sent(request_body(request, provider=provider, caching=caching))
        ).encode()


def _body_half_written(request: ModelRequest, provider: str, *, caching: bool) -> Json:
    """`request_body` whose tools are JSON, and its messages up to those that the next one marks otherwise."""
    # The last one is marked.
    written_tools = map(_written_tool, request.tools[:-1])
    tools = [*written_tools, *map(_tool, request.tools[-1:]), *map(_toolset, request.remote)]
    body = _around_messages(request, tools)
    fixed = _before_marks(request.messages)
    messages = [_message(message, request.model, provider) for message in request.messages[fixed:]]
    if caching:
        _mark_for_cache(body, messages)
    written = [_written(each, request.model, provider) for each in request.messages[:fixed]]
    body["messages"] = [*written, *messages]
    return body


def _as_sent(body: Json) -> Json:
    """What `messages.create` would make of these arguments."""
    more: Json = body.get("extra_body") or {}
    arguments = {name: value for name, value in body.items() if name != "extra_body"}
    return arguments | {"stream": True} | more


def _around_messages(request: ModelRequest, tools: list[Any]) -> Json:
    body = _asked(request, tools)
    if request.edits and (edits := _edits(request.edits, body)):
        body["extra_body"] = {**body.get("extra_body", {}), "context_management": {"edits": edits}}
    return body


def _edits(wanted: ServiceEdits, body: Json) -> list[Json]:
    """The order is the API's: thinking first."""
    found: list[Json] = []
    thinks = body.get("thinking", {}).get("type") in ("enabled", "adaptive")
    if wanted.keep_thinking and thinks:
        keep = {"type": "thinking_turns", "value": wanted.keep_thinking}
        found.append({"type": "clear_thinking_20251015", "keep": keep})
    if wanted.clear_at:
        found.append(
            {
                "type": "clear_tool_uses_20250919",
                "trigger": {"type": "input_tokens", "value": wanted.clear_at},
                "keep": {"type": "tool_uses", "value": wanted.keep_results},
                # Each time costs the cached prefix once.
                "clear_at_least": {"type": "input_tokens", "value": wanted.clear_at // 8},
            }
        )
    if wanted.compact_at:
        trigger = {"type": "input_tokens", "value": wanted.compact_at}
        found.append({"type": "compact_20260112", "trigger": trigger})
    return found


def _asked(request: ModelRequest, tools: list[Any]) -> Json:
    card = card_for(request.model)
    limit = min(request.max_output_tokens, card.max_output or request.max_output_tokens)
    body: Json = {"model": request.model, "max_tokens": limit, "messages": []}
    if request.system.strip():
        body["system"] = [{"type": "text", "text": request.system}]
    if tools:
        body["tools"] = tools
        body["tool_choice"] = {"type": request.tool_choice}
    if request.remote:
        servers = list(map(_server, request.remote))
        return body | _settings(request, card, limit, {"mcp_servers": servers})
    return body | _settings(request, card, limit)


# --- tools ----------------------------------------------------------------------------------------


TRAINED = frozenset({"memory_20250818"})
"""Client tools that the service declares by a name of its own."""
FEATURES = TRAINED | {"clear_tool_uses_20250919", "clear_thinking_20251015", "compact_20260112"}
COMPACTION = "compaction"
"""The block in which the service tells a summary that it made."""


def _tool(tool: ToolSpec) -> Json:
    if tool.trained in TRAINED:
        return {"type": tool.trained, "name": tool.name}
    return {
        "name": tool.name,
        "description": tool.description,
        "input_schema": dict(tool.input_schema),
    }


def _written_tool(tool: ToolSpec) -> orjson.Fragment:
    """`_tool` as JSON, kept with the tool: hundreds may stand in every request."""
    known: orjson.Fragment | None = tool.notes.get(_NOTE)
    if known is None:
        known = tool.notes[_NOTE] = orjson.Fragment(bytes(memoryview(orjson.dumps(_tool(tool)))))
    return known


_NOTE = "anthropic tool"

REMOTE_MCP = "mcp-client-2026-09-15"
"""The beta that knows servers whose tools the service calls, and what it told of that."""


CLEARING = "context-management-2025-06-27"
COMPACTING = "compact-2026-01-12"


def betas_of(request: ModelRequest) -> str:
    """What its header has to name; empty: nothing."""
    blocks = [p.block for each in request.messages for p in each.parts if isinstance(p, Elsewhere)]
    compacted = any(block.get("type") == COMPACTION for block in blocks)
    edits = request.edits or ServiceEdits()
    named = {
        REMOTE_MCP: request.remote or any(block.get("type") != COMPACTION for block in blocks),
        CLEARING: edits.clear_at or edits.compact_at,
        COMPACTING: edits.compact_at or compacted,
    }
    return ",".join(name for name, needed in named.items() if needed)


def _server(server: RemoteServer) -> Json:
    named: Json = {"type": "url", "name": server.name, "url": server.url}
    return {**named, "authorization_token": server.token} if server.token else named


def _toolset(server: RemoteServer) -> Json:
    """No tool but these, by the words that they were released with: the server is not asked for others."""
    return {
        "type": "mcp_toolset",
        "mcp_server_name": server.name,
        "default_config": {"enabled": False},
        "configs": {tool.name: {"enabled": True} for tool in server.tools},
        "tools": list(map(_tool, server.tools)),
    }


# --- messages -------------------------------------------------------------------------------------


def _written(message: Message, model: str, provider: str) -> orjson.Fragment:
    """`_message` as JSON, kept with the message unless it is large."""
    note = f"{provider} {model}"
    known: orjson.Fragment | None = message.notes.get(note)
    if known is None:
        text = orjson.dumps(_message(message, model, provider))
        # A copy, because what orjson returns holds on to more memory than it needs.
        known = orjson.Fragment(bytes(memoryview(text)))
        if len(text) <= KEPT_BYTES:
            message.notes[note] = known
    return known


def _message(message: Message, model: str, provider: str) -> Json:
    blocks = [block for part in message.parts if (block := _block(part, model, provider))]
    return {"role": message.role, "content": blocks or [dict(_NOTHING)]}


def _block(part: Part, model: str, provider: str) -> Json | None:
    match part:
        case Thinking():
            return _thinking(part) if (part.provider, part.model) == (provider, model) else None
        case Elsewhere():
            return dict(part.block) if (part.provider, part.model) == (provider, model) else None
        case ToolCall():
            return {"type": "tool_use", "id": part.id, "name": part.name, "input": dict(part.input)}
        case ToolAnswer():
            return _answer(part, card_for(model))
        case _:
            return _content(card_for(model).shown(part))


def _thinking(part: Thinking) -> Json | None:
    if part.redacted_data:
        return {"type": "redacted_thinking", "data": part.redacted_data}
    if part.signature:
        return {"type": "thinking", "thinking": part.text, "signature": part.signature}
    return None


def _answer(part: ToolAnswer, card: ModelCard) -> Json:
    content = [block for piece in part.content if (block := _content(card.shown(piece)))]
    answer: Json = {"type": "tool_result", "tool_use_id": part.call_id}
    answer["content"] = content or [{"type": "text", "text": "(no output)"}]
    if part.is_error:
        answer["is_error"] = True
    return answer


def _content(block: Block) -> Json | None:
    match block:
        case Text():
            return {"type": "text", "text": block.text} if block.text.strip() else None
        case Image():
            return {"type": "image", "source": _source(block.source)}
        case Document():
            document: Json = {"type": "document", "source": _source(block.source)}
            if block.title:
                document["title"] = block.title
            if block.context:
                document["context"] = block.context
            return document


def _source(source: Source) -> Json:
    match source:
        case Base64Source():
            return {"type": "base64", "media_type": source.media_type, "data": source.data}
        case UrlSource():
            return {"type": "url", "url": source.url}
        case PlainTextSource():
            return {"type": "text", "media_type": "text/plain", "data": source.data}
        case FileSource():
            raise BadRequest(
                f"The file {source.file_id} was not read before the request was built.",
                hint="Attach the file again.",
            )


# --- settings -------------------------------------------------------------------------------------


def _settings(request: ModelRequest, card: ModelCard, limit: int, more: Json | None = None) -> Json:
    """Thinking, effort and sampling as far as the model takes them. What the SDK has no arguments for stands
    under `extra_body`, with `more`."""
    settings = request.settings
    body: Json = {}
    thinking = _thinking_config(request, card, limit)
    if thinking:
        body["thinking"] = thinking
    effort = card.effort(settings.effort) if settings.effort else None
    off = thinking is not None and thinking["type"] in ("disabled", "between_tools")
    if off and effort in ("xhigh", "max"):
        effort = card.effort("high")  # the API takes no more than that without thinking
    if effort:
        body["output_config"] = {"effort": effort}
    if thinking is None or off:
        sampling = _sampling(settings, card)
        more = {**(more or {}), **sampling}
    if more:
        body["extra_body"] = more
    return body


def _thinking_config(request: ModelRequest, card: ModelCard, limit: int) -> Json | None:
    settings = request.settings
    if card.thinking == "adaptive":
        if settings.thinking:
            return {"type": "adaptive", "display": "summarized"}
        if card.thinking_off == "never":
            return {"type": "adaptive", "display": "summarized"}
        return None if card.thinking_off == "omit" else {"type": card.thinking_off}
    if card.thinking == "budget" and settings.thinking and _may_start_thinking(request.messages):
        budget = min(_THINKING_BUDGETS.get(settings.effort, 32_768), limit * 3 // 4)
        if budget >= _SMALLEST_BUDGET:
            return {"type": "enabled", "budget_tokens": budget}
    return None


def _may_start_thinking(messages: tuple[Message, ...]) -> bool:
    """Models with a thinking budget refuse to begin thinking in the middle of a turn."""
    for message in reversed(messages):
        if message.role == "user" and not any(isinstance(p, ToolAnswer) for p in message.parts):
            return True
        if message.role == "assistant" and not isinstance(message.parts[0], Thinking):
            return False
    return True


def _sampling(settings: ModelSettings, card: ModelCard) -> Json:
    given: Json = {}
    if card.sampling != "none" and settings.temperature is not None:
        given["temperature"] = min(settings.temperature, 1.0)
    if settings.top_p is not None and (card.sampling == "both" or not given):
        given["top_p"] = settings.top_p
    return given if card.sampling != "none" else {}


# --- prompt cache ---------------------------------------------------------------------------------


def _mark_for_cache(body: Json, messages: Sequence[Json]) -> None:
    """Four marks, the API's limit: tools, system, and the last two user messages.

    The last one writes the grown history, the one before it is found by this request's reading.
    """
    if body.get("tools"):
        body["tools"][-1]["cache_control"] = dict(_CACHE)
    if body.get("system"):
        body["system"][-1]["cache_control"] = dict(_CACHE)
    users = [message for message in messages if message["role"] == "user"]
    for message in users[-_MARKED:]:
        message["content"][-1]["cache_control"] = dict(_CACHE)


def _before_marks(messages: Sequence[Message]) -> int:
    """How many messages stand before those that are marked."""
    users = [place for place, message in enumerate(messages) if message.role == "user"]
    return users[-_MARKED] if len(users) >= _MARKED else 0

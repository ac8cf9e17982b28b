"""The Messages API as the stand-in speaks it: requests read back, replies as its events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.content import Base64Source, Block, Document, Image, PlainTextSource, Text, UrlSource
from harness.messages import (
    Elsewhere,
    Message,
    ModelRequest,
    ModelSettings,
    Part,
    Thinking,
    ToolAnswer,
    ToolCall,
    ToolSpec,
)
from providers.scripted import Call, Reply, Think, chunks
from tests.standins import anthropic_rules
from tests.standins.wire import Trouble, dumped

STOP_REASONS = {
    "end_turn": "end_turn",
    "tool_use": "tool_use",
    "max_tokens": "max_tokens",
    "stop_sequence": "stop_sequence",
    "pause": "pause_turn",
    "refusal": "refusal",
    "context_full": "model_context_window_exceeded",
}


class AnthropicDialect:
    """One reply's events; `number` makes its ids unique."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._index = 0
        self._model = ""

    def check(self, body: Any, betas: str) -> None:
        anthropic_rules.check_request(body, betas)

    def parse(self, body: Mapping[str, Any]) -> ModelRequest:
        self._model = body["model"]
        return parse_request(body)

    def opening(self, reply: Reply) -> bytes:
        usage = reply.usage
        message: dict[str, Any] = {
            "id": f"msg_{self._number:04}",
            "type": "message",
            "role": "assistant",
            "model": self._model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {
                "input_tokens": usage.input_tokens,
                "cache_creation_input_tokens": usage.cache_creation_input_tokens,
                "cache_read_input_tokens": usage.cache_read_input_tokens,
                "output_tokens": 1 if usage.output_tokens else 0,
            },
        }
        return _event("message_start", message=message) + _event("ping")

    def block_start(self, kind: str) -> bytes:
        block = {"type": kind, kind: ""} | ({"signature": ""} if kind == "thinking" else {})
        return _event("content_block_start", index=self._index, content_block=block)

    def delta(self, kind: str, text: str) -> bytes:
        return _delta(self._index, {"type": f"{kind}_delta", kind: text})

    def block_stop(self, kind: str, part: object) -> bytes:
        signature = b""
        if isinstance(part, Think) and part.signature:
            delta = {"type": "signature_delta", "signature": part.signature}
            signature = _delta(self._index, delta)
        return signature + self._stop()

    def redacted(self, part: Think) -> bytes:
        block = {"type": "redacted_thinking", "data": part.redacted_data}
        start = _event("content_block_start", index=self._index, content_block=block)
        return start + self._stop()

    def call(self, part: Call, chunk: int) -> bytes:
        block = {
            "type": "tool_use",
            "id": f"toolu_{self._number:04}_{self._index}",
            "name": part.name,
            "input": {},
        }
        start = _event("content_block_start", index=self._index, content_block=block)
        raw = part.invalid or dumped(dict(part.input))
        deltas = [
            _delta(self._index, {"type": "input_json_delta", "partial_json": piece})
            for piece in ("", *chunks(raw, chunk))
        ]
        return start + b"".join(deltas) + self._stop()

    def closing(self, reply: Reply) -> bytes:
        delta: dict[str, Any] = {
            "stop_reason": STOP_REASONS[reply.ending],
            "stop_sequence": None,
        }
        if reply.detail:
            delta["stop_details"] = {
                "type": "refusal",
                "category": None,
                "explanation": reply.detail,
            }
        usage = {"output_tokens": reply.usage.output_tokens}
        return _event("message_delta", delta=delta, usage=usage) + _event("message_stop")

    def error_event(self, trouble: Trouble) -> bytes:
        return _event("error", **self._error(trouble))

    def error_body(self, trouble: Trouble) -> Any:
        return {"type": "error", **self._error(trouble), "request_id": f"req_{self._number:04}"}

    def _error(self, trouble: Trouble) -> dict[str, Any]:
        return {"error": {"type": trouble.kind, "message": trouble.message}}

    def _stop(self) -> bytes:
        stop = _event("content_block_stop", index=self._index)
        self._index += 1
        return stop


def _event(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\ndata: {dumped({'type': kind, **fields})}\n\n".encode()


def _delta(index: int, delta: dict[str, Any]) -> bytes:
    return _event("content_block_delta", index=index, delta=delta)


# --- reading a request back -----------------------------------------------------------------------


def parse_request(body: Mapping[str, Any]) -> ModelRequest:
    """The request that `body` was made from, as far as the wire carries it."""
    system = body.get("system") or ""
    thinking = (body.get("thinking") or {}).get("type")
    return ModelRequest(
        model=body["model"],
        system=system if isinstance(system, str) else "\n\n".join(b["text"] for b in system),
        messages=tuple(_message(message, body["model"]) for message in body["messages"]),
        tools=tuple(
            ToolSpec(
                tool["name"],
                tool.get("description", ""),
                tool.get("input_schema", {}),
                tool.get("type", "") if "input_schema" not in tool else "",
            )
            for tool in body.get("tools") or ()
            if tool.get("type") != "mcp_toolset"
        ),
        tool_choice="none" if (body.get("tool_choice") or {}).get("type") == "none" else "auto",
        max_output_tokens=body["max_tokens"],
        settings=ModelSettings(
            temperature=body.get("temperature"),
            top_p=body.get("top_p"),
            thinking=thinking in ("enabled", "adaptive"),
            effort=(body.get("output_config") or {}).get("effort") or "",
        ),
    )


def _message(message: Mapping[str, Any], model: str) -> Message:
    content = message["content"]
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    return Message(message["role"], tuple(_part(block, model) for block in content))


def _part(block: Mapping[str, Any], model: str) -> Part:
    match block["type"]:
        case "thinking":
            return Thinking(block["thinking"], block["signature"], "", "anthropic", model)
        case "redacted_thinking":
            return Thinking("", "", block["data"], "anthropic", model)
        case "mcp_tool_use" | "mcp_tool_result" | "mcp_tool_listing" | "compaction":
            return Elsewhere(block, "anthropic", model)
        case "tool_use":
            return ToolCall(block["id"], block["name"], block["input"])
        case "tool_result":
            content = block.get("content") or []
            if isinstance(content, str):
                content = [{"type": "text", "text": content}]
            pieces = tuple(_block(piece) for piece in content)
            return ToolAnswer(block["tool_use_id"], pieces, bool(block.get("is_error")))
        case _:
            return _block(block)


def _block(block: Mapping[str, Any]) -> Block:
    match block["type"]:
        case "image":
            return Image(source=_source(block["source"]))
        case "document":
            return Document(
                source=_source(block["source"]),
                title=block.get("title"),
                context=block.get("context"),
            )
        case _:
            return Text(text=block["text"])


def _source(source: Mapping[str, Any]) -> Base64Source | UrlSource | PlainTextSource:
    match source["type"]:
        case "base64":
            return Base64Source(media_type=source["media_type"], data=source["data"])
        case "url":
            return UrlSource(url=source["url"])
        case _:
            return PlainTextSource(data=source["data"])

"""Chat completions as the stand-in speaks them: the rules of a request, and replies as its chunks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from harness.content import Base64Source, Block, Document, Image, Text, UrlSource
from harness.messages import (
    Message,
    ModelRequest,
    ModelSettings,
    Part,
    ToolAnswer,
    ToolCall,
    ToolSpec,
)
from providers.scripted import Call, Reply, Think, chunks
from tests.standins.anthropic_rules import need
from tests.standins.wire import Trouble, dumped

FINISH_REASONS = {
    "end_turn": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "stop_sequence": "stop",
    "pause": "stop",
    "refusal": "content_filter",
    "context_full": "length",
}
"""The closest word it has; it knows neither pauses nor a full context."""

_ROLES = ("system", "user", "assistant", "tool")


class OpenAIDialect:
    """One reply's chunks; `number` makes its ids unique."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._calls = 0
        self._model = ""
        self._wants_usage = False

    def check(self, body: Any, betas: str) -> None:
        check_request(body)

    def parse(self, body: Mapping[str, Any]) -> ModelRequest:
        self._model = body["model"]
        self._wants_usage = bool((body.get("stream_options") or {}).get("include_usage"))
        return parse_request(body)

    def opening(self, reply: Reply) -> bytes:
        return self._chunk({"role": "assistant", "content": ""})

    def block_start(self, kind: str) -> bytes:
        return b""

    def delta(self, kind: str, text: str) -> bytes:
        return self._chunk({"content" if kind == "text" else "reasoning_content": text})

    def block_stop(self, kind: str, part: object) -> bytes:
        return b""

    def redacted(self, part: Think) -> bytes:
        return b""

    def call(self, part: Call, chunk: int) -> bytes:
        number, self._calls = self._calls, self._calls + 1
        start = {
            "index": number,
            "id": f"call_{self._number:04}_{number}",
            "type": "function",
            "function": {"name": part.name, "arguments": ""},
        }
        raw = part.invalid or dumped(dict(part.input))
        deltas = [
            {"index": number, "function": {"arguments": piece}} for piece in chunks(raw, chunk)
        ]
        return b"".join(self._chunk({"tool_calls": [delta]}) for delta in (start, *deltas))

    def closing(self, reply: Reply) -> bytes:
        reason = FINISH_REASONS[reply.ending]
        end = self._chunk({"refusal": reply.detail} if reply.detail else {}, reason)
        return end + self._usage(reply) + b"data: [DONE]\n\n"

    def error_event(self, trouble: Trouble) -> bytes:
        return _event(self.error_body(trouble))

    def error_body(self, trouble: Trouble) -> Any:
        return {
            "error": {
                "message": trouble.message,
                "type": trouble.kind,
                "param": None,
                "code": None,
            }
        }

    def _usage(self, reply: Reply) -> bytes:
        if not self._wants_usage:
            return b""
        usage = reply.usage
        counts = {
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.output_tokens,
            "total_tokens": usage.total_tokens,
            "prompt_tokens_details": {"cached_tokens": usage.cache_read_input_tokens},
        }
        return _event(self._frame() | {"choices": [], "usage": counts})

    def _chunk(self, delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return _event(self._frame() | {"choices": [choice]})

    def _frame(self) -> dict[str, Any]:
        return {
            "id": f"chatcmpl-{self._number:04}",
            "object": "chat.completion.chunk",
            "created": 0,
            "model": self._model,
        }


def _event(value: Any) -> bytes:
    return f"data: {dumped(value)}\n\n".encode()


# --- rules ----------------------------------------------------------------------------------------


def check_request(body: Any) -> None:
    """Raise `Refused` for what the real service turns away."""
    need(isinstance(body, dict), "We could not parse the JSON body of your request.")
    need(isinstance(body.get("model"), str) and body["model"], "you must provide a model parameter")
    need(body.get("stream") is True, "this stand-in only answers streaming requests")
    messages = body.get("messages")
    need(isinstance(messages, list) and messages, "'messages' must hold at least one message")
    for tool in body.get("tools") or []:
        need(tool.get("type") == "function", "tools: unexpected type")
        need(tool["function"].get("name"), "tools: a function needs a name")
        schema = tool["function"].get("parameters") or {}
        need(schema.get("type") == "object", "tools: schema must have type 'object'")
    need(body.get("tools") or "tool_choice" not in body, "'tool_choice' needs 'tools'")
    open_calls: list[str] = []
    for number, message in enumerate(body["messages"]):
        open_calls = _check_message(message, number, open_calls)
    need(not open_calls, _unanswered(open_calls))


def _unanswered(calls: list[str]) -> str:
    return (
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
        f"'tool_call_id'. The following tool_call_ids did not have response messages: {calls}"
    )


def _check_message(message: Any, number: int, open_calls: list[str]) -> list[str]:
    """Check one message; returns the calls that are still to be answered after it."""
    where = f"messages[{number}]"
    role = message.get("role")
    need(role in _ROLES, f"{where}: unknown role {role!r}")
    content = message.get("content")
    if role == "tool":
        call = message.get("tool_call_id")
        need(call in open_calls, f"{where}: 'tool' must answer a preceding message's 'tool_calls'")
        need(isinstance(content, str), f"{where}: tool content must be a string")
        return [other for other in open_calls if other != call]
    need(not open_calls, _unanswered(open_calls))
    calls = message.get("tool_calls")
    if role == "assistant" and calls is not None:
        need(calls, f"{where}: 'tool_calls' may not be empty")
        for call in calls:
            arguments = call["function"]["arguments"]
            need(isinstance(arguments, str), f"{where}: arguments must be a string")
            need(isinstance(json.loads(arguments), dict), f"{where}: arguments must be an object")
        need(content is None or content, f"{where}: content must be null or text")
        return [call["id"] for call in calls]
    need(content, f"{where}: content may not be empty")
    for piece in content if isinstance(content, list) else []:
        need(
            piece.get("type") in ("text", "image_url", "file"),
            f"{where}: unknown content type {piece.get('type')!r}",
        )
        need(role == "user" or piece["type"] == "text", f"{where}: only users attach files")
    return []


# --- reading a request back -----------------------------------------------------------------------


def parse_request(body: Mapping[str, Any]) -> ModelRequest:
    """The request that `body` was made from, as far as the wire carries it."""
    system = [m["content"] for m in body["messages"] if m["role"] == "system"]
    messages: list[Message] = []
    for message in body["messages"]:
        if message["role"] == "system":
            continue
        role, parts = _parts(message)
        if messages and messages[-1].role == role:
            parts = messages.pop().parts + parts
        messages.append(Message(role, parts))
    return ModelRequest(
        model=body["model"],
        system="\n\n".join(system),
        messages=tuple(messages),
        tools=tuple(
            ToolSpec(
                tool["function"]["name"],
                tool["function"].get("description", ""),
                tool["function"]["parameters"],
            )
            for tool in body.get("tools") or ()
        ),
        tool_choice="none" if body.get("tool_choice") == "none" else "auto",
        max_output_tokens=body.get("max_completion_tokens") or body.get("max_tokens") or 16_384,
        settings=ModelSettings(
            temperature=body.get("temperature"),
            top_p=body.get("top_p"),
            effort=body.get("reasoning_effort") or "",
        ),
    )


def _parts(message: Mapping[str, Any]) -> tuple[Any, tuple[Part, ...]]:
    content = message.get("content")
    blocks: tuple[Block, ...]
    if isinstance(content, list):
        blocks = tuple(_block(piece) for piece in content)
    else:
        blocks = (Text(text=content),) if content else ()
    if message["role"] == "tool":
        is_error = str(content).startswith("Error: ")
        said = (Text(text=str(content).removeprefix("Error: ")),)
        return "user", (ToolAnswer(message["tool_call_id"], said, is_error),)
    calls = tuple(
        ToolCall(call["id"], call["function"]["name"], json.loads(call["function"]["arguments"]))
        for call in message.get("tool_calls") or ()
    )
    return message["role"], (*blocks, *calls)


def _block(piece: Mapping[str, Any]) -> Block:
    match piece["type"]:
        case "image_url":
            return Image(source=_source(piece["image_url"]["url"]))
        case "file":
            source = _source(piece["file"]["file_data"])
            return Document(source=source, title=piece["file"]["filename"])
        case _:
            return Text(text=piece["text"])


def _source(url: str) -> Base64Source | UrlSource:
    if not url.startswith("data:"):
        return UrlSource(url=url)
    kind, _, data = url.removeprefix("data:").partition(";base64,")
    return Base64Source(media_type=kind, data=data)

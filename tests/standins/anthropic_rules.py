"""What the Messages API refuses: the rules a request must keep, as strict as the real service.

`check_request` raises `Refused` with the sort of message the service gives. Where the service quietly
joins two messages of one role, this refuses them, since no transcript of ours may hold any.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any

from harness.modelcards import card_for

Json = Mapping[str, Any]

_FIELDS = {
    "model",
    "messages",
    "max_tokens",
    "stream",
    "system",
    "tools",
    "mcp_servers",
    "tool_choice",
    "thinking",
    "output_config",
    "metadata",
    "stop_sequences",
    "temperature",
    "top_p",
    "top_k",
    "service_tier",
    "cache_control",
    "context_management",
}
_IMAGE_TYPES = ("image/jpeg", "image/png", "image/gif", "image/webp")
_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_CALL_ID = re.compile(r"[a-zA-Z0-9_-]+")
_MARKS = 4
_TRAINED = {"memory_20250818": "memory"}
_SMALLEST_BUDGET = 1024


class Refused(Exception):
    """The request breaks a rule; the text says which and where."""


def need(condition: object, message: str) -> None:
    if not condition:
        raise Refused(message)


def check_request(body: Any, betas: str | None = None) -> None:
    """`betas` is what the header names; None: it is not known."""
    need(isinstance(body, dict), "Request body must be a JSON object")
    for field in ("model", "messages", "max_tokens"):
        need(field in body, f"{field}: Field required")
    for field in body:
        need(field in _FIELDS, f"{field}: Extra inputs are not permitted")
    need(isinstance(body["model"], str) and body["model"], "model: Input should be a valid string")
    limit = body["max_tokens"]
    need(
        isinstance(limit, int) and limit >= 1,
        "max_tokens: Input should be greater than or equal to 1",
    )
    card = card_for(body["model"])
    need(
        card.max_output is None or limit <= card.max_output,
        f"max_tokens: {limit} > {card.max_output}, which is the maximum allowed number of output "
        f"tokens for {body['model']}",
    )
    need(body.get("stream") is True, "stream: this stand-in only answers streaming requests")
    _check_settings(body)
    _check_edits(body, betas)
    _check_system(body.get("system"))
    tools = _check_tools(body)
    _check_messages(body["messages"], tools)
    _check_marks(body)


# --- settings -------------------------------------------------------------------------------------


def _check_settings(body: Json) -> None:
    card = card_for(body["model"])
    thinking = body.get("thinking") or {}
    kind = thinking.get("type", "")
    refused = f'"thinking.type.{kind}" is not supported for this model.'
    match kind:
        case "":
            pass
        case "adaptive":
            need(card.thinking == "adaptive", refused)
        case "enabled":
            need(card.thinking == "budget", refused)
            need("budget_tokens" in thinking, "thinking.enabled.budget_tokens: Field required")
            budget = thinking["budget_tokens"]
            need(
                budget >= _SMALLEST_BUDGET,
                "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024",
            )
            need(
                budget < body["max_tokens"],
                "`max_tokens` must be greater than `thinking.budget_tokens`",
            )
        case "disabled" | "between_tools":
            takes = card.thinking_off in ("omit", kind) and kind != "between_tools"
            need(takes or card.thinking_off == kind, refused)
        case _:
            need(False, "thinking: Input tag does not match any of the expected tags")
    effort = (body.get("output_config") or {}).get("effort")
    need(effort is None or effort in card.efforts, f"output_config.effort: {effort} not supported")
    if kind in ("disabled", "between_tools"):
        need(effort not in ("xhigh", "max"), f"effort {effort} needs thinking")
    for name in ("temperature", "top_p"):
        if name in body:
            need(card.sampling != "none", f"`{name}` is deprecated for this model.")
            need(0 <= body[name] <= 1, f"{name}: range: 0..1")
    if "temperature" in body and kind in ("enabled", "adaptive"):
        need(
            body["temperature"] == 1,
            "`temperature` may only be set to 1 when thinking is enabled or in adaptive mode.",
        )
    if card.sampling == "either":
        need(
            not {"temperature", "top_p"} <= set(body),
            "`temperature` and `top_p` cannot both be specified for this model.",
        )


def _check_edits(body: Json, betas: str | None) -> None:
    """Ways of shortening the context: which there are, in what order, from when on, with which betas."""
    named = None if betas is None else set(betas.split(","))
    edits = (body.get("context_management") or {}).get("edits", [])
    blocks = [
        block
        for message in body["messages"]
        for block in message.get("content", ())
        if isinstance(block, dict) and block.get("type") == "compaction"
    ]
    kinds = [edit.get("type") for edit in edits]
    for kind in kinds:
        need(kind in card_for(body["model"]).features, f"context_management: {kind} not supported")
    need(len(kinds) == len(set(kinds)), "context_management.edits: each type once")
    if "clear_thinking_20251015" in kinds:
        need(kinds[0] == "clear_thinking_20251015", "context_management: thinking is cleared first")
        thinks = (body.get("thinking") or {}).get("type") in ("enabled", "adaptive")
        need(thinks, "context_management: clear_thinking_20251015 requires thinking")
    for edit in edits:
        trigger = edit.get("trigger") or {"type": "input_tokens", "value": 150_000}
        need(trigger["type"] == "input_tokens", "context_management.trigger: unexpected type")
        least = 50_000 if edit["type"] == "compact_20260112" else 1
        need(trigger["value"] >= least, f"context_management.trigger.value: at least {least}")
    if named is not None:
        need(
            not edits or "context-management-2025-06-27" in named, "context_management: Extra input"
        )
        compacts = "compact_20260112" in kinds or blocks
        need(not compacts or "compact-2026-01-12" in named, "compaction: needs its beta")


def _check_system(system: Any) -> None:
    if isinstance(system, list):
        for number, block in enumerate(system):
            _check_text(block, f"system.{number}")
    else:
        need(system is None or isinstance(system, str), "system: Input should be a valid list")


def _check_tools(body: Json) -> set[str]:
    names: set[str] = set()
    servers = [server.get("name") for server in body.get("mcp_servers") or []]
    sets = [tool for tool in body.get("tools") or [] if tool.get("type") == "mcp_toolset"]
    named = [each.get("mcp_server_name") for each in sets]
    need(sorted(named) == sorted(set(servers)), "mcp_servers: each has exactly one mcp_toolset")
    for server in body.get("mcp_servers") or []:
        need(server.get("type") == "url", "mcp_servers.type: Input should be 'url'")
        need(server.get("url", "").startswith("https://"), "mcp_servers.url: must be https")
    names |= {f"mcp_toolset {name}" for name in named}
    for number, tool in enumerate(body.get("tools") or []):
        if tool.get("type") == "mcp_toolset":
            continue
        place = f"tools.{number}.custom"
        name = tool.get("name", "")
        need(_TOOL_NAME.fullmatch(name), f"{place}.name: String should match pattern")
        need(name not in names, "tools: Tool names must be unique.")
        if tool.get("type", "custom") != "custom":
            _check_trained(tool, body["model"], f"tools.{number}")
            names.add(name)
            continue
        schema = tool.get("input_schema")
        need(isinstance(schema, dict), f"{place}.input_schema: Field required")
        need(schema.get("type") == "object", f"{place}.input_schema.type: Input should be 'object'")
        names.add(name)
    choice = body.get("tool_choice")
    if choice is not None:
        need(names, "tool_choice: may only be specified while providing tools")
        need(choice.get("type") in ("auto", "none", "any", "tool"), "tool_choice: unexpected type")
    return names


def _check_trained(tool: Json, model: str, place: str) -> None:
    kind = tool["type"]
    need(
        _TRAINED.get(kind) == tool["name"] and kind in card_for(model).features,
        f"{place}: '{kind}' is not supported for this model.",
    )
    for name in tool:
        need(name in {"type", "name", "cache_control"}, f"{place}.{name}: Extra inputs")


# --- messages -------------------------------------------------------------------------------------


def _check_messages(messages: Any, tools: set[str]) -> None:
    need(isinstance(messages, list) and messages, "messages: at least one message is required")
    need(messages[0].get("role") == "user", 'messages: first message must use the "user" role')
    seen: set[str] = set()
    asked: list[str] = []
    for number, message in enumerate(messages):
        place = f"messages.{number}"
        role = message.get("role")
        need(role in ("user", "assistant"), f"{place}.role: Input should be 'user' or 'assistant'")
        need(
            number == 0 or role != messages[number - 1]["role"],
            f'{place}: roles must alternate between "user" and "assistant"',
        )
        content = message.get("content")
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        need(isinstance(content, list) and content, f"{place}: all messages must have content")
        _check_answers(content, asked, place)
        asked = _check_blocks(content, role, place, bool(tools), seen)
    need(not asked, _unanswered("messages", asked))
    last = messages[-1]
    if last["role"] == "assistant" and isinstance(last["content"], list):
        text = last["content"][-1].get("text", "")
        need(
            text == text.rstrip(),
            "messages: final assistant content cannot end with trailing whitespace",
        )


def _unanswered(place: str, ids: list[str]) -> str:
    return (
        f"{place}: `tool_use` ids were found without `tool_result` blocks immediately after: "
        f"{', '.join(ids)}. Each `tool_use` block must have a corresponding `tool_result` block in "
        "the next message."
    )


def _check_answers(content: list[Any], asked: list[str], place: str) -> None:
    """Every call of the message before is answered here, first thing, and nothing else is."""
    answered = [block["tool_use_id"] for block in content if block.get("type") == "tool_result"]
    missing = [call for call in asked if call not in answered]
    need(not missing, _unanswered(place, missing))
    for number, call in enumerate(answered):
        need(
            call in asked,
            f"{place}.content.{number}: unexpected `tool_use_id` found in `tool_result` blocks: "
            f"{call}. Each `tool_result` block must have a corresponding `tool_use` block in the "
            "previous message.",
        )
    need(len(answered) == len(set(answered)), f"{place}: each tool_use must have a single result")
    if asked:
        first = [block.get("type") for block in content[: len(asked)]]
        need(
            first == ["tool_result"] * len(asked),
            f"{place}: `tool_result` blocks must come before other content",
        )


def _check_blocks(
    content: list[Any], role: str, place: str, has_tools: bool, seen: set[str]
) -> list[str]:
    calls: list[str] = []
    for number, block in enumerate(content):
        where = f"{place}.content.{number}"
        kind = block.get("type")
        match kind:
            case "text":
                _check_text(block, where)
            case "tool_use":
                need(role == "assistant", f"{where}: `tool_use` blocks can only be in `assistant`")
                need(has_tools, _no_tools())
                call = block.get("id", "")
                need(_CALL_ID.fullmatch(call), f"{where}.tool_use.id: String should match pattern")
                need(call not in seen, "messages: `tool_use` ids must be unique")
                need(isinstance(block.get("input"), dict), f"{where}.input: should be a dictionary")
                seen.add(call)
                calls.append(call)
            case "tool_result":
                need(role == "user", f"{where}: `tool_result` blocks can only be in `user`")
                need(has_tools, _no_tools())
                _check_result(block, where)
            case "thinking" | "redacted_thinking":
                need(role == "assistant", f"{where}: thinking can only be in `assistant` messages")
                secret = block.get("signature") or block.get("data")
                need(secret, f"{where}: Invalid `signature` in `thinking` block")
                need("cache_control" not in block, f"{where}: cannot be marked for caching")
            case "compaction":
                need(role == "assistant" and number == 0, f"{where}: `compaction` is misplaced")
                need(block.get("content"), f"{where}.content: should not be empty")
            case "mcp_tool_use" | "mcp_tool_result" | "mcp_tool_listing":
                need(role == "assistant", f"{where}: `{kind}` can only be in `assistant` messages")
                if kind == "mcp_tool_use":
                    answers = [
                        each.get("tool_use_id")
                        for each in content
                        if each.get("type") == "mcp_tool_result"
                    ]
                    need(
                        answers.count(block.get("id")) == 1,
                        f"{where}: `mcp_tool_use` without a single `mcp_tool_result`",
                    )
            case "image" | "document":
                need(role == "user", f"{where}: `{kind}` blocks can only be in `user` messages")
                _check_source(kind, block.get("source") or {}, where)
            case _:
                need(False, f"{where}: Input tag '{kind}' does not match any of the expected tags")
    return calls


def _no_tools() -> str:
    return "Requests which include `tool_use` or `tool_result` blocks must define tools"


def _check_text(block: Any, where: str) -> None:
    text = block.get("text") if isinstance(block, dict) else None
    need(isinstance(text, str), f"{where}.text: Field required")
    need(text, f"{where}: text content blocks must be non-empty")
    need(str(text).strip(), f"{where}: text content blocks must contain non-whitespace text")


def _check_result(block: Json, where: str) -> None:
    content = block.get("content")
    if isinstance(content, list):
        for number, piece in enumerate(content):
            inside = f"{where}.content.{number}"
            if piece.get("type") == "text":
                _check_text(piece, inside)
            else:
                need(piece.get("type") in ("image", "document"), f"{inside}: unexpected type")
                _check_source(piece["type"], piece.get("source") or {}, inside)
    need(content or not block.get("is_error"), f"{where}: content cannot be empty if `is_error`")


def _check_source(kind: str, source: Json, where: str) -> None:
    match source.get("type"):
        case "base64":
            allowed = _IMAGE_TYPES if kind == "image" else ("application/pdf",)
            need(source.get("media_type") in allowed, f"{where}.source.media_type: not supported")
            try:
                base64.b64decode(str(source.get("data", "")), validate=True)
            except binascii.Error:
                raise Refused(f"{where}.source.base64: invalid base64 data") from None
        case "url":
            need(str(source.get("url", "")).startswith("http"), f"{where}.source.url: not a URL")
        case "text":
            need(kind == "document", f"{where}.source: unexpected type")
        case _:
            need(False, f"{where}.source: Input tag does not match any of the expected tags")


def _check_marks(body: Json) -> None:
    found = _marks(body.get("tools")) + _marks(body.get("system")) + _marks(body["messages"])
    need(
        found <= _MARKS,
        f"A maximum of {_MARKS} blocks with cache_control may be provided. Found {found}.",
    )


def _marks(value: Any) -> int:
    if isinstance(value, list):
        return sum(_marks(item) for item in value)
    if not isinstance(value, dict):
        return 0
    own = 1 if "cache_control" in value else 0
    return own + _marks(value.get("content"))

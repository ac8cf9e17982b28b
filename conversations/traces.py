"""Writes traces: one row for each model request of a conversation that has tracing on."""

from __future__ import annotations

from dataclasses import asdict, is_dataclass
from typing import Any

from pydantic import BaseModel

from harness.messages import ModelRequest

from .models import ModelTrace


def save_request(conversation_id: int, model_request_id: str, request: ModelRequest) -> None:
    ModelTrace.objects.get_or_create(
        model_request_id=model_request_id,
        defaults={"conversation_id": conversation_id, "request": request_payload(request)},
    )


def save_response(model_request_id: str, response: dict[str, Any]) -> None:
    ModelTrace.objects.filter(model_request_id=model_request_id).update(response=response)


def request_payload(request: ModelRequest) -> dict[str, Any]:
    """The request as JSON values: what a person needs to see why a model answered as it did."""
    return {
        "purpose": request.purpose,
        "model": request.model,
        "system": request.system,
        "max_output_tokens": request.max_output_tokens,
        "tool_choice": request.tool_choice,
        "settings": asdict(request.settings),
        "edits": request.edits and asdict(request.edits),
        "tools": [tool.name for tool in request.tools],
        "remote": {server.name: [tool.name for tool in server.tools] for server in request.remote},
        "messages": [
            {"role": message.role, "parts": [_part_payload(part) for part in message.parts]}
            for message in request.messages
        ],
    }


def _part_payload(part: object) -> dict[str, Any]:
    if isinstance(part, BaseModel):
        return part.model_dump(mode="json")
    if is_dataclass(part) and not isinstance(part, type):
        values = {name: getattr(part, name) for name in part.__slots__}  # type: ignore[attr-defined]
        return {
            "type": type(part).__name__,
            **{name: _plain(value) for name, value in values.items()},
        }
    raise TypeError(f"no payload for {type(part).__name__}")


def _plain(value: object) -> Any:
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    return value

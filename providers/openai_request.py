"""A request in the dialect of chat completions: messages, tools, limits.

Only translation; sending it and reading the reply is done in `providers.openai_compatible`.
"""

from __future__ import annotations

import json
from typing import Any

from harness.content import (
    Base64Source,
    Block,
    Document,
    Image,
    PlainTextSource,
    Text,
    UrlSource,
)
from harness.errors import BadRequest
from harness.messages import Message, ModelRequest, ToolAnswer, ToolCall
from harness.modelcards import ModelCard, card_for

Json = dict[str, Any]


def request_body(request: ModelRequest) -> Json:
    """The arguments of `chat.completions.create`. Earlier thinking stays away: nobody takes it back."""
    card = card_for(request.model)
    settings = request.settings
    if request.remote:
        raise BadRequest("This provider calls no tools of MCP servers by itself.")
    body: Json = {
        "model": request.model,
        "messages": _messages(request),
        "stream": True,
        "stream_options": {"include_usage": True},
        card.output_field: min(
            request.max_output_tokens, card.max_output or request.max_output_tokens
        ),
    }
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": dict(tool.input_schema),
                },
            }
            for tool in request.tools
        ]
        body["tool_choice"] = request.tool_choice
    if card.sampling != "none" and settings.temperature is not None:
        body["temperature"] = settings.temperature
    if card.sampling != "none" and settings.top_p is not None:
        body["top_p"] = settings.top_p
    effort = card.effort(settings.effort) if settings.effort else None
    if effort:
        body["reasoning_effort"] = effort
    return body


def _messages(request: ModelRequest) -> list[Json]:
    messages: list[Json] = []
    card = card_for(request.model)
    if request.system.strip():
        messages.append({"role": "system", "content": request.system})
    for message in request.messages:
        if message.role == "assistant":
            messages.append(_assistant(message))
        else:
            messages.extend(_user(message, card))
    return messages


def _assistant(message: Message) -> Json:
    text = "\n\n".join(p.text for p in message.parts if isinstance(p, Text) and p.text.strip())
    calls = [
        {
            "id": part.id,
            "type": "function",
            "function": {
                "name": part.name,
                "arguments": json.dumps(dict(part.input), ensure_ascii=False),
            },
        }
        for part in message.parts
        if isinstance(part, ToolCall)
    ]
    if calls:
        return {"role": "assistant", "content": text or None, "tool_calls": calls}
    return {"role": "assistant", "content": text or "(no content)"}


def _user(message: Message, card: ModelCard) -> list[Json]:
    """First a `tool` message per answer, then what the user said.

    A `tool` message holds only text, so the pictures of answers follow in the user's message.
    """
    messages: list[Json] = []
    content: list[Json] = []
    for part in message.parts:
        if isinstance(part, ToolAnswer):
            blocks = [card.shown(block) for block in part.content if _says_something(block)]
            pieces = [_content(block) for block in blocks]
            text = "\n\n".join(piece["text"] for piece in pieces if piece["type"] == "text")
            content.extend(piece for piece in pieces if piece["type"] != "text")
            answer = text or "(no output)"
            if part.is_error:
                answer = f"Error: {answer}"
            messages.append({"role": "tool", "tool_call_id": part.call_id, "content": answer})
        elif isinstance(part, Text | Image | Document) and _says_something(part):
            content.append(_content(card.shown(part)))
    if content or not messages:
        messages.append({"role": "user", "content": _compact(content)})
    return messages


def _compact(content: list[Json]) -> str | list[Json]:
    """Plain text where it is only text: the form that every server takes."""
    if any(piece["type"] != "text" for piece in content):
        return content
    return "\n\n".join(piece["text"] for piece in content) or "(no content)"


def _says_something(block: Block) -> bool:
    return not isinstance(block, Text) or bool(block.text.strip())


def _content(block: Block) -> Json:
    match block:
        case Text():
            return {"type": "text", "text": block.text}
        case Image(source=Base64Source(media_type=kind, data=data)):
            return {"type": "image_url", "image_url": {"url": f"data:{kind};base64,{data}"}}
        case Image(source=UrlSource(url=url)):
            return {"type": "image_url", "image_url": {"url": url}}
        case Document(source=PlainTextSource(data=data)):
            title = f"# {block.title}\n\n" if block.title else ""
            return {"type": "text", "text": f"{title}{data}"}
        case Document(source=Base64Source(media_type=kind, data=data)):
            file = {
                "filename": block.title or "document",
                "file_data": f"data:{kind};base64,{data}",
            }
            return {"type": "file", "file": file}
        case _:
            raise BadRequest(
                f"This provider cannot be sent a {block.type} by {block.source.type}.",
                hint="Attach the file itself, or use another provider.",
            )

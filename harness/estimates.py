"""Sizes of prompts in tokens, where no service has counted them.

An upper estimate, for reserving money before a request: what was reserved and not used is given back
when the request ends. Only a request that was cut short, and whose service did not say what it had
cost, is booked by such a number, and marked as estimated.
"""

from __future__ import annotations

import json
from typing import Any

import orjson

from harness.content import Document, Image, Text
from harness.messages import Message, ModelRequest, Part, Thinking, ToolAnswer, ToolCall

BYTES_PER_TOKEN = 2
"""Text of any language has at least about two bytes of UTF-8 a token, most has three to four."""
CHARACTERS_PER_TOKEN = 4
"""Of ordinary text, the usual rule of thumb."""
MEDIA_TOKENS = 5_000
"""An image or a page of a document, at the most that services charge by default."""
MESSAGE_TOKENS = 16
"""What the frame of a message or a tool adds."""
_NOTE = "tokens at most"


def likely_prompt_tokens(at_most: int) -> int:
    """What a prompt of this upper estimate has probably cost, for requests whose service cannot say."""
    return at_most * BYTES_PER_TOKEN // CHARACTERS_PER_TOKEN


def prompt_tokens_at_most(request: ModelRequest) -> int:
    total = _size(request.system)
    for tool in request.tools:
        total += _size(tool.name) + _size(tool.description) + _json_size(tool.input_schema)
        total += MESSAGE_TOKENS
    return total + sum(_message(message) for message in request.messages)


def _message(message: Message) -> int:
    known: int | None = message.notes.get(_NOTE)
    if known is None:
        known = MESSAGE_TOKENS + sum(_part(part) for part in message.parts)
        message.notes[_NOTE] = known
    return known


def _part(part: Part) -> int:
    match part:
        case Text():
            return _size(part.text)
        case Thinking():
            return _size(part.text) + _size(part.signature) + _size(part.redacted_data)
        case ToolCall():
            return _size(part.name) + _json_size(part.input) + MESSAGE_TOKENS
        case ToolAnswer():
            return MESSAGE_TOKENS + sum(_part(block) for block in part.content)
        case Image() | Document():
            return MEDIA_TOKENS


def _json_size(value: Any) -> int:
    try:
        data = orjson.dumps(value, default=str)
    except TypeError:
        data = json.dumps(value, default=str).encode()  # halves of characters, endless numbers
    return _tokens(len(data))


def _size(text: str) -> int:
    return _tokens(len(text) if text.isascii() else len(text.encode(errors="replace")))


def _tokens(size: int) -> int:
    return -(-size // BYTES_PER_TOKEN)

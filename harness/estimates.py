"""Sizes of prompts in tokens, where no service has counted them.

An upper estimate, for reserving money before a request: what was reserved and not used is given back
when the request ends. Only a request whose service did not say what it had cost is booked by such a
number, and marked as estimated.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import orjson

from harness.content import Document, Image, PlainTextSource, Text
from harness.messages import (
    Elsewhere,
    Message,
    ModelRequest,
    Part,
    PinnedText,
    Thinking,
    ToolAnswer,
    ToolCall,
    ToolSpec,
)

BYTES_PER_TOKEN = 2
"""Text of any language has at least about two bytes of UTF-8 a token, most has three to four."""
CHARACTERS_PER_TOKEN = 4
"""Of ordinary text, the usual rule of thumb."""
MEDIA_TOKENS = 5_000
"""An image or a page of a document, at the most that services charge by default."""
PAGES_AT_MOST = 100
"""Of a document that nobody here has opened, such as one at an address: the window of most models has no room
for more."""
UNOPENED_AT_MOST = 1_000_000
"""Of all such documents together: a service refuses what its largest window has no room for."""
MESSAGE_TOKENS = 16
"""What the frame of a message or a tool adds."""
_NOTE = "tokens at most"


def likely_prompt_tokens(at_most: int) -> int:
    """What a prompt of this upper estimate has probably cost, for requests whose service cannot say."""
    return at_most * BYTES_PER_TOKEN // CHARACTERS_PER_TOKEN


def prompt_tokens_at_most(request: ModelRequest) -> int:
    return sum(sizes_at_most(request).values()) + unopened_tokens_at_most(request)


def unopened_tokens_at_most(request: ModelRequest) -> int:
    """Beyond `sizes_at_most`, where a document without a number of pages stands for one page: money is held
    back for the longest, and nothing is cut, and nothing booked, for what is most probably short."""
    unopened = sum(_sizes(message).unopened for message in request.messages)
    return min(unopened, UNOPENED_AT_MOST)


def sizes_at_most(request: ModelRequest) -> dict[str, int]:
    """The upper estimate by part: `system`, `tools`, and of the dialogue the `question` (what was last
    said to the agent), the `results` of its calls, what is `pinned`, and `history`, which is the rest."""
    tools = sum(map(_tool, request.tools))
    tools += sum(_tool(tool) for server in request.remote for tool in server.tools)
    whole = answered = question = pinned = 0
    for message in request.messages:
        sizes = _sizes(message)
        whole += sizes.whole
        answered += sizes.results
        pinned += sizes.pinned
        question = sizes.said or question
    history = whole - answered - question - pinned
    return {
        "system": _size(request.system),
        "tools": tools,
        "history": history,
        "pinned": pinned,
        "results": answered,
        "question": question,
    }


@dataclass(frozen=True, slots=True)
class _Sizes:
    """Of one message."""

    whole: int
    results: int
    pinned: int
    said: int
    """What a user message holds beside these."""
    unopened: int


def _sizes(message: Message) -> _Sizes:
    known: _Sizes | None = message.notes.get(_NOTE)
    if known is None:
        known = message.notes[_NOTE] = _message(message)
    return known


def _message(message: Message) -> _Sizes:
    whole = MESSAGE_TOKENS + sum(map(_part, message.parts))
    results = sum(_part(part) for part in message.parts if isinstance(part, ToolAnswer))
    pinned = sum(_part(part) for part in message.parts if isinstance(part, PinnedText))
    said = whole - results - pinned - MESSAGE_TOKENS if message.role == "user" else 0
    return _Sizes(whole, results, pinned, said, sum(map(_unopened, message.parts)))


def _unopened(part: Part) -> int:
    match part:
        case ToolAnswer():
            return sum(map(_unopened, part.content))
        case Document(source=source, pages=None) if not isinstance(source, PlainTextSource):
            return MEDIA_TOKENS * (PAGES_AT_MOST - 1)
        case _:
            return 0


def _tool(tool: ToolSpec) -> int:
    known: int | None = tool.notes.get(_NOTE)
    if known is None:
        known = _size(tool.name) + _size(tool.description) + _json_size(tool.input_schema)
        known = tool.notes[_NOTE] = known + MESSAGE_TOKENS
    return known


def _part(part: Part) -> int:
    match part:
        case Text():
            return _size(part.text)
        case Thinking():
            return _size(part.text) + _size(part.signature) + _size(part.redacted_data)
        case ToolCall():
            return _size(part.name) + _json_size(part.input) + MESSAGE_TOKENS
        case Elsewhere():
            return _json_size(part.block) + MESSAGE_TOKENS
        case ToolAnswer():
            return MESSAGE_TOKENS + sum(_part(block) for block in part.content)
        case Document(source=PlainTextSource(data=data)):
            return MESSAGE_TOKENS + _size(data) + _size(f"{part.title or ''}{part.context or ''}")
        case Document():
            return MEDIA_TOKENS * (part.pages or 1) + _size(
                f"{part.title or ''}{part.context or ''}"
            )
        case Image():
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

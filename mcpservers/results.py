"""What an MCP tool answered, as blocks that are shown, stored and sent to models: all of it strangers'."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterator
from typing import Any

from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from harness.content import Base64Source, Block, Image, Text
from harness.schemachecks import MOST, Checker, TooCostly
from harness.schemas import Unsound
from tools_app.media import PICTURES

MOST_BLOCKS = 100
MOST_CHARACTERS = 1_000_000
"""Of all texts of one answer; what is longer is cut there."""


def blocks_of(result: CallToolResult, told: Callable[[str], str] = str) -> tuple[Block, ...]:
    """In the order of the answer; what is structured stands for a text where there is none. Of each text
    `told` makes what may be kept of it."""
    found: list[Block] = []
    left = MOST_CHARACTERS
    for block in _blocks(result):
        if len(found) >= MOST_BLOCKS or left <= 0:
            found.append(Text(text="[More of the answer is left out.]"))
            break
        if isinstance(block, Text):
            block = Text(text=_whole(told(block.text)[:left]))
            left -= len(block.text)
        found.append(block)
    return tuple(found) or (Text(text="[It answered nothing.]"),)


def fault_in(result: CallToolResult, schema: dict[str, Any] | None) -> str:
    """Why what is structured in it breaks the tool's own schema; empty: it does not. In a thread."""
    if schema is None or result.is_error:
        return ""
    if result.structured_content is None:
        return "It answered without the structured content that its schema promises."
    try:
        faults = Checker(schema).faults(result.structured_content, steps=MOST)
    except (TooCostly, Unsound):
        return "Its structured content is too large or too entangled to be checked."
    lines = "; ".join(str(fault) for fault in faults[:3])
    return f"Its structured content does not match its schema: {lines}" if faults else ""


def _blocks(result: CallToolResult) -> Iterator[Block]:
    texts = False
    for each in result.content:
        match each:
            case TextContent():
                texts = True
                yield Text(text=each.text)
            case ImageContent():
                yield _picture(each.mime_type, each.data)
            case AudioContent():
                yield Text(text=f"[Audio, {each.mime_type[:60]}, which is not kept.]")
            case ResourceLink():
                words = each.description or each.title or each.name
                yield Text(text=f"[Link to a resource: {each.uri} ({words[:200]})]")
            case EmbeddedResource(resource=TextResourceContents() as held):
                texts = True
                yield Text(text=f"[Resource {held.uri}]\n{held.text}")
            case EmbeddedResource(resource=BlobResourceContents() as held):
                yield _picture(held.mime_type or "", held.blob, str(held.uri))
            case _:
                yield Text(text="[Content of a kind that is not known here.]")
    if result.structured_content is not None and not texts:
        yield Text(text=json.dumps(result.structured_content, ensure_ascii=False, indent=1))


def _picture(media_type: str, data: str, name: str = "") -> Block:
    kind = media_type.partition(";")[0].strip().lower()
    if kind not in PICTURES:
        return Text(text=f"[{name or 'A file'}, {kind[:60] or 'of no known kind'}, is not kept.]")
    try:
        base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return Text(text=f"[A picture, {kind}, that cannot be read.]")
    return Image(source=Base64Source(media_type=kind, data=data))


def _whole(text: str) -> str:
    return text.replace("\0", "").encode("utf-8", "replace").decode()

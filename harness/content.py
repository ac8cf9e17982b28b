"""Content blocks: what a message, a tool result or a reply is made of.

Pure values shared by events (what is stored) and messages (what a provider is sent). Reading a file
source or fetching a URL is not done here; whoever builds a request resolves them first.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from reading.wholetext import storable_json, storable_value


class Frozen(BaseModel):
    """Base of every stored value: immutable, and strict about unknown fields when written."""

    model_config = ConfigDict(frozen=True, extra="forbid")


Value = TypeVar("Value", bound=Frozen)


def as_kept(value: Value) -> Value:
    """`value` as it will be read back once it is stored: itself, unless a text of it cannot be kept."""
    payload = value.model_dump(mode="json")
    if storable_json(payload) is not None:
        return value
    return type(value).model_validate(storable_value(payload))


class Base64Source(Frozen):
    type: Literal["base64"] = "base64"
    media_type: str
    data: str


class UrlSource(Frozen):
    type: Literal["url"] = "url"
    url: str


class FileSource(Frozen):
    type: Literal["file"] = "file"
    file_id: str


class PlainTextSource(Frozen):
    type: Literal["text"] = "text"
    media_type: Literal["text/plain"] = "text/plain"
    data: str


Source = Annotated[
    Base64Source | UrlSource | FileSource | PlainTextSource, Field(discriminator="type")
]


class Text(Frozen):
    type: Literal["text"] = "text"
    text: str


class Image(Frozen):
    type: Literal["image"] = "image"
    source: Source


class Document(Frozen):
    type: Literal["document"] = "document"
    source: Source
    title: str | None = None
    context: str | None = None
    pages: int | None = None
    """As counted here before it was stored; None: nobody here has opened it. No program's to say."""


class UploadedFile(Frozen):
    """A file that came with a message and lies in the conversation's workspace."""

    path: str
    """Relative to the workspace."""
    size: int
    """Bytes."""
    media_type: str
    """As its name or its first bytes say."""


Block = Annotated[Text | Image | Document, Field(discriminator="type")]


def text_of(blocks: tuple[Block, ...]) -> str:
    """The text blocks joined by blank lines; other kinds of block are left out."""
    return "\n\n".join(block.text for block in blocks if isinstance(block, Text))


def as_blocks(content: str | tuple[Block, ...]) -> tuple[Block, ...]:
    return (Text(text=content),) if isinstance(content, str) else content


def foreign_kind(blocks: tuple[Block, ...]) -> str:
    """The kind of the first block that nobody here wrote, as far as can be told: everything but text is
    made elsewhere and may say anything. Empty: there is none."""
    return next((block.type for block in blocks if not isinstance(block, Text)), "")

"""What an AG-UI client sends (RunAgentInput), and what of it is new: one message, or answers.

The history a client sends along is not read: the log has it. Who may send is `door`'s, what waits
for an answer `interrupts`'.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Literal

from django.utils.translation import gettext as _
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from conversations.v1.door import parse
from harness.content import Base64Source, Block, Image, Text
from harness.errors import Invalid
from harness.events import UserMessage
from harness.faults import place

ID_LIMIT = 200
"""Characters of a client's own ids."""
MOST_NAMED = 10
"""Of fields that nobody knows."""


class _Part(BaseModel):
    """Fields of later versions of the protocol are let be."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True)


class ResumeAnswer(_Part):
    """Read to its end or not at all: what a person answered must not be half heard."""

    model_config = ConfigDict(extra="forbid")

    interrupt_id: str = Field(max_length=ID_LIMIT)
    status: Literal["resolved", "cancelled"]
    payload: Any = None


class RunInput(_Part):
    model_config = ConfigDict(extra="allow")

    thread_id: str = Field(min_length=1, max_length=ID_LIMIT)
    run_id: str = Field(min_length=1, max_length=ID_LIMIT)
    messages: tuple[dict[str, Any], ...]
    resume: tuple[ResumeAnswer, ...] | None = None
    tools: tuple[dict[str, Any], ...] | None = None
    state: Any = None
    context: tuple[dict[str, Any], ...] | None = None
    forwarded_props: Any = None

    def ignored(self) -> list[str]:
        """Fields the client filled and this server makes nothing of, ten unknown ones at most."""
        given = {
            "tools": self.tools,
            "state": self.state,
            "context": self.context,
            "forwardedProps": self.forwarded_props,
        }
        unknown = [name[:ID_LIMIT] for name in sorted(self.model_extra or ())[:MOST_NAMED]]
        return [*(name for name, value in given.items() if value), *unknown]


class _TextPart(_Part):
    type: Literal["text"]
    text: str


class _DataSource(_Part):
    type: Literal["data"]
    value: str
    mime_type: str


class _ImagePart(_Part):
    type: Literal["image"]
    source: _DataSource


class _Message(_Part):
    content: str | tuple[Annotated[_TextPart | _ImagePart, Field(discriminator="type")], ...]


@contextmanager
def as_sent(body: RunInput) -> Iterator[None]:
    """What is refused inside of the person's message is named by its place in `messages`, as AG-UI would."""
    try:
        yield
    except Invalid as problem:
        for ours, theirs in ((".source.data", ".source.value"), ("media_type", "mimeType")):
            problem.field = problem.field.replace(ours, theirs)
        raise problem.under(place("messages", len(body.messages) - 1)) from None


def new_message(body: RunInput) -> UserMessage | None:
    """The person's message that ends the list; None where the client answers interrupts.

    Raises Invalid for a run that brings nothing new, or a message beside answers.
    """
    last = body.messages[-1] if body.messages else {}
    says = last.get("role") == "user"
    if body.resume:
        if says:
            raise Invalid(
                _("A run that answers interrupts takes no message beside the answers."),
                field="messages",
                hint=_("Send the message in the next run."),
            )
        return None
    if not says:
        raise Invalid(
            _("The run brings nothing new."),
            field="messages",
            hint=_("End the list with a message of role “user”, or answer interrupts by resume."),
        )
    with as_sent(body):
        content = parse(last, _Message).content
    if isinstance(content, str):
        return UserMessage(content=(Text(text=content),))
    return UserMessage(content=tuple(_block(part) for part in content))


def _block(part: _TextPart | _ImagePart) -> Block:
    if isinstance(part, _TextPart):
        return Text(text=part.text)
    source = Base64Source(media_type=part.source.mime_type, data=part.source.value)
    return Image(source=source)

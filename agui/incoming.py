"""What an AG-UI client sends (RunAgentInput), and what of it is new: a message, results, or answers.

The history a client sends along is not read: the log has it. Who may send is `door`'s, what waits
for an answer `interrupts`', which calls a result may be for `frontcalls`'.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import takewhile
from typing import Annotated, Any, Literal

from django.utils.translation import gettext as _
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from accounts.models import User
from accounts.persons import whose_place
from conversations.actions.media import check_sent_together
from harness.agentconfig import MOST_CUSTOM_TOOLS, MOST_MCP_SERVERS, SERVER_NAME, CustomTool
from harness.content import Base64Source, Block, Image, Text
from harness.errors import Invalid
from harness.events import UserMessage
from harness.faults import below, place
from harness.frontends import FrontEnd, OfferedTool, Surrounding
from harness.modelfaults import read_as
from mcpservers.actions.handing import Handed
from v1.door import parse
from wire.fieldnames import written

ID_LIMIT = 200
"""Characters of a client's own ids."""
NAME_LIMIT = 300
"""Characters of what names a piece of context."""
MOST_CONTEXT = 50
SERVERS = "mcpServers"
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


class DeclaredTool(_Part):
    name: str
    description: str = ""
    parameters: dict[str, Any] | None = None


class _Context(_Part):
    description: str = Field(max_length=NAME_LIMIT)
    value: str


class _Server(_Part):
    """By the shape of `mcp_servers` at `/v1`."""

    model_config = ConfigDict(extra="forbid")

    type: Literal["url"] = "url"
    name: str = Field(pattern=f"^{SERVER_NAME.pattern}$", max_length=32)
    url: str = Field(min_length=1, max_length=2_000)


class _Forwarded(_Part):
    """What front ends forward is theirs to name; one thing of it is read here."""

    mcp_servers: tuple[_Server, ...] = Field(max_length=MOST_MCP_SERVERS)


class RunInput(_Part):
    model_config = ConfigDict(extra="allow")

    thread_id: str = Field(min_length=1, max_length=ID_LIMIT)
    run_id: str = Field(min_length=1, max_length=ID_LIMIT)
    messages: tuple[dict[str, Any], ...]
    resume: tuple[ResumeAnswer, ...] | None = None
    tools: tuple[DeclaredTool, ...] | None = Field(default=None, max_length=MOST_CUSTOM_TOOLS)
    state: dict[str, Any] | None = None
    context: tuple[_Context, ...] | None = Field(default=None, max_length=MOST_CONTEXT)
    forwarded_props: Any = None

    def ignored(self) -> list[str]:
        """Fields the client filled and this server makes nothing of, ten unknown ones at most."""
        forwarded = self.forwarded_props
        if isinstance(forwarded, dict):
            forwarded = {name for name in forwarded if name != SERVERS}
        given = {"forwardedProps": forwarded}
        if self.resume and not new_results(self):
            # The turn goes on with what it was begun with.
            given |= {"tools": self.tools, "state": self.state, "context": self.context}
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

    def blocks(self) -> tuple[Block, ...]:
        if isinstance(self.content, str):
            return (Text(text=self.content),) if self.content else ()
        return tuple(_block(part) for part in self.content)


class ToolMessage(_Message):
    """What the client says came of a call."""

    tool_call_id: str = Field(max_length=ID_LIMIT)
    error: str | None = None

    def said(self) -> tuple[Block, ...]:
        return (*self.blocks(), *((Text(text=self.error),) if self.error else ()))


@contextmanager
def as_sent(number: int) -> Iterator[None]:
    """What is refused inside of one of the `messages` is named by its place there, as AG-UI would."""
    try:
        with _in_their_words():
            yield
    except Invalid as problem:
        raise problem.under(place("messages", number)) from None


@contextmanager
def _in_their_words() -> Iterator[None]:
    try:
        yield
    except Invalid as problem:
        for ours, theirs in ((".source.data", ".source.value"), ("media_type", "mimeType")):
            problem.field = problem.field.replace(ours, theirs)
        raise


def servers_of(body: RunInput) -> list[Handed] | None:
    """MCP servers that come with the run; None: nothing is said of them. Raises Invalid, naming the place."""
    forwarded = body.forwarded_props
    if not isinstance(forwarded, dict) or SERVERS not in forwarded:
        return None
    try:
        given = parse({SERVERS: forwarded[SERVERS]}, _Forwarded)
    except Invalid as problem:
        raise problem.under("forwardedProps") from None
    if len({each.name for each in given.mcp_servers}) < len(given.mcp_servers):
        raise Invalid(
            _("A server is named twice."),
            field=f"forwardedProps.{SERVERS}",
            hint=_("Name each once."),
        )
    return [Handed(each.name, each.url) for each in given.mcp_servers]


def new_results(body: RunInput) -> list[ToolMessage]:
    """Messages of tools that end the list, or that stand before the person's which does. Raises Invalid,
    naming the place, for one that is malformed."""
    ends_with_hers = bool(body.messages) and body.messages[-1].get("role") == "user"
    end = len(body.messages) - ends_with_hers
    last_ones = takewhile(lambda each: each.get("role") == "tool", reversed(body.messages[:end]))
    return [_result(body, number) for number in range(end - len(list(last_ones)), end)]


def _result(body: RunInput, number: int) -> ToolMessage:
    with as_sent(number):
        return parse(body.messages[number], ToolMessage)


def check_files(
    body: RunInput, message: UserMessage | None, results: Sequence[ToolMessage], *, actor: User
) -> None:
    """Raises Invalid, naming the place, for a picture that no model service could open, and Busy as
    `check_media`. `message` and `results` are what is new."""
    said = [each.said() for each in results] + ([message.content] if message is not None else [])
    first = len(body.messages) - len(said)
    with _in_their_words():
        check_sent_together(
            [
                (below(place("messages", first + number), "content"), content)
                for number, content in enumerate(said)
            ],
            who=whose_place(actor),
        )


def new_message(body: RunInput) -> UserMessage | None:
    """The person's message that ends the list; None where the client answers interrupts, or calls.

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
    if last.get("role") == "tool":
        return None
    if not says:
        raise Invalid(
            _("The run brings nothing new."),
            field="messages",
            hint=_(
                "End the list with a message of role “user” or “tool”, or answer interrupts by resume."
            ),
        )
    with as_sent(len(body.messages) - 1):
        return UserMessage(content=parse(last, _Message).blocks())


def sent_along(body: RunInput, held: FrontEnd) -> FrontEnd:
    """What comes with the run: an empty state, as clients begin with, leaves the one that is held.

    Raises Invalid, naming the field, for a tool that cannot be offered.
    """
    return FrontEnd(
        tools=tuple(_offered(tool, number) for number, tool in enumerate(body.tools or ())),
        context=tuple(
            Surrounding(description=each.description, value=each.value)
            for each in body.context or ()
        ),
        state=body.state or held.state,
    )


def _offered(tool: DeclaredTool, number: int) -> OfferedTool:
    # The protocol takes no schema and an empty one for the same.
    schema = {"input_schema": tool.parameters} if tool.parameters else {}
    given = {"name": tool.name, "description": tool.description or tool.name, **schema}
    with written({"input_schema": "parameters"}, at=place("tools", number)):
        sound = read_as(given, CustomTool)
    return OfferedTool(**sound.model_dump())


def _block(part: _TextPart | _ImagePart) -> Block:
    if isinstance(part, _TextPart):
        return Text(text=part.text)
    source = Base64Source(media_type=part.source.mime_type, data=part.source.value)
    return Image(source=source)

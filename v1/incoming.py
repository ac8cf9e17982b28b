"""The events a client may send, parsed into the log's own values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from django.utils.translation import gettext as _
from pydantic import Field, TypeAdapter
from rest_framework.request import Request

from accounts.api.authentication import Caller
from conversations.actions.outcomes import MOST_CHECKS, MOST_COMMAND, MOST_SECONDS
from harness.content import Block
from harness.errors import Invalid
from harness.events import (
    OutcomeCheck,
    UserCustomToolResult,
    UserDefineOutcome,
    UserInterrupt,
    UserMessage,
    UserToolConfirmation,
)
from harness.faults import place
from harness.grading import ITERATIONS, MOST_DESCRIPTION, MOST_ITERATIONS, MOST_RUBRIC
from programs.actions.sending import Decided, Input
from tools_app.media import TEXT_CHARACTERS
from tools_app.textfiles import decode
from wire.fieldnames import written
from wire.ids import conversation_uid

from .door import Body, data_of
from .files import read_text_file
from .outgoing import row_of

MOST_EVENTS = 100
MOST_BLOCKS = 100
UNSUPPORTED = ("system.message",)
"""Of the public API, not served here; see docs/api-divergences.md."""

Base64 = Annotated[str, Field(max_length=14_000_000)]
"""About ten megabytes of a file."""


class TextBody(Body):
    type: Literal["text"]
    text: str


class Base64Body(Body):
    type: Literal["base64"]
    media_type: str = Field(max_length=127)
    data: Base64


class UrlBody(Body):
    type: Literal["url"]
    url: str = Field(max_length=2_000, pattern=r"^https?://")


class PlainBody(Body):
    type: Literal["text"]
    media_type: Literal["text/plain"] = "text/plain"
    data: str = Field(max_length=TEXT_CHARACTERS)


class ImageBody(Body):
    type: Literal["image"]
    source: Annotated[Base64Body | UrlBody, Field(discriminator="type")]


class DocumentBody(Body):
    type: Literal["document"]
    source: Annotated[Base64Body | UrlBody | PlainBody, Field(discriminator="type")]
    title: str | None = Field(default=None, max_length=500)
    context: str | None = Field(default=None, max_length=10_000)


Content = Annotated[TextBody | ImageBody | DocumentBody, Field(discriminator="type")]
Contents = Annotated[tuple[Content, ...], Field(max_length=MOST_BLOCKS)]


class MessageBody(Body):
    type: Literal["user.message"]
    content: Annotated[Contents, Field(min_length=1)]


class InterruptBody(Body):
    type: Literal["user.interrupt"]
    session_thread_id: str | None = None


class ConfirmationBody(Body):
    type: Literal["user.tool_confirmation"]
    tool_use_id: str = Field(max_length=60)
    result: Literal["allow", "deny"]
    deny_message: str | None = None
    session_thread_id: str | None = None
    x_edited_input: dict[str, Any] | None = None
    """Ours: what the call shall run with in place of what the agent asked for."""
    x_read_to: str | None = Field(default=None, max_length=60)
    """Ours: the last event of the call's own log that was read. Asked about anew since, it is not allowed."""


class CustomResultBody(Body):
    type: Literal["user.custom_tool_result"]
    custom_tool_use_id: str = Field(max_length=60)
    content: Contents | None = None
    is_error: bool | None = None
    session_thread_id: str | None = None


class TextRubric(Body):
    type: Literal["text"]
    content: str = Field(min_length=1, max_length=MOST_RUBRIC)


class FileRubric(Body):
    type: Literal["file"]
    file_id: str = Field(max_length=60)


class CheckBody(Body):
    run: str = Field(min_length=1, max_length=MOST_COMMAND)
    criterion: int | None = Field(default=None, ge=1)
    seconds: int = Field(default=60, ge=1, le=MOST_SECONDS)


class OutcomeBody(Body):
    type: Literal["user.define_outcome"]
    description: str = Field(min_length=1, max_length=MOST_DESCRIPTION)
    rubric: Annotated[TextRubric | FileRubric, Field(discriminator="type")]
    max_iterations: int | None = Field(default=None, ge=1, le=MOST_ITERATIONS)
    x_checks: tuple[CheckBody, ...] = Field(default=(), max_length=MOST_CHECKS)


Event = Annotated[
    MessageBody | InterruptBody | ConfirmationBody | CustomResultBody | OutcomeBody,
    Field(discriminator="type"),
]
InitialEvent = Annotated[MessageBody | OutcomeBody, Field(discriminator="type")]


class SendEvents(Body):
    events: tuple[Event, ...] = Field(min_length=1, max_length=MOST_EVENTS)


def refuse_unsupported(request: Request) -> None:
    """A clearer word than "unknown" for what the public API has and this server has not."""
    data = data_of(request)
    given = data if isinstance(data, dict) else {}
    name = "events" if "events" in given else "initial_events"
    events = given.get(name)
    for number, event in enumerate(events if isinstance(events, list) else ()):
        kind = event.get("type") if isinstance(event, dict) else None
        if kind == "user.tool_result":
            raise Invalid(
                _("Only a worker of a self-hosted environment answers calls of the agent's tools."),
                field=place(name, number, "type"),
                hint=_("Show the secret that came with the work item."),
            )
        if kind in UNSUPPORTED:
            raise Invalid(
                _("Events of type %(type)s are not taken here.") % {"type": kind},
                field=place(name, number, "type"),
                hint=_("See docs/api-divergences.md."),
            )


def to_inputs(events: Sequence[Event], caller: Caller, *, field: str) -> list[Input]:
    """Raises as `_to_input`; what is Invalid is named by its place in `field`."""
    inputs = []
    for number, event in enumerate(events):
        with written({}, at=place(field, number)):
            inputs.append(_to_input(event, caller))
    return inputs


def _to_input(event: Event, caller: Caller) -> Input:
    """Raises NotFound for the file of a rubric that is not the caller's, and Invalid for one that is no
    text."""
    match event:
        case OutcomeBody():
            return UserDefineOutcome(
                outcome_id="",
                description=event.description,
                rubric=_rubric_of(event, caller),
                max_iterations=event.max_iterations or ITERATIONS,
                checks=tuple(OutcomeCheck(**each.model_dump()) for each in event.x_checks),
            )
        case MessageBody():
            return UserMessage(content=blocks_of(event.content))
        case InterruptBody():
            thread = event.session_thread_id
            return UserInterrupt(session_thread_id=conversation_uid(thread) if thread else None)
        case ConfirmationBody():
            if event.result == "allow" and event.deny_message is not None:
                raise Invalid(
                    _("An allowed call has no deny_message."),
                    field="deny_message",
                    hint=_("Leave it out, or deny the call."),
                )
            if event.result == "deny" and event.x_edited_input is not None:
                raise Invalid(
                    _("A call that is denied runs with no input."),
                    field="x_edited_input",
                    hint=_("Leave it out, or allow the call."),
                )
            answer = UserToolConfirmation(
                tool_use_id=event.tool_use_id,
                result=event.result,
                deny_message=event.deny_message,
                edited_input=event.x_edited_input,
            )
            return Decided(answer, read_to=row_of(event.x_read_to or ""))
        case CustomResultBody():
            return UserCustomToolResult(
                custom_tool_use_id=event.custom_tool_use_id,
                content=blocks_of(event.content or ()),
                is_error=bool(event.is_error),
            )


def _rubric_of(event: OutcomeBody, caller: Caller) -> str:
    if isinstance(event.rubric, TextRubric):
        return event.rubric.content
    found = decode(read_text_file(caller, event.rubric.file_id, 4 * MOST_RUBRIC))
    if found is None or not 0 < len(found.text) <= MOST_RUBRIC:
        raise Invalid(
            _("The file of the rubric is empty, no text, or longer than %(limit)s characters.")
            % {"limit": f"{MOST_RUBRIC:,}"},
            field="rubric.file_id",
            hint=_("Upload the rubric as a text file, or send it as text."),
        )
    return found.text


_BLOCKS: TypeAdapter[tuple[Block, ...]] = TypeAdapter(tuple[Block, ...])


def blocks_of(contents: tuple[Content, ...]) -> tuple[Block, ...]:
    """As the log stores them."""
    return _BLOCKS.validate_python([content.model_dump() for content in contents])

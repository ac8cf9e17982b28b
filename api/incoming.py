"""The frames that a program may send to `/api/chat/<id>/ws`, parsed and bounded.

Whatever breaks a rule becomes one `Refused`, which names the rule and the remedy and never ends the
connection. Acting on frames is `commands`'; what is sent back is in `projection` and `stream`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from django.utils.translation import gettext as _
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from reading.foreignjson import Unreadable, read_json
from wire.socketframes import (
    KEY_CHARACTERS,
    Refused,
    bounded,
    check_content,
    object_in,
    validated,
)

REASON_CHARACTERS = 4_000
MOST_NAMED, NAME_CHARACTERS = 10, 40
"""Of fields that nobody knows."""

CLOSED_UNAUTHORISED = 4001
"""What the chat protocol closes with."""
CLOSED_BAD_ADDRESS = 4400
CLOSED_NOT_FOUND = 1000
"""The chat protocol says one error and closes normally."""

Frame = dict[str, Any]
"""A frame to the client: JSON values under names, with `type`."""


class _Incoming(BaseModel):
    """Fields nobody knows are passed over, so that a newer client may speak to an older server; the
    answer names them."""

    model_config = ConfigDict(frozen=True, strict=True, extra="allow")

    key: Annotated[str, Field(min_length=1, max_length=KEY_CHARACTERS)] | None = None
    """The sender's own word for this frame. The answer carries it, and a message that is sent twice
    with the same one is stored once."""

    def ignored(self) -> list[str]:
        """Names of fields that had no effect; ten at most, and their beginnings."""
        return [name[:NAME_CHARACTERS] for name in sorted(self.model_extra or ())[:MOST_NAMED]]


class Message(_Incoming):
    type: Literal["message"] = "message"
    content: str


class Interrupt(_Incoming):
    """Without text it is a cancel."""

    type: Literal["interrupt"] = "interrupt"
    content: str = ""


class Cancel(_Incoming):
    type: Literal["cancel"] = "cancel"


class ApprovalResponse(_Incoming):
    """`request_id` is that of the request which is answered: an answer to any other changes nothing.
    Without it, as simple clients send it, it answers the one that is open and was shown to this
    socket. A decision that is missing or unknown means deny."""

    type: Literal["tool_approval_response"] = "tool_approval_response"
    request_id: Annotated[str, Field(min_length=1, max_length=40)] | None = None
    decision: Any = "deny"
    tool_use_ids: (
        Annotated[list[Annotated[str, Field(max_length=40)]], Field(max_length=200)] | None
    ) = None
    """Only these of its calls; all of them where nothing is said."""
    reason: Annotated[str, Field(max_length=REASON_CHARACTERS)] = ""


class PlanApproval(_Incoming):
    type: Literal["plan_approval"] = "plan_approval"
    decision: Any = "reject"
    feedback: Annotated[str, Field(max_length=REASON_CHARACTERS)] = ""
    request_id: Annotated[str, Field(min_length=1, max_length=40)] | None = None
    """Which plan: that of `plan_ready`. Without it, the one that waits, if this socket was sent it."""


class Toggle(_Incoming):
    type: Literal["toggle_plan_mode", "toggle_teams", "toggle_approval", "toggle_tracing"]
    enabled: bool

    @property
    def feature(self) -> str:
        return self.type.removeprefix("toggle_")


class SetAside(_Incoming):
    """Ours: leaves a message, or what a call was answered, out of what the model is sent."""

    type: Literal["set_aside"] = "set_aside"
    event_id: Annotated[str, Field(min_length=1, max_length=40)]


class Redact(_Incoming):
    """Ours: takes what a message or an answer said, or a call brought, out of the log for good."""

    type: Literal["redact"] = "redact"
    event_id: Annotated[str, Field(min_length=1, max_length=40)]


class Ping(_Incoming):
    type: Literal["ping"] = "ping"


class Auth(_Incoming):
    """Only as the first frame of a socket that showed no token on its way in."""

    type: Literal["auth"] = "auth"
    token: Annotated[str, Field(min_length=1, max_length=500)] = Field(repr=False)


Incoming = (
    Message
    | Interrupt
    | Cancel
    | ApprovalResponse
    | PlanApproval
    | Toggle
    | SetAside
    | Redact
    | Ping
    | Auth
)

TYPES: tuple[str, ...] = (
    "message",
    "interrupt",
    "cancel",
    "tool_approval_response",
    "plan_approval",
    "toggle_plan_mode",
    "toggle_teams",
    "toggle_approval",
    "toggle_tracing",
    "set_aside",
    "redact",
    "ping",
    "auth",
)

_ADAPTER: TypeAdapter[Incoming] = TypeAdapter(Annotated[Incoming, Field(discriminator="type")])


def error(code: str, message: str, hint: str = "", key: str | None = None) -> Frame:
    """The one shape of an error on this socket: nothing was done, nothing is lost, it stays open."""
    said: Frame = {"type": "error", "code": code, "message": message, "hint": hint}
    return said if key is None else {**said, "key": key}


def refusal(refused: Refused) -> Frame:
    said = error(refused.code, refused.message, refused.hint, refused.key)
    return {**said, "field": refused.field} if refused.field else said


def parse(text: str | None) -> Incoming:
    """The frame in `text` (None: it was a binary one). Raises `socketframes.Refused` and nothing else.

    A frame without `type` is a message, and so is text that is no JSON at all.
    """
    data = _said(bounded(text))
    frame = validated(_ADAPTER, {"type": "message", **data}, TYPES)
    if isinstance(frame, Message) or (isinstance(frame, Interrupt) and frame.content.strip()):
        check_content(frame.content, frame.key)
    return frame


def _said(text: str) -> dict[str, Any]:
    data = object_in(text)
    if data is not None:
        return data
    # What was meant to be JSON must not become a message because it was cut off.
    if text.strip() and text.lstrip()[0] not in '{["' and not _is_json(text):
        return {"content": text}
    raise Refused(
        "bad_frame",
        _("A frame must be one JSON object, or the plain text of a message."),
        _('For example {"type": "message", "content": "Hello"}.'),
    )


def _is_json(text: str) -> bool:
    try:
        read_json(text)
    except Unreadable:
        return False
    return True

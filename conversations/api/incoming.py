"""The frames that a program may send to `/api/chat/<id>/ws`, parsed and bounded.

Whatever breaks a rule becomes one `Refused`, which names the rule and the remedy and never ends the
connection. Acting on frames is `commands`'; what is sent back is in `projection` and `stream`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import orjson
from django.conf import settings
from django.utils.translation import gettext as _
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

KEY_CHARACTERS = 100
"""Length of `conversations.Event.key`."""
REASON_CHARACTERS = 4_000

CLOSED_UNAUTHORISED = 4001
"""What seed OA's 0.1.1 closes with."""
CLOSED_BAD_ADDRESS = 4400
CLOSED_NOT_FOUND = 1000
"""Seed OA says one error and closes normally."""

Frame = dict[str, Any]
"""A frame to the client: JSON values under names, with `type`."""


class _Incoming(BaseModel):
    """Fields nobody knows are passed over, so that a newer client may speak to an older server."""

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")

    key: Annotated[str, Field(min_length=1, max_length=KEY_CHARACTERS)] | None = None
    """The sender's own word for this frame. The answer carries it, and a message that is sent twice
    with the same one is stored once."""


class Message(_Incoming):
    type: Literal["message"] = "message"
    content: str


class Interrupt(_Incoming):
    """Without text it is a cancel (S-17)."""

    type: Literal["interrupt"] = "interrupt"
    content: str = ""


class Cancel(_Incoming):
    type: Literal["cancel"] = "cancel"


class ApprovalResponse(_Incoming):
    """`request_id` is that of the request which is answered: an answer to any other changes nothing.
    A decision that is missing or unknown means deny (S-74)."""

    type: Literal["tool_approval_response"] = "tool_approval_response"
    request_id: Annotated[str, Field(min_length=1, max_length=40)]
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
    """Which plan: that of `plan_ready`. Without it, the one that waits."""


class Toggle(_Incoming):
    type: Literal["toggle_plan_mode", "toggle_teams", "toggle_approval", "toggle_tracing"]
    enabled: bool

    @property
    def feature(self) -> str:
        return self.type.removeprefix("toggle_")


class Ping(_Incoming):
    type: Literal["ping"] = "ping"


class Auth(_Incoming):
    """Only as the first frame of a socket that showed no token on its way in."""

    type: Literal["auth"] = "auth"
    token: Annotated[str, Field(min_length=1, max_length=500)] = Field(repr=False)


Incoming = Message | Interrupt | Cancel | ApprovalResponse | PlanApproval | Toggle | Ping | Auth

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
    "ping",
    "auth",
)

_ADAPTER: TypeAdapter[Incoming] = TypeAdapter(Annotated[Incoming, Field(discriminator="type")])


class Refused(Exception):
    """A frame that cannot be taken. `frame` is what the sender is told."""

    def __init__(self, frame: Frame) -> None:
        super().__init__(frame["message"])
        self.frame = frame


def error(code: str, message: str, hint: str = "", key: str | None = None) -> Frame:
    """The one shape of an error on this socket: nothing was done, nothing is lost, it stays open."""
    said: Frame = {"type": "error", "code": code, "message": message, "hint": hint}
    return said if key is None else {**said, "key": key}


def parse(text: str | None) -> Incoming:
    """The frame in `text` (None: it was a binary one). Raises `Refused` and nothing else.

    A frame without `type` is a message, and so is text that is no JSON at all.
    """
    if text is None:
        raise Refused(
            error("bad_frame", _("A frame must be text."), _("Send one JSON object as text."))
        )
    limit: int = settings.AGENTSITE_SOCKET_FRAME_BYTES
    if len(text) > limit or len(text.encode("utf-8", "surrogatepass")) > limit:
        raise Refused(
            error(
                "too_large",
                _("A frame may hold at most %(limit)d bytes.") % {"limit": limit},
                _("Send less text, or upload it as a file."),
            )
        )
    data = _object_in(text)
    key = data.get("key")
    key = key if isinstance(key, str) and 0 < len(key) <= KEY_CHARACTERS else None
    if data.setdefault("type", "message") not in TYPES:
        raise Refused(
            error(
                "unknown_frame",
                _("There is no such type of frame."),
                _("The types are: %(types)s.") % {"types": ", ".join(TYPES)},
                key,
            )
        )
    try:
        frame = _ADAPTER.validate_python(data, strict=True)
    except ValidationError as problem:
        raise Refused(_explained(problem, key)) from None
    if isinstance(frame, Message) or (isinstance(frame, Interrupt) and frame.content.strip()):
        _check_content(frame)
    return frame


def _object_in(text: str) -> dict[str, Any]:
    try:
        data = orjson.loads(text)
    except (orjson.JSONDecodeError, UnicodeEncodeError):
        # What was meant to be JSON must not become a message because it was cut off.
        if text.strip() and text.lstrip()[0] not in '{["':
            return {"type": "message", "content": text}
        data = None
    if isinstance(data, dict):
        return data
    raise Refused(
        error(
            "bad_frame",
            _("A frame must be one JSON object, or the plain text of a message."),
            _('For example {"type": "message", "content": "Hello"}.'),
        )
    )


def _explained(problem: ValidationError, key: str | None) -> Frame:
    first = problem.errors(include_url=False, include_input=False)[0]
    field = ".".join(str(part) for part in first["loc"][1:]) or "type"
    return error(
        "invalid",
        f"{field}: {first['msg']}.",
        _("Correct the field “%(field)s” and send the frame again.") % {"field": field},
        key,
    )


def _check_content(frame: Message | Interrupt) -> None:
    limit: int = settings.AGENTSITE_MESSAGE_CHARACTERS
    if not frame.content.strip():
        raise Refused(
            error("invalid", _("content: A message needs some text."), _("Write it."), frame.key)
        )
    if len(frame.content) > limit:
        raise Refused(
            error(
                "too_large",
                _("content: A message may hold at most %(limit)d characters; this one has %(has)d.")
                % {"limit": limit, "has": len(frame.content)},
                _("Shorten it, or upload it as a file and name the file."),
                frame.key,
            )
        )

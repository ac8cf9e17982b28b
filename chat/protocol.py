"""The words of `/ws/conversations/<uid>/`: every frame a browser may send, and may get.

Incoming frames are strict and bounded; whatever breaks a rule becomes one `Error`, which names
the rule and the remedy and never ends the connection. Acting on frames is the consumer's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

import orjson
from django.utils.translation import gettext as _
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, model_validator

from conversations.actions.answering import MOST_TOGETHER, REASON_LIMIT
from live.arriving import Closed, Snapshot
from live.items import Delta
from wire.socketframes import (
    KEY_CHARACTERS,
    Refused,
    bounded,
    check_content,
    object_in,
    validated,
)

CLOSED_BAD_ADDRESS = 4400
CLOSED_ANONYMOUS = 4401
CLOSED_NOT_FOUND = 4404
CLOSED_STALE = 4409


# --- from the browser -----------------------------------------------------------------------------


class _Incoming(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")


Key = Annotated[str, Field(min_length=1, max_length=KEY_CHARACTERS)]
Uid = Annotated[str, Field(min_length=1, max_length=40)]


class PostMessage(_Incoming):
    """`key` is the sender's own: the same key twice is one message, so resending is safe."""

    type: Literal["message"] = "message"
    content: str
    key: Key | None = None
    interrupt: bool = False
    files: Annotated[list[Uid], Field(max_length=100)] = []
    """Ids of what was uploaded for it; with some, the content may be empty."""


class Stop(_Incoming):
    type: Literal["stop"] = "stop"
    key: Key | None = None


class Move(_Incoming):
    """Has a message that waits taken before another one, or behind all."""

    type: Literal["move"] = "move"
    message: Uid
    before: Uid | None = None
    key: Key | None = None


class Release(_Incoming):
    """Lets the agent take what is held back."""

    type: Literal["release"] = "release"
    key: Key | None = None


class Discard(_Incoming):
    """Withdraws all that is held back."""

    type: Literal["discard"] = "discard"
    key: Key | None = None


class Withdraw(_Incoming):
    type: Literal["withdraw"] = "withdraw"
    message: Uid
    key: Key | None = None


class Edit(_Incoming):
    """What a message that still waits shall say instead."""

    type: Literal["edit"] = "edit"
    message: Uid
    content: str
    key: Key | None = None


class Steer(_Incoming):
    """Sends a message that still waits into the answer that is under way."""

    type: Literal["steer"] = "steer"
    message: Uid
    key: Key | None = None


class Resend(_Incoming):
    """Says a message that was taken in other words, on a branch of its own."""

    type: Literal["resend"] = "resend"
    message: Uid
    content: str
    files: bool = True
    """They go back as well."""
    key: Key | None = None


class Regenerate(_Incoming):
    """Has what led to an event, or came of a message, done anew; by `model`, where one is named."""

    type: Literal["regenerate"] = "regenerate"
    event: Uid
    model: Annotated[str, Field(max_length=200)] = ""
    files: bool = True
    """They go back as well."""
    key: Key | None = None


class Rewind(_Incoming):
    """Goes back to right before a message, or to the end of the turn of anything else."""

    type: Literal["rewind"] = "rewind"
    event: Uid
    files: bool = True
    """They go back as well."""
    key: Key | None = None


class SwitchBranch(_Incoming):
    """Goes on with the newest dialogue that leads through an event."""

    type: Literal["branch"] = "branch"
    event: Uid
    files: bool = True
    """They go back as well."""
    key: Key | None = None


class Feedback(_Incoming):
    """What the reader thinks of an answer."""

    type: Literal["feedback"] = "feedback"
    event: Uid
    rating: Literal["up", "down", "none"]
    key: Key | None = None


class SetAside(_Incoming):
    """Leaves a message, or the result of a call, out of what the model is sent from now on."""

    type: Literal["set_aside"] = "set_aside"
    event: Uid
    key: Key | None = None


class Retry(_Incoming):
    type: Literal["retry"] = "retry"
    key: Key | None = None


class Decide(_Incoming):
    """`shown` is the hash of the arguments on the card, `round` the number of its question: a call is
    allowed as it was seen, or not at all. To deny it takes neither."""

    type: Literal["decide"] = "decide"
    call: Uid
    allow: bool
    reason: Annotated[str, Field(max_length=REASON_LIMIT)] = ""
    shown: Annotated[str, Field(max_length=64)] = ""
    round: Annotated[int, Field(ge=1)] | None = None
    key: Key | None = None

    @model_validator(mode="after")
    def _require_what_was_seen(self) -> Self:
        if self.allow and not (self.shown and self.round):
            raise ValueError("what is allowed is what was shown: say shown and round")
        return self


class ShownCall(BaseModel):
    """A waiting call as the page shows it: the hash of its arguments, the number of its question."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    call: Uid
    shown: Annotated[str, Field(min_length=1, max_length=64)]
    round: Annotated[int, Field(ge=1)]


class AllowCalls(_Incoming):
    """Allows all of these as they are shown, or none."""

    type: Literal["allow_calls"] = "allow_calls"
    calls: Annotated[list[ShownCall], Field(min_length=1, max_length=MOST_TOGETHER)]
    key: Key | None = None


class DenyCalls(_Incoming):
    """Denies these for one reason: `reason`, or with `message` what that says, which waits."""

    type: Literal["deny_calls"] = "deny_calls"
    calls: Annotated[list[Uid], Field(min_length=1, max_length=MOST_TOGETHER)]
    reason: Annotated[str, Field(max_length=REASON_LIMIT)] = ""
    message: Uid | None = None
    key: Key | None = None


class GivenAnswer(BaseModel):
    """To one question: labels of its options, the person's own words, both or neither."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    chosen: Annotated[list[Annotated[str, Field(max_length=200)]], Field(max_length=20)] = []
    text: str = ""


class AnswerQuestions(_Incoming):
    """Answers what the agent asked, in the order of its questions; `skip` lets it go on without."""

    type: Literal["answer"] = "answer"
    call: Uid
    answers: Annotated[list[GivenAnswer], Field(max_length=20)] = []
    skip: bool = False
    key: Key | None = None


class GiveResult(_Incoming):
    """Answers a custom tool's call in its program's place; with `refuse`, `content` is the reason."""

    type: Literal["result"] = "result"
    call: Uid
    content: str
    refuse: bool = False
    key: Key | None = None


class SwitchFeature(_Incoming):
    type: Literal["feature"] = "feature"
    feature: Annotated[str, Field(min_length=1, max_length=40)]
    enabled: bool
    key: Key | None = None


class CancelBackground(_Incoming):
    """Ends a background command."""

    type: Literal["cancel_background"] = "cancel_background"
    background: Uid
    key: Key | None = None


class CancelAllBackground(_Incoming):
    """Ends all of them."""

    type: Literal["cancel_all_background"] = "cancel_all_background"
    key: Key | None = None


class Seen(_Incoming):
    """The person has looked at what stands up to event `seq`."""

    type: Literal["seen"] = "seen"
    seq: Annotated[int, Field(ge=0)]
    key: Key | None = None


class Resync(_Incoming):
    """Asks for a snapshot of the text that is arriving."""

    type: Literal["resync"] = "resync"
    key: Key | None = None


class Ping(_Incoming):
    type: Literal["ping"] = "ping"
    key: Key | None = None


Incoming = (
    PostMessage
    | Stop
    | Move
    | Release
    | Discard
    | Withdraw
    | Edit
    | Steer
    | Resend
    | Regenerate
    | Rewind
    | SwitchBranch
    | Feedback
    | SetAside
    | Retry
    | Decide
    | AllowCalls
    | DenyCalls
    | AnswerQuestions
    | GiveResult
    | SwitchFeature
    | CancelBackground
    | CancelAllBackground
    | Seen
    | Resync
    | Ping
)

TYPES: tuple[str, ...] = tuple(kind.model_fields["type"].default for kind in Incoming.__args__)

_ADAPTER: TypeAdapter[Incoming] = TypeAdapter(Annotated[Incoming, Field(discriminator="type")])


def parse(text: str | None) -> Incoming:
    """The frame in `text` (None: it was a binary one). Raises `socketframes.Refused` and nothing else."""
    data = object_in(bounded(text))
    if data is None:
        raise Refused(
            "bad_frame",
            _("A frame must be one JSON object."),
            _('For example {"type": "message", "content": "Hello"}.'),
        )
    frame = validated(_ADAPTER, data, TYPES)
    if isinstance(frame, Edit) or (
        isinstance(frame, PostMessage) and (frame.content.strip() or not frame.files)
    ):
        check_content(frame.content, frame.key)
    return frame


# --- to the browser -------------------------------------------------------------------------------
# Our own values, so they are plain frozen dataclasses, which orjson writes without a detour: a
# delta costs well under a microsecond.


@dataclass(frozen=True, slots=True)
class Error:
    """Nothing was done and nothing is lost; the connection stays."""

    code: str
    message: str
    hint: str = ""
    key: str | None = None
    type: Literal["error"] = "error"


def refusal(refused: Refused) -> Error:
    return Error(refused.code, refused.message, refused.hint, refused.key)


@dataclass(frozen=True, slots=True)
class Accepted:
    """Stored as event `uid` with number `seq`; both null when there was nothing to store."""

    key: str | None
    seq: int | None
    uid: str | None
    type: Literal["accepted"] = "accepted"


@dataclass(frozen=True, slots=True)
class Changed:
    """Everything up to event `seq` is now drawn by these units, or was drawn by earlier ones."""

    seq: int
    units: Sequence[Mapping[str, Any]]
    removed: Sequence[str]
    panels: Mapping[str, str | dict[str, bool]]
    cut: int | None = None
    """Another branch was chosen: what stands behind this number goes first."""
    type: Literal["changes"] = "changes"


@dataclass(frozen=True, slots=True)
class Rendered:
    """Characters `start` to `end` of streaming text as they will stand in its unit."""

    block: str
    start: int
    end: int
    html: str
    type: Literal["rendered"] = "rendered"


@dataclass(frozen=True, slots=True)
class Reload:
    """The browser's page and the log are too far apart to be patched: load the page again."""

    type: Literal["reload"] = "reload"


@dataclass(frozen=True, slots=True)
class Pong:
    type: Literal["pong"] = "pong"


Outgoing = Error | Accepted | Changed | Snapshot | Delta | Rendered | Closed | Reload | Pong


def encode(frame: Outgoing) -> str:
    return orjson.dumps(frame).decode()

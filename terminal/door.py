"""What the command line needs of a server, whether it is this machine's tables or another one's API.

`local` and `remote` implement it; what is shown of it is `screen`'s, how a person talks `talk`'s.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

Row = dict[str, Any]
"""An event as programs see it: `id`, `type` and the fields of its type."""


@dataclass(frozen=True, slots=True)
class Summary:
    uid: str
    title: str
    status: str
    stop_reason: str
    """Type of the last rest's stop reason; empty before the first, and where it is not told."""
    agent: str
    active_at: str
    """RFC 3339."""
    busy: bool
    """It works, or is about to: something of what was sent is not answered yet."""


@dataclass(frozen=True, slots=True)
class Stored:
    """An event of the log."""

    event: Row


@dataclass(frozen=True, slots=True)
class Streaming:
    """More text of a message that is arriving. `block` is the id that its event will have."""

    block: str
    offset: int
    """Characters of the message before this text. Who begins to follow anew hears it from 0 again."""
    text: str


Item = Stored | Streaming


class Door(Protocol):
    """Every call raises `harness.errors.Declined` for what may not be or does not exist."""

    def conversations(self, limit: int) -> list[Summary]:
        """The latest ones first."""

    def describe(self, uid: str) -> Summary: ...

    def begin(self, *, agent: str, environment: str, title: str) -> str:
        """Start a conversation and return its id. Empty: what begins where nobody chose."""

    def post(self, uid: str, text: str, *, interrupt: bool = False) -> None: ...

    def stop(self, uid: str) -> None: ...

    def decide(
        self,
        uid: str,
        call: str,
        *,
        allow: bool,
        reason: str = "",
        edited: dict[str, Any] | None = None,
        read_to: str = "",
    ) -> None:
        """`edited`: what the call shall run with in place of what the agent asked for; `read_to`: the last
        event that whoever answers has read, so that this answers no question from after it."""

    def set_aside(self, uid: str, event: str) -> None:
        """Go on without a message or a result that a model service refuses."""

    def branch(
        self,
        uid: str,
        act: str,
        event: str,
        *,
        content: str = "",
        model: str = "",
        files: bool = True,
    ) -> None:
        """Say a message anew, have an answer done anew, go back, or choose another branch."""

    def fork(self, uid: str, event: str) -> str:
        """The id of a new conversation that begins with a copy of this one's dialogue up to there."""

    def wake(self, uid: str) -> None: ...

    def events(self, uid: str) -> Iterator[Row]:
        """The whole log, oldest first."""

    def last_event(self, uid: str) -> str:
        """The id of the newest event; empty where there is none."""

    def follow(self, uid: str, *, after: str = "") -> Iterator[Item]:
        """What comes behind the event `after`, for as long as one asks."""

    def export(self, uid: str, form: str) -> Iterator[str]:
        """The pieces of the conversation as `markdown` or `json`."""

    def close(self) -> None: ...

"""What is served at `/mcp`, in parts: our agents are one (`serving`), an app may bring another (`offer`).

A part says what it has for the person who asks; how that travels, and which of them is asked, is `serving`'s.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

import mcp_types as types
from mcp.server.context import HandlerResult, ServerRequestContext
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel

from .tools import Principal

Context = ServerRequestContext[Any, Any]
Handler = Callable[[Context, Any], Awaitable[HandlerResult]]


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a tool: by whom, how it was asked, and what was said."""

    who: Principal
    context: Context
    params: types.CallToolRequestParams

    @property
    def arguments(self) -> dict[str, Any]:
        return self.params.arguments or {}

    @property
    def answers(self) -> Mapping[str, Any]:
        """What the client says to what it was asked before (`input_required`), by key."""
        return self.params.input_responses or {}

    @property
    def is_modern(self) -> bool:
        return self.context.protocol_version in MODERN_PROTOCOL_VERSIONS

    def can(self, capability: str) -> bool:
        """Whether the client says so of itself."""
        return can(self.context, capability)


@dataclass(frozen=True, slots=True)
class Tool:
    described: types.Tool
    call: Callable[[Call], Awaitable[HandlerResult]]


@dataclass(frozen=True, slots=True)
class Method:
    params: type[BaseModel]
    handle: Handler


@dataclass(frozen=True, slots=True)
class Page:
    resources: Sequence[types.Resource] = ()
    following: str | None = None
    """The cursor of the page after it."""


@dataclass(frozen=True, slots=True)
class Task:
    """Work that goes on by itself, as it stands."""

    uid: str
    status: Literal["working", "input_required", "completed", "failed", "cancelled"]
    created: datetime
    updated: datetime
    message: str = ""
    """For people: what it is at, or where it waits."""
    result: dict[str, Any] | None = None
    """Of `completed`: what the call would have answered."""
    error: dict[str, Any] | None = None
    """Of `failed`: the error that it would have been."""
    requests: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    """Of `input_required`: what the client is asked, by a key that is never used for anything else."""
    ttl: int | None = None
    """For how many milliseconds it is kept; None: for as long as what it belongs to."""
    poll: int = 2_000
    """Milliseconds between two looks at it."""


class Part:
    """What one app has for a person. All of it may be left out."""

    def tools(self, who: Principal) -> Sequence[Tool]:
        return ()

    async def unlisted(self, call: Call) -> HandlerResult:
        """The answer to a call of a tool that is not in the person's list, or None: not ours."""
        return None

    async def resources(self, who: Principal, cursor: str | None) -> Page | None:
        """None: the cursor is of another part."""
        return None

    def templates(self, who: Principal) -> Sequence[types.ResourceTemplate]:
        return ()

    async def read(self, who: Principal, uri: str) -> Sequence[Any] | None:
        """What stands there, or None: not ours, or not hers."""
        return None

    async def prompts(self, who: Principal) -> Sequence[types.Prompt]:
        return ()

    async def prompt(self, who: Principal, call: types.GetPromptRequestParams) -> HandlerResult:
        """None: not ours, or not hers."""
        return None

    async def task(self, who: Principal, context: Context, uid: str) -> Task | None:
        """None: not ours, or not hers."""
        return None

    async def answer_task(
        self, who: Principal, context: Context, uid: str, answers: Mapping[str, Any]
    ) -> bool:
        """Take what the client says to what a task asked; other keys are passed over. False: as `task`."""
        return False

    async def cancel_task(self, who: Principal, context: Context, uid: str) -> bool:
        """Have it end, if it has not. False: as `task`."""
        return False

    async def follow(self, who: Principal, uri: str) -> str | None:
        """The conversation in whose log a resource of hers changes, or None: not ours, not hers, or it does
        not change so."""
        return None

    async def follow_task(self, who: Principal, uid: str) -> str | None:
        """The same of a task."""
        return None

    def methods(self) -> Mapping[str, Method]:
        """Methods of the protocol that no field above is for; the same for everybody."""
        return {}


_offered: list[Part] = []


def offer(part: Part) -> None:
    """Have it served from now on. An app calls this in `ready()`."""
    _offered.append(part)


def offered() -> Sequence[Part]:
    return _offered


def can(context: Context, capability: str) -> bool:
    """Whether the client says of itself that it can this: `elicitation`, `elicitation.url`, or the name of
    an extension. Over HTTP those of the handshake revisions say it once, and nobody remembers."""
    had = context.session.client_capabilities
    if had is None:
        return False
    if "/" in capability:
        return capability in (had.extensions or {})
    whole, _dot, mode = capability.partition(".")
    found = getattr(had, whole, None)
    if found is None or not mode:
        return found is not None
    told = found.model_dump(exclude_none=True)
    # Who names no mode has forms.
    return mode in told or (mode == "form" and "url" not in told)

"""What a provider is sent and what it gives back, in no provider's dialect.

`transcript` builds messages from the log; each provider translates them to its wire and its stream
back to pieces. Nothing here is stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from harness.content import Block, Document, Image, Text
from harness.contextplan import ContextPlan


@dataclass(frozen=True, slots=True)
class Thinking:
    """Reasoning of an earlier reply. Sent back only to the provider and model that signed it."""

    text: str
    signature: str = ""
    redacted_data: str = ""
    provider: str = ""
    model: str = ""


@dataclass(frozen=True, slots=True)
class ToolCall:
    id: str
    """The uid of the tool-use event (ours, not the provider's), so it is unique and stable."""
    name: str
    input: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """What the model's service did by itself in an earlier reply. Sent back as it came, to the provider and
    model that it came from and to no other."""

    block: Mapping[str, Any]
    provider: str = ""
    model: str = ""


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    call_id: str
    content: tuple[Block, ...]
    is_error: bool = False


class PinnedText(Text):
    """Messages that a person pinned, beside the summary of the part that they stand in: a source of its own
    in the plan of a request."""


Part = Text | Image | Document | Thinking | ToolCall | ToolAnswer | Elsewhere


Role = Literal["user", "assistant"]


@dataclass(frozen=True, slots=True)
class Message:
    """Roles alternate, the first is the user's; answers stand at the start of a user message, in call
    order, directly after the assistant message that asked."""

    role: Role
    parts: tuple[Part, ...]
    notes: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """What was worked out about it once, each under its own name: most messages of a prompt were in
    the one before."""


@dataclass(frozen=True, slots=True)
class ToolSpec:
    name: str
    description: str
    input_schema: Mapping[str, Any]
    trained: str = ""
    """The service's name for this schema, where its models were trained on it; description and schema tell
    others the same."""
    notes: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """What was worked out about it once, as of a message."""


@dataclass(frozen=True, slots=True)
class RemoteServer:
    """An MCP server whose tools the model's service may call by itself: these alone, by these words."""

    name: str
    url: str
    tools: tuple[ToolSpec, ...]
    """As the server calls them."""
    token: str = field(default="", repr=False)
    """Given to the service with the request, and kept nowhere."""


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """Sampling and thinking as the agent asks for them; a provider leaves out what a model refuses."""

    temperature: float | None = None
    top_p: float | None = None
    thinking: bool = False
    effort: Literal["", "low", "medium", "high", "xhigh", "max"] = ""


@dataclass(frozen=True, slots=True)
class ServiceEdits:
    """What the service is to leave out of a prompt by itself, from so many tokens on; 0: it is not."""

    clear_at: int = 0
    keep_results: int = 3
    keep_thinking: int = 0
    """The newest turns whose thinking stays; 0: of all."""
    compact_at: int = 0


@dataclass(frozen=True, slots=True)
class ModelRequest:
    model: str
    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: Literal["auto", "none"] = "auto"
    """`none`: the tools stay in the request (their calls may be in the history) but may not be used."""
    remote: tuple[RemoteServer, ...] = ()
    """What the service itself may call; tokens are put in when it leaves."""
    max_output_tokens: int = 16_384
    settings: ModelSettings = field(default_factory=ModelSettings)
    purpose: str = "main"
    edits: ServiceEdits | None = None
    plan: ContextPlan | None = None
    """How its window is shared out; None: nobody has said."""
    prompt_at_most: int = 0
    """Its upper estimate in tokens, where that was worked out already."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one or several model calls. `input_tokens` excludes what the cache wrote or read."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int = 0

    @property
    def prompt_tokens(self) -> int:
        """All tokens of the prompt, however they were billed: how full the context was."""
        return self.input_tokens + self.cache_creation_input_tokens + self.cache_read_input_tokens

    @property
    def total_tokens(self) -> int:
        return self.prompt_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_creation_input_tokens + other.cache_creation_input_tokens,
            self.cache_read_input_tokens + other.cache_read_input_tokens,
        )

    def __sub__(self, other: Usage) -> Usage:
        """What came since `other`, which is a part of it."""
        return Usage(
            self.input_tokens - other.input_tokens,
            self.output_tokens - other.output_tokens,
            self.cache_creation_input_tokens - other.cache_creation_input_tokens,
            self.cache_read_input_tokens - other.cache_read_input_tokens,
        )


# --- pieces of a reply, in the order they arrive --------------------------------------------------


@dataclass(frozen=True, slots=True)
class TextDelta:
    index: int
    """Number of the block in this reply, counting up from 0 without gaps."""
    text: str


@dataclass(frozen=True, slots=True)
class ThinkingDelta:
    index: int
    text: str


@dataclass(frozen=True, slots=True)
class TextDone:
    """The block is complete; `text` equals its deltas joined."""

    index: int
    text: str


@dataclass(frozen=True, slots=True)
class ThinkingDone:
    index: int
    text: str
    signature: str = ""
    redacted_data: str = ""


@dataclass(frozen=True, slots=True)
class ToolCallDone:
    """A whole call. `invalid` holds the raw argument text when it was not a JSON object; `input` is
    then empty and the call is answered with an error instead of being run."""

    index: int
    name: str
    input: Mapping[str, Any]
    invalid: str = ""


@dataclass(frozen=True, slots=True)
class ElsewhereDone:
    """The service called a tool of an MCP server by itself (`use`), or tells what came of that."""

    index: int
    kind: Literal["use", "result", "listing"]
    id: str
    """By which a result names its use; the service's own."""
    server: str
    """Empty: that of the use."""
    block: Mapping[str, Any]
    """As it came."""


@dataclass(frozen=True, slots=True)
class CompactionDone:
    """The service has put a summary in the place of all that stood in the prompt."""

    summary: str
    block: Mapping[str, Any]
    """As it came, and as it wants it back in the place of that; empty: it cannot be sent back."""


@dataclass(frozen=True, slots=True)
class UsageSeen:
    """What is known of the usage so far; may come at any time, each replacing the one before. It
    is what a reply that never ends is charged with."""

    usage: Usage


@dataclass(frozen=True, slots=True)
class Unshown:
    """So many characters have arrived of what is given once it is whole: a call's arguments, a summary. A
    reply that breaks off before is charged with them. Says nothing itself."""

    characters: int


@dataclass(frozen=True, slots=True)
class Lull:
    """Text is trickling in, and what had come of it was given. Whoever waits a moment before asking on
    gets what comes meanwhile in one go, which costs less than piece by piece. Says nothing itself."""


ReplyEnd = Literal[
    "end_turn", "tool_use", "max_tokens", "stop_sequence", "pause", "refusal", "context_full"
]


@dataclass(frozen=True, slots=True)
class ReplyDone:
    """Always last, exactly once. A stream that ends without it raises `BrokenStream`."""

    end: ReplyEnd
    usage: Usage
    raw_end: str = ""
    """The provider's own word for `end`, kept for the trace."""
    detail: str = ""
    """Why it refused, when it says so."""
    cached: bool = False
    """No service was asked: it is a reply from before, and `usage` what that one had taken."""
    compaction: Usage | None = None
    """What of `usage` a summary took that the service made by itself."""
    cleared_results: int = 0
    cleared_tokens: int = 0
    """What the service left out of this prompt, of all edits together."""


Piece = (
    TextDelta
    | ThinkingDelta
    | TextDone
    | ThinkingDone
    | ToolCallDone
    | ElsewhereDone
    | CompactionDone
    | UsageSeen
    | Unshown
    | Lull
    | ReplyDone
)

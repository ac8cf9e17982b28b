"""What is known of models by the beginning of their names: windows, limits, settings they take.

Data only: providers read it to leave out what a model would refuse, forms read it for defaults.
Prices are not here; they are an editable table of the site.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal

from harness.content import Block, Image, Text

Effort = Literal["low", "medium", "high", "xhigh", "max"]

LADDER: tuple[Effort, ...] = ("low", "medium", "high", "xhigh", "max")


@dataclass(frozen=True, slots=True)
class ModelCard:
    """`prefix` is matched against the bare model name; the longest match wins."""

    prefix: str
    context_window: int
    """Tokens of prompt and reply together."""
    max_output: int | None = None
    """The most tokens one reply may be asked for; None when it is not known."""
    thinking: Literal["", "budget", "adaptive"] = ""
    """How thinking is asked for: not at all, with a number of tokens, or left to the model."""
    thinking_off: Literal["omit", "disabled", "between_tools", "never"] = "omit"
    """How it is switched off. Except for `omit`, the model thinks when nothing is said."""
    efforts: tuple[Effort, ...] = ()
    sampling: Literal["both", "either", "none"] = "both"
    """Whether temperature and top_p are taken together, one at a time, or refused."""
    output_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """What chat completions call the output limit."""
    sees: bool = True
    """Whether pictures may be sent to it."""
    features: frozenset[str] = frozenset()
    """What its service offers with it beside answers, by the service's own names: schemas of client tools
    that it was trained on, and ways of shortening the context."""

    def shown(self, block: Block) -> Block:
        """The block as this model takes it: words in place of a picture that it cannot see."""
        return UNSEEN if isinstance(block, Image) and not self.sees else block

    def effort(self, wanted: Effort) -> Effort | None:
        """The highest level the model takes that is not above `wanted`; None when it takes none."""
        allowed = LADDER[: LADDER.index(wanted) + 1]
        taken = [level for level in allowed if level in self.efforts]
        return taken[-1] if taken else None


UNSEEN = Text(text="[A picture, which this model cannot see.]")

_M = 1_000_000
_ALL = LADDER
_NO_XHIGH: tuple[Effort, ...] = ("low", "medium", "high", "max")
_THREE: tuple[Effort, ...] = ("low", "medium", "high")

_CLEARS = frozenset({"memory_20250818", "clear_tool_uses_20250919", "clear_thinking_20251015"})
_clears = partial(ModelCard, features=_CLEARS)
_compacts = partial(ModelCard, features=_CLEARS | {"compact_20260112"})

# Sources: the types of anthropic 2.12 and platform.claude.com's pages on models, thinking and
# migration; platform.openai.com's page on reasoning models. Read in November 2026.
CARDS: tuple[ModelCard, ...] = (
    _compacts("claude-fable-5", _M, 128_000, "adaptive", "never", _ALL, "none"),
    _compacts("claude-mythos", _M, 128_000, "adaptive", "never", _ALL, "none"),
    _compacts("claude-opus-5-5", _M, 128_000, "adaptive", "never", _ALL, "none"),
    _compacts("claude-sonnet-5-5", _M, 128_000, "adaptive", "between_tools", _ALL, "none"),
    _compacts("claude-haiku-5-5", _M, 128_000, "adaptive", "disabled", _ALL, "none"),
    _compacts("claude-opus-5", _M, 128_000, "adaptive", "disabled", _ALL, "none"),
    _compacts("claude-sonnet-5", _M, 128_000, "adaptive", "disabled", _ALL, "none"),
    _compacts("claude-opus-4-8", _M, 128_000, "adaptive", "omit", _ALL, "none"),
    _compacts("claude-opus-4-7", _M, 128_000, "adaptive", "omit", _ALL, "none"),
    _compacts("claude-opus-4-6", _M, 128_000, "adaptive", "omit", _NO_XHIGH, "either"),
    _compacts("claude-sonnet-4-6", _M, 64_000, "adaptive", "omit", _NO_XHIGH, "either"),
    _clears("claude-opus-4-5", 200_000, 64_000, "budget", "omit", _THREE, "either"),
    _clears("claude-sonnet-4-5", 200_000, 64_000, "budget", "omit", (), "either"),
    _clears("claude-haiku-4-5", 200_000, 64_000, "budget", "omit", (), "either"),
    # A Claude model that is newer than this table: whatever may be refused is left out.
    ModelCard("claude-", 200_000, 64_000, sampling="none"),
    ModelCard("gpt-5", 400_000, 128_000, "", "omit", _THREE, "none", "max_completion_tokens"),
    ModelCard("gpt-4", 128_000, 16_384, output_field="max_completion_tokens"),
    ModelCard("gpt-3.5", 16_385, 4_096, sees=False),
    ModelCard("gpt-oss", 131_072, None, "", "omit", _THREE, sees=False),
    ModelCard("o1", 200_000, 100_000, "", "omit", _THREE, "none", "max_completion_tokens"),
    ModelCard(
        "o3-mini", 200_000, 100_000, "", "omit", _THREE, "none", "max_completion_tokens", sees=False
    ),
    ModelCard("o3", 200_000, 100_000, "", "omit", _THREE, "none", "max_completion_tokens"),
    ModelCard("o4", 200_000, 100_000, "", "omit", _THREE, "none", "max_completion_tokens"),
    ModelCard("deepseek-chat", 128_000, sees=False),
    ModelCard("deepseek-reasoner", 128_000, sees=False),
)

UNKNOWN = ModelCard("", 128_000)
"""For every other name: nothing optional but sampling is sent, no limit is assumed, and no blindness: what
a service refuses can be set aside."""


def card_for(model: str) -> ModelCard:
    """The card of `model`, whose name may carry a prefix (`anthropic/…`, `us.anthropic.…`)."""
    bare = model.lower().rpartition("/")[2]
    if "anthropic." in bare:
        bare = bare.rpartition("anthropic.")[2]
    matches = [card for card in CARDS if bare.startswith(card.prefix)]
    return max(matches, key=lambda card: len(card.prefix), default=UNKNOWN)

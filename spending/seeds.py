"""The prices that a new installation begins with. Data only; `seeding` writes them."""

from __future__ import annotations

Price = tuple[str, str, str, str]
"""US dollars per million tokens: input, output, cache write (five minutes), cache read."""

PRICES: dict[tuple[str, str, int], Price] = {
    # Source: the published price list of the Claude API as of November 2026. The number is the
    # prompt size from which a price counts. Models that are not here show an unknown cost.
    ("anthropic", "claude-fable-5-1", 0): ("10", "50", "12.50", "0.25"),
    ("anthropic", "claude-mythos-5-1", 0): ("10", "50", "12.50", "0.25"),
    ("anthropic", "claude-fable-5", 0): ("10", "50", "12.50", "1"),
    ("anthropic", "claude-mythos-5", 0): ("10", "50", "12.50", "1"),
    ("anthropic", "claude-opus-5-5", 0): ("4", "20", "5", "0.20"),
    ("anthropic", "claude-opus-5", 0): ("5", "25", "6.25", "0.50"),
    ("anthropic", "claude-opus-4-8", 0): ("5", "25", "6.25", "0.50"),
    ("anthropic", "claude-opus-4-7", 0): ("5", "25", "6.25", "0.50"),
    ("anthropic", "claude-opus-4-6", 0): ("5", "25", "6.25", "0.50"),
    ("anthropic", "claude-opus-4-5", 0): ("5", "25", "6.25", "0.50"),
    ("anthropic", "claude-sonnet-5-5", 0): ("2", "10", "2.50", "0.10"),
    ("anthropic", "claude-sonnet-5", 0): ("2", "10", "2.50", "0.20"),
    ("anthropic", "claude-sonnet-4-6", 0): ("3", "15", "3.75", "0.30"),
    ("anthropic", "claude-sonnet-4-5", 0): ("3", "15", "3.75", "0.30"),
    ("anthropic", "claude-haiku-5-5", 0): ("0.10", "0.50", "0.125", "0.01"),
    ("anthropic", "claude-haiku-5-5", 100_001): ("0.50", "2.50", "0.625", "0.05"),
    ("anthropic", "claude-haiku-4-5", 0): ("1", "5", "1.25", "0.10"),
    ("demo", "demo", 0): ("0", "0", "0", "0"),
}

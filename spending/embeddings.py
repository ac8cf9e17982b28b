"""What a service of embeddings is asked counts in the budgets of the server, the organisation and the person,
and stands in usage as `embedding`. How a call of no conversation is counted is `apart`'s part.
"""

from __future__ import annotations

from harness.events import SpanModelRequestStart
from harness.messages import Usage as Tokens
from memory.embedding.paying import Payer

from .apart import hold_apart, settle_apart

PURPOSE = "embedding"
PROVIDER = "embeddings"
"""Of the service in usage and in the table of prices."""


class EmbeddingsCounted:
    """By `memory.embedding.paying.Counting`."""

    def hold(self, payer: Payer, *, model: str, tokens: int) -> str | None:
        begun = SpanModelRequestStart(
            purpose=PURPOSE,
            provider=PROVIDER,
            model=model,
            prompt_tokens_at_most=tokens,
            server_keys=True,
        )
        return hold_apart(begun, organisation=payer.organisation, user=payer.user)

    def settle(self, call: str, tokens: int) -> None:
        settle_apart(call, Tokens(input_tokens=tokens))

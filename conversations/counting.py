"""Counts for /metrics what the log stored. Tables hold the truth; these numbers are for graphs."""

from __future__ import annotations

from harness.events import SessionError, SpanModelRequestEnd, SpanModelRequestStart
from jobs import metrics


def count_call(begun: SpanModelRequestStart, ended: SpanModelRequestEnd) -> None:
    labels = (begun.provider, begun.model)
    metrics.MODEL_CALLS.labels(*labels, begun.purpose, ended.end).inc()
    for kind, tokens in ended.model_usage.model_dump().items():
        if isinstance(tokens, int):
            metrics.TOKENS.labels(*labels, kind.removesuffix("_tokens")).inc(tokens)


def count_error(event: SessionError) -> None:
    metrics.ERRORS.labels(event.error.code or event.error.type).inc()

"""Spans as OpenTelemetry's protocol has them (OTLP/HTTP with JSON, version 1 of its trace service), with the
conventions for generative AI. Pure; no library of OpenTelemetry is needed for it.

Source: opentelemetry.io/docs/specs/otlp and /docs/specs/semconv/gen-ai. Ids are made of those of the log, so
that whoever sends a part of a trace, in whichever process, says the same ones.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

from .spans import Span

CLIENT, INTERNAL = 3, 1
"""SpanKind."""
ERROR = 2
"""StatusCode."""
SCOPE = "agentsite.timelines"


def trace_id(root_turn: str) -> str:
    """32 hexadecimal digits, of the id of the event that began the first turn."""
    return hashlib.sha256(f"trace {root_turn}".encode()).hexdigest()[:32]


def span_id(uid: str) -> str:
    """16 hexadecimal digits."""
    return hashlib.sha256(f"span {uid}".encode()).hexdigest()[:16]


def request_of(turn: Span, *, trace: str, parent: str, service: str, now: float) -> dict[str, Any]:
    """The body of one export: the turn with all it consists of, below the span `parent` ("": none)."""
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": [_attribute("service.name", service)]},
                "scopeSpans": [
                    {
                        "scope": {"name": SCOPE},
                        "spans": list(_spans(turn, trace, parent, turn.end or now)),
                    }
                ],
            }
        ]
    }


def _spans(span: Span, trace: str, parent: str, latest: float) -> Iterator[dict[str, Any]]:
    own = span_id(span.uid)
    end = latest if span.end is None else span.end
    made: dict[str, Any] = {
        "traceId": trace,
        "spanId": own,
        "name": span.name,
        "kind": CLIENT if span.kind == "model" else INTERNAL,
        "startTimeUnixNano": _nanoseconds(span.start),
        "endTimeUnixNano": _nanoseconds(max(end, span.start)),
        "attributes": [_attribute(name, value) for name, value in span.facts.items()],
    }
    if parent:
        made["parentSpanId"] = parent
    if span.failed:
        made["status"] = {"code": ERROR, "message": span.failed}
        made["attributes"].append(_attribute("error.type", span.failed))
    yield made
    for each in span.spans:
        yield from _spans(each, trace, own, latest)


def _nanoseconds(seconds: float) -> str:
    # JSON's mapping of 64-bit integers is text.
    return str(round(seconds * 1_000_000) * 1_000)


def _attribute(name: str, value: str | int) -> dict[str, Any]:
    if isinstance(value, int):
        return {"key": name, "value": {"intValue": str(value)}}
    return {"key": name, "value": {"stringValue": value}}

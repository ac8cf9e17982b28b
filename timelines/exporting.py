"""Sends turns that ended to a collector, read from the log afterwards: a run waits for nothing of it.

At most once, and without a second try: a collector that is away or hangs loses what it missed, and nobody
else loses anything. What was said is never sent.
"""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass
from typing import Any

import httpx2
from django.conf import settings

from conversations.models import Conversation, Event
from harness.events import Event as EventValue
from jobs.dispatch import dispatch

from .otlp import request_of, span_id, trace_id
from .reading import beginning_before, root_of, turn_from
from .spans import ends_turn

logger = logging.getLogger(__name__)

EXPORT = "timelines.export"
SECONDS = 10
"""That a collector has for its answer."""


@dataclass(frozen=True, slots=True)
class Sending:
    """What is to be sent, made in a database thread."""

    trace: str
    body: dict[str, Any]


def send_what_ended(conversation: Conversation, row: Event, event: EventValue) -> None:
    """In the transaction of the rest. Without a collector nothing is done."""
    if settings.AGENTSITE_OTLP_ENDPOINT and ends_turn(event):
        dispatch(EXPORT, conversation_id=conversation.pk, seq=row.seq)


def sending_of(conversation_id: int, seq: int) -> Sending | None:
    """Of the turn that ended there; a subagent's goes below the span of the call that asked for it."""
    rows = Conversation.objects.select_related("agent_version__agent")
    conversation = rows.filter(pk=conversation_id).first()
    beginning = beginning_before(conversation, seq) if conversation else None
    if conversation is None or beginning is None:
        return None
    turn = turn_from(conversation, beginning.seq)
    if turn is None:
        return None
    root = root_of(conversation, beginning)
    trace, parent = trace_id(root.turn), span_id(root.parent) if root.parent else ""
    service = settings.AGENTSITE_OTLP_SERVICE
    body = request_of(turn, trace=trace, parent=parent, service=service, now=time.time())
    return Sending(trace, body)


async def send(sending: Sending) -> None:
    """To `AGENTSITE_OTLP_ENDPOINT`; a failure is a line of the log."""
    address = f"{settings.AGENTSITE_OTLP_ENDPOINT.rstrip('/')}/v1/traces"
    headers = dict(settings.AGENTSITE_OTLP_HEADERS)
    try:
        async with (
            asyncio.timeout(SECONDS),
            httpx2.AsyncClient(timeout=SECONDS, trust_env=False, follow_redirects=False) as client,
        ):
            answer = await client.post(address, json=sending.body, headers=headers)
    except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError) as problem:
        logger.warning("the trace %s was not sent: %s", sending.trace, type(problem).__name__)
        return
    if answer.status_code >= 300:
        logger.warning("the trace %s was answered with %s", sending.trace, answer.status_code)

"""What model requests between two places of a log used, as frames say it."""

from __future__ import annotations

from conversations.models import Conversation, Event
from harness.events import ModelUsage, SpanModelRequestEnd, SpanModelRequestStart
from jobs.prepared import Prepared

from .incoming import Frame

_REQUESTS = Prepared(
    lambda given: Event.objects.filter(
        conversation=given.conversation,
        type__in=("span.model_request_start", "span.model_request_end"),
        seq__gt=given.after,
        seq__lt=given.before,
    ).order_by("seq")
)


def usage_of(conversation: Conversation, after: int, before: int) -> Frame:
    spans = _REQUESTS.all(conversation=conversation.pk, after=after, before=before)
    purposes: dict[str, str] = {}
    prompt = output = last = 0
    for row in spans:
        value = row.value
        if isinstance(value, SpanModelRequestStart):
            purposes[row.uid] = value.purpose
        elif isinstance(value, SpanModelRequestEnd):
            used = value.model_usage
            prompt += prompt_tokens(used)
            output += used.output_tokens
            if purposes.get(value.model_request_start_id) == "main":
                last = prompt_tokens(used)
    return {
        "input_tokens": prompt,
        "output_tokens": output,
        "last_input_tokens": last,
        "plan_mode": conversation.features.plan_mode,
    }


def prompt_tokens(usage: ModelUsage) -> int:
    """All that was sent, whether a cache helped or not."""
    return usage.input_tokens + usage.cache_creation_input_tokens + usage.cache_read_input_tokens

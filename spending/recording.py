"""Turns the end of a model request into a usage row, with money by the price table.

Reports read these rows, budgets are settled with them; nothing else counts tokens.
"""

from __future__ import annotations

from dataclasses import asdict
from decimal import Decimal
from functools import partial

from django.db import transaction
from django.utils import timezone

from accounts.models import User
from accounts.persons import charged_person
from conversations import logsql
from conversations.counting import count_call
from conversations.models import Conversation, Run
from harness.events import SpanModelRequestEnd, SpanModelRequestStart
from harness.messages import Usage as Tokens
from jobs.prepared import Prepared

from . import budgets
from .models import MODEL_LENGTH, Usage
from .prices import cost_of, find_price

_PERSON = Prepared(lambda given: User.objects.filter(pk=given.pk))


def record_request_end(
    conversation: Conversation,
    begun: SpanModelRequestStart,
    ended: SpanModelRequestEnd,
    *,
    run: Run | None,
    asker: User | None = None,
) -> None:
    """Write the one usage row of this request, settle the budgets it counts against and note how
    full the context was. A reply from a cache is no model call: it has no row and costs nothing.
    `asker` is for whom it was made, unless for whom the conversation's present turn is."""
    tokens, summary = _both(ended)
    if begun.purpose == "main" and not ended.is_error:
        conversation.context_tokens = tokens.total_tokens
    if ended.cached:
        tokens = summary = Tokens()
    cost = Decimal(0) if ended.cached else _cost(begun, tokens)
    if cost is not None and summary.total_tokens:
        more = _cost(begun, summary)
        cost = None if more is None else cost + more
    tokens += summary
    person = asker or _asker(conversation)
    usage = Usage(
        model_request_id=ended.model_request_start_id,
        organisation_id=conversation.organisation_id,
        user_id=person.pk,
        charged_to_id=charged_person(person, conversation.organisation_id),
        server_keys=begun.server_keys,
        conversation=conversation,
        run=run,
        purpose=begun.purpose,
        provider=begun.provider,
        model=begun.model[:MODEL_LENGTH],
        input_tokens=tokens.input_tokens,
        output_tokens=tokens.output_tokens,
        cache_creation_input_tokens=tokens.cache_creation_input_tokens,
        cache_read_input_tokens=tokens.cache_read_input_tokens,
        cost=cost,
        milliseconds=ended.milliseconds,
        first_delta_milliseconds=ended.first_delta_milliseconds,
    )
    if ended.cached:
        budgets.settle(conversation, usage, now=timezone.now())
        return
    if logsql.insert([usage], unless_known="model_request_id"):
        # After the row: a budget that comes into force meanwhile counts the row or is settled here.
        budgets.settle(conversation, usage, now=timezone.now())
    transaction.on_commit(partial(count_call, begun, ended))


def _both(ended: SpanModelRequestEnd) -> tuple[Tokens, Tokens]:
    """What the reply took, and what a summary did that its service made before: two prompts, each with the
    price of its size."""
    whole, made = Tokens(**ended.model_usage.model_dump()), ended.edited and ended.edited.compaction
    summary = Tokens(**made.model_dump()) if made else Tokens()
    rest = whole - summary
    # A log of others may tell of a summary that is no part of the whole.
    return (whole, Tokens()) if min(asdict(rest).values()) < 0 else (rest, summary)


def _cost(begun: SpanModelRequestStart, tokens: Tokens) -> Decimal | None:
    return cost_of(find_price(begun.provider, begun.model, tokens.prompt_tokens), tokens)


def _asker(conversation: Conversation) -> User:
    return _PERSON.first(pk=conversation.asker_id) or conversation.owner

"""What a model is asked outside of any run is held back in every budget before and counted after, as a call
of the loop is, within so many tokens a day for each person.

A row of the asker's (`CallBeside`) is the claim: it is stored before anything is sent, so that a call whose
process ends is counted by a sweep. What is asked and why is the asker's part (`titles`, `learning`).
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, ClassVar

from django.conf import settings
from django.db import models, transaction
from django.db.models import QuerySet, Sum
from django.utils import timezone

from accounts.models import User
from accounts.persons import sharing_place, whose_place
from conversations.models import Conversation
from harness.estimates import likely_prompt_tokens, prompt_tokens_at_most
from harness.events import ModelUsage, SpanModelRequestEnd, SpanModelRequestStart
from harness.ids import new_event_id
from harness.messages import ModelRequest

from . import budgets
from .models import Usage
from .recording import record_request_end

REST = timedelta(hours=1)
"""After a model did not answer, nothing of the kind is asked of it for so long in that organisation."""
LOST_AFTER = timedelta(minutes=10)
"""By then a process that asked has heard or is gone."""
AT_A_TIME = 100
ASKED, FAILED = "asked", "failed"
"""Outcomes that every asker has."""


class CallBeside(models.Model):
    """What an asker's row says of its call. It has a `conversation`, an `outcome` and `at`, when it asked."""

    PURPOSE: ClassVar[str]
    """Of the call, in usage."""

    conversation_id: int
    outcome: Any
    at: Any

    model_request_id = models.CharField(max_length=40, null=True, unique=True)
    """None: no model was asked."""
    provider = models.CharField(max_length=50, blank=True)
    model = models.CharField(max_length=100, blank=True)
    asker = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    """For whom it is and who pays, whoever speaks in the conversation before it ends."""
    server_keys = models.BooleanField(default=False)
    prompt_tokens_at_most = models.PositiveIntegerField(default=0)
    output_tokens_at_most = models.PositiveIntegerField(default=0)

    class Meta:
        abstract = True

    @property
    def begun(self) -> SpanModelRequestStart:
        """The call as a log would tell of it."""
        return SpanModelRequestStart(
            purpose=self.PURPOSE,
            provider=self.provider,
            model=self.model,
            prompt_tokens_at_most=self.prompt_tokens_at_most,
            output_tokens_at_most=self.output_tokens_at_most,
            server_keys=self.server_keys,
        )

    @property
    def lost_end(self) -> SpanModelRequestEnd:
        """How a call ended whose answer nobody will hear: with what it has probably cost."""
        return SpanModelRequestEnd(
            model_request_start_id=self.model_request_id or "",
            model_usage=ModelUsage(
                input_tokens=likely_prompt_tokens(self.prompt_tokens_at_most),
                output_tokens=self.output_tokens_at_most,
            ),
            is_error=True,
            end="lost",
            estimated=True,
        )


def plan_call(row: CallBeside, request: ModelRequest, provider: str, *, server_keys: bool) -> None:
    """Have the row say what is asked of whom, and what that costs at most."""
    row.provider, row.model, row.server_keys = provider, request.model, server_keys
    row.prompt_tokens_at_most = prompt_tokens_at_most(request)
    row.output_tokens_at_most = request.max_output_tokens


def hold_back(conversation: Conversation, row: CallBeside) -> bool:
    """Store the row as asked, with what its call costs at most held back in every budget. False, and nothing
    is stored, where one has no room. Nobody is stopped by that."""
    row.outcome, row.model_request_id = ASKED, new_event_id()
    row.asker_id = conversation.asker_id
    try:
        with transaction.atomic():
            row.save()
            budgets.reserve(conversation, row.model_request_id, row.begun, now=timezone.now())
    except budgets.CapReached:
        row.model_request_id = row.asker_id = None
        return False
    return True


def record_end(conversation: Conversation, row: CallBeside, ended: SpanModelRequestEnd) -> None:
    """Count what the call took for whom it was asked. In the transaction that says how it ended."""
    record_request_end(conversation, row.begun, ended, run=None, asker=row.asker)


def rests(rows: QuerySet[Any], organisation_id: int, provider: str, model: str) -> bool:
    """Whether this model did not answer lately what such rows ask."""
    return rows.filter(
        outcome=FAILED,
        provider=provider,
        model=model,
        at__gt=timezone.now() - REST,
        conversation__organisation=organisation_id,
    ).exists()


def lost(rows: QuerySet[Any]) -> QuerySet[Any]:
    """Those whose process ended before the answer, some at a time."""
    asked = rows.filter(outcome=ASKED, at__lt=timezone.now() - LOST_AFTER)
    return asked.order_by("at")[:AT_A_TIME]


def room_today(conversation: Conversation, rows: QuerySet[Any], *, purpose: str, most: int) -> int:
    """Tokens that such calls may still take today, in the site's time zone, of the person for whom its
    present turn is: with all who share her place, and held, so that of many requests each finds the ones
    before."""
    midnight = _midnight()
    place = whose_place(User.objects.get(pk=conversation.asker_id))
    User.objects.select_for_update(no_key=True).filter(pk=place).order_by().first()
    hers = sharing_place(place).values("pk")
    counted = Usage.objects.filter(user__in=hers, purpose=purpose)
    spent = counted.filter(created_at__gte=midnight).order_by()
    used = spent.aggregate(**{name: Sum(name, default=0) for name in Usage.TOKENS})
    asked = rows.filter(outcome=ASKED, at__gte=midnight, asker__in=hers)
    held = asked.aggregate(
        prompt=Sum("prompt_tokens_at_most", default=0),
        output=Sum("output_tokens_at_most", default=0),
    )
    return int(most - sum(used.values()) - sum(held.values()))


def _midnight() -> datetime:
    return timezone.localtime().replace(hour=0, minute=0, second=0, microsecond=0)

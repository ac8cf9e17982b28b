"""A conversation is named by a model: asked for once, paid for as any call, and never over a person's title.

How the model is asked is `asking`'s part. Nobody acts here but the server, so nobody's permission is asked;
the call is made for whoever spoke last, with her keys and under her budgets.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet, Sum
from django.utils import timezone

from accounts.models import User
from accounts.persons import sharing_place, whose_place
from conversations.departures import has_left
from conversations.kits import Choice, choose_provider, current_texts, ready
from conversations.log import append
from conversations.models import Conversation, Event
from conversations.titled import automatic_title
from harness.agentconfig import AgentConfig
from harness.content import text_of
from harness.estimates import likely_prompt_tokens, prompt_tokens_at_most
from harness.events import (
    MessageEdited,
    ModelUsage,
    SessionUpdated,
    SpanModelRequestEnd,
    UserDefineOutcome,
    UserMessage,
)
from harness.history import Entry
from harness.ids import new_event_id
from harness.messages import ModelRequest
from jobs.apart import each_apart
from spending import budgets
from spending.models import Usage
from spending.recording import record_request_end
from titles.models import PURPOSE, TitleRequest
from titles.wording import SHORT, title_in, title_request

REST = timedelta(hours=1)
"""After a model did not answer, no other title is asked of it for so long in that organisation."""
LOST_AFTER = timedelta(minutes=10)
"""By then a process that asked has heard or is gone."""
AT_A_TIME = 100

Outcome = TitleRequest.Outcome


@dataclass(frozen=True, slots=True)
class Named:
    """A model may now be asked: what it costs at most is held back."""

    row: int
    uid: str
    """Of the model call."""
    choice: Choice
    config: AgentConfig
    request: ModelRequest


def begin(conversation_id: int) -> Named | None:
    """Claim to ask; None where nobody is to be asked, now or ever. A row says why, but where that may change:
    no key, no model for titles of that service, or one that did not answer lately."""
    conversation = (
        Conversation.objects.select_related("owner", "organisation", "agent_version")
        .filter(pk=conversation_id, title_request=None)
        .first()
    )
    if conversation is None or conversation.owner.is_service or has_left(conversation):
        return None
    choice = choose_provider(conversation.config, conversation.owner, conversation.organisation)
    model = settings.AGENTSITE_TITLE_MODELS.get(choice.provider, "")
    if not model or choice.config is None or _rests(conversation, choice.provider, model):
        return None
    choice = ready(choice)
    with transaction.atomic():
        # Whoever names it, deletes it or takes the message out waits for this row.
        held = Conversation.objects.select_for_update().filter(pk=conversation_id).first()
        if held is None or TitleRequest.objects.filter(conversation=held).exists():
            return None
        row = TitleRequest(conversation=held, outcome=Outcome.KEPT)
        given = automatic_title(held)
        words = _words_of(held, given.made_of) if given is not None else ""
        if given is None or len(words) <= SHORT:
            row.save()
            return None
        request = title_request(words, texts=current_texts(), model=model)
        row.message_uid, row.replaces = given.made_of, given.uid
        row.provider, row.model, row.server_keys = choice.provider, model, choice.server_keys
        row.prompt_tokens_at_most = prompt_tokens_at_most(request)
        row.output_tokens_at_most = request.max_output_tokens
        if _room_today(held) < row.prompt_tokens_at_most + row.output_tokens_at_most:
            return None
        if not _reserve(held, row):
            return None
        return Named(row.pk, row.model_request_id or "", choice, held.config, request)


def end(request: int, ended: SpanModelRequestEnd, answer: str) -> None:
    """Record what the call used, and give the title, unless somebody gave one meanwhile. Nothing for one that
    has ended already."""
    row = TitleRequest.objects.filter(pk=request).first()
    if row is None:
        return
    with transaction.atomic():
        held = Conversation.objects.select_for_update().filter(pk=row.conversation_id).first()
        row = TitleRequest.objects.filter(pk=request, outcome=Outcome.ASKED).first()
        if row is None or held is None:
            return
        record_request_end(held, row.begun, ended, run=None)
        title = "" if ended.is_error else title_in(answer)
        given = automatic_title(held)
        if not title:
            row.outcome = Outcome.LOST if ended.end == "lost" else Outcome.FAILED
        elif given is None or given.uid != row.replaces:
            row.outcome = Outcome.KEPT
        else:
            named = SessionUpdated(title=title, made_of=row.message_uid)
            append(held.pk, [Entry.of(named)], actor=None)
            row.outcome = Outcome.TITLED
        row.save(update_fields=["outcome"])


def lose(row: TitleRequest) -> None:
    """Count a call whose answer nobody will hear as what it has probably cost. It is not asked again."""
    ended = SpanModelRequestEnd(
        model_request_start_id=row.model_request_id or "",
        model_usage=ModelUsage(
            input_tokens=likely_prompt_tokens(row.prompt_tokens_at_most),
            output_tokens=row.output_tokens_at_most,
        ),
        is_error=True,
        end="lost",
        estimated=True,
    )
    end(row.pk, ended, "")


def settle_lost() -> None:
    """Of what processes had asked that ended before the answer."""
    asked = TitleRequest.objects.filter(outcome=Outcome.ASKED, at__lt=timezone.now() - LOST_AFTER)
    found = asked.order_by("at")[:AT_A_TIME]
    each_apart(lose, found, told="the request for a title %s could not be counted")


def _words_of(conversation: Conversation, message_uid: str) -> str:
    about = Event.objects.filter(conversation=conversation, subject=message_uid).order_by("seq")
    words = ""
    for row in about:
        match row.value:
            case UserMessage(content=content) | MessageEdited(content=content):
                words = text_of(content[:1])
            case UserDefineOutcome(description=description):
                words = description
            case _:
                pass
    return words


def _rests(conversation: Conversation, provider: str, model: str) -> bool:
    return TitleRequest.objects.filter(
        outcome=Outcome.FAILED,
        provider=provider,
        model=model,
        at__gt=timezone.now() - REST,
        conversation__organisation=conversation.organisation_id,
    ).exists()


def _room_today(conversation: Conversation) -> int:
    """Tokens that titles may still take today, in the site's time zone, of the person for whom its present
    turn is: with all who share her place, and held, so that of many requests each finds the ones before."""
    midnight = timezone.localtime().replace(hour=0, minute=0, second=0, microsecond=0)
    place = whose_place(User.objects.get(pk=conversation.asker_id))
    User.objects.select_for_update(no_key=True).filter(pk=place).order_by().first()
    hers = sharing_place(place).values("pk")
    titles = Usage.objects.filter(user__in=hers, purpose=PURPOSE)
    spent = titles.filter(created_at__gte=midnight).order_by()
    used = spent.aggregate(**{name: Sum(name, default=0) for name in Usage.TOKENS})
    asked = TitleRequest.objects.filter(outcome=Outcome.ASKED, at__gte=midnight)
    held = asked.filter(_for_one_of(hers)).aggregate(
        prompt=Sum("prompt_tokens_at_most", default=0),
        output=Sum("output_tokens_at_most", default=0),
    )
    return int(settings.AGENTSITE_TITLE_TOKENS_PER_DAY - sum(used.values()) - sum(held.values()))


def _for_one_of(people: QuerySet[Any, Any]) -> Q:
    """`Conversation.asker_id` as a filter of requests: who is to be charged once they end."""
    by_others = Q(conversation__others_wrote=True, conversation__asked_by__isnull=False)
    return by_others & Q(conversation__asked_by__in=people) | ~by_others & Q(
        conversation__owner__in=people
    )


def _reserve(conversation: Conversation, row: TitleRequest) -> bool:
    row.outcome, row.model_request_id = Outcome.ASKED, new_event_id()
    try:
        with transaction.atomic():
            row.save()
            budgets.reserve(conversation, row.model_request_id, row.begun, now=timezone.now())
    except budgets.CapReached:
        # Nobody stopped: what a title would have cost ends no work.
        row.pk, row.outcome, row.model_request_id = None, Outcome.NO_ROOM, None
        row.save(force_insert=True)
        return False
    return True

"""A conversation is named by a model: asked for once, paid for as any call, and never over a person's title.

How the model is asked is `asking`'s part. Nobody acts here but the server, so nobody's permission is asked;
the call is made with the keys that a run of the conversation has, and charged to whoever spoke last.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings
from django.db import transaction

from conversations.departures import has_left
from conversations.kits import Choice, choose_provider, current_texts, ready
from conversations.log import append
from conversations.models import Conversation, Event
from conversations.titled import automatic_title
from harness.agentconfig import AgentConfig
from harness.content import text_of
from harness.events import (
    ContentSetAside,
    MessageEdited,
    SessionUpdated,
    SpanModelRequestEnd,
    UserDefineOutcome,
    UserMessage,
)
from harness.history import Entry
from harness.messages import ModelRequest
from jobs.apart import each_apart
from spending.beside import hold_back, lost, plan_call, record_end, rests, room_today
from titles.models import PURPOSE, TitleRequest
from titles.wording import SHORT, title_in, title_request

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
    if (
        not model
        or choice.config is None
        or rests(TitleRequest.objects.all(), conversation.organisation_id, choice.provider, model)
    ):
        return None
    choice = ready(choice)
    with transaction.atomic():
        # Whoever names it, deletes it or takes the message out waits for this row.
        held = (
            Conversation.objects.select_for_update(no_key=True).filter(pk=conversation_id).first()
        )
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
        plan_call(row, request, choice.provider, server_keys=choice.server_keys)
        if _room_today(held) < row.prompt_tokens_at_most + row.output_tokens_at_most:
            return None
        if not hold_back(held, row):
            row.pk, row.outcome = None, Outcome.NO_ROOM
            row.save(force_insert=True)
            return None
        return Named(row.pk, row.model_request_id or "", choice, held.config, request)


def end(request: int, ended: SpanModelRequestEnd, answer: str) -> None:
    """Record what the call used, and give the title, unless somebody gave one meanwhile. Nothing for one that
    has ended already."""
    row = TitleRequest.objects.filter(pk=request).first()
    if row is None:
        return
    with transaction.atomic():
        held = (
            Conversation.objects.select_for_update(no_key=True)
            .filter(pk=row.conversation_id)
            .first()
        )
        row = TitleRequest.objects.filter(pk=request, outcome=Outcome.ASKED).first()
        if row is None or held is None:
            return
        record_end(held, row, ended)
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
    end(row.pk, row.lost_end, "")


def settle_lost() -> None:
    """Of what processes had asked that ended before the answer."""
    told = "the request for a title %s could not be counted"
    each_apart(lose, lost(TitleRequest.objects.all()), told=told)


def _words_of(conversation: Conversation, message_uid: str) -> str:
    about = Event.objects.filter(conversation=conversation, subject=message_uid).order_by("seq")
    words = ""
    for row in about:
        match row.value:
            case UserMessage(content=content) | MessageEdited(content=content):
                words = text_of(content[:1])
            case UserDefineOutcome(description=description):
                words = description
            case ContentSetAside():
                return ""  # no model is shown it
            case _:
                pass
    return words


def _room_today(conversation: Conversation) -> int:
    most = settings.AGENTSITE_TITLE_TOKENS_PER_DAY
    return room_today(conversation, TitleRequest.objects.all(), purpose=PURPOSE, most=most)

"""A model writes the short text of a brief: asked for once, paid for as any call, and the brief goes out with
it or without.

How the model is asked is `asking`'s part. Nobody acts here but the server, for the person whose brief it is,
with her keys and under her budgets. What she sees of a text that did not come is the brief as it is without.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.db import transaction
from django.db.models import Sum
from django.utils import timezone

from accounts.languages import language_of
from accounts.models import User
from accounts.persons import sharing_place, whose_place
from conversations.kits import Choice, current_texts, ready
from harness.agentconfig import AgentConfig
from harness.estimates import prompt_tokens_at_most
from harness.events import SpanModelRequestEnd, SpanModelRequestStart
from harness.messages import ModelRequest, ModelSettings
from harness.messages import Usage as Tokens
from jobs.apart import each_apart
from spending.apart import hold_apart, settle_apart
from spending.beside import LOST_AFTER, REST
from spending.models import Usage

from .choosing import choice_of, writer_of
from .models import Brief, BriefWish
from .sending import AT_A_TIME, belongs, send_off
from .wording import PURPOSE, brief_request, text_in

Writing = Brief.Writing


@dataclass(frozen=True, slots=True)
class Claim:
    """A model may now be asked: what it costs at most is counted."""

    brief: int
    uid: str
    """Of the model call."""
    choice: Choice
    config: AgentConfig
    request: ModelRequest


def begin(brief_id: int, now: datetime | None = None) -> Claim | None:
    """Claim to ask. None where nobody is to be asked or somebody has been: then it has gone out, or whoever
    asks has it go out."""
    brief = Brief.objects.to_write().filter(pk=brief_id).first()
    if brief is None:
        return None
    wish = _wish(brief)
    config = writer_of(wish) if wish is not None and _is_wanted(wish) else None
    choice = choice_of(wish, config) if wish is not None and config is not None else None
    if choice is not None:
        choice = ready(choice)  # which may wait for names, so it is done while no row is held
    with transaction.atomic():
        held = Brief.objects.to_write().filter(pk=brief_id).select_for_update(of=("self",))
        brief = held.first()
        if brief is None:
            return None
        found = _claim(brief, wish, config, choice, now or timezone.now())
        if isinstance(found, Claim):
            return found
        brief.writing = found
        brief.save(update_fields=["writing", "provider", "model"])
        _let_go(brief)
        return None


def _claim(
    brief: Brief,
    wish: BriefWish | None,
    config: AgentConfig | None,
    choice: Choice | None,
    now: datetime,
) -> Claim | Writing:
    """The claim, or why no model is asked."""
    if wish is None or not _is_wanted(wish):
        return Writing.NONE
    if config is None or choice is None:
        return Writing.NO_MODEL
    request = brief_request(
        brief.contents,
        language=language_of(wish.user),
        # After the lines are there.
        marker=secrets.token_hex(8),
        texts=current_texts(),
        model=choice.model,
        settings=ModelSettings(effort=config.effort),
    )
    begun = SpanModelRequestStart(
        purpose=PURPOSE,
        provider=choice.provider,
        model=choice.model,
        prompt_tokens_at_most=prompt_tokens_at_most(request),
        output_tokens_at_most=request.max_output_tokens,
        server_keys=choice.server_keys,
    )
    brief.provider, brief.model = choice.provider, choice.model
    if _rests(brief):
        return Writing.RESTS
    need = begun.prompt_tokens_at_most + begun.output_tokens_at_most
    if _room_today(wish.user) < need:
        return Writing.NO_ROOM
    call = hold_apart(begun, organisation=brief.organisation_id, user=brief.user_id)
    if call is None:
        return Writing.NO_ROOM
    brief.model_request_id, brief.writing, brief.asked_at = call, Writing.ASKED, now
    brief.save()
    return Claim(brief.pk, call, choice, config, request)


def end(claim: Claim, ended: SpanModelRequestEnd, answer: str) -> None:
    """Count what the call used, keep the text, unless words were taken out of the lines meanwhile, and have
    the brief go out."""
    with transaction.atomic():
        brief = _held(claim.brief)
        used = Tokens(**ended.model_usage.model_dump())
        settle_apart(claim.uid, used, milliseconds=ended.milliseconds)
        if brief is None:
            return
        if brief.writing == Writing.ASKED:
            text = "" if ended.is_error else text_in(answer)
            if text:
                brief.text, brief.writing = text, Writing.WRITTEN
            else:
                brief.writing = Writing.FAILED if ended.is_error else Writing.UNUSABLE
            brief.save(update_fields=["text", "writing"])
        _let_go(brief)


def settle_lost(now: datetime | None = None) -> None:
    """Have those go out whose text did not come: their process ended before the answer. What the call costs
    at most stays counted, and it is not made again."""
    before = (now or timezone.now()) - LOST_AFTER
    held = Brief.objects.filter(is_held=True, created_at__lt=before).order_by("pk")
    late = [each.pk for each in held[:AT_A_TIME] if (each.asked_at or each.created_at) < before]
    each_apart(_lose, late, told="the brief %s could not go out")


def drop_text(brief: Brief) -> None:
    """Its lines changed: what a model made of them goes, and what it makes of them now is not kept. The
    caller saves, and holds the row."""
    if brief.writing in {Writing.ASKED, Writing.WRITTEN}:
        brief.text, brief.writing = "", Writing.DROPPED


def _lose(brief_id: int) -> None:
    with transaction.atomic():
        brief = _held(brief_id)
        if brief is None or not brief.is_held:
            return
        if brief.writing in {Writing.WANTED, Writing.ASKED}:
            brief.writing = Writing.LOST
            brief.save(update_fields=["writing"])
        _let_go(brief)


def _let_go(brief: Brief) -> None:
    """Once. Who has left meanwhile, or wants none any more, gets nothing."""
    if not brief.is_held:
        return
    brief.is_held = False
    brief.save(update_fields=["is_held"])
    wish = _wish(brief)
    if wish is not None and wish.is_on and belongs(wish):
        send_off(brief, wish, now=timezone.now())


def _held(brief_id: int) -> Brief | None:
    return Brief.objects.filter(pk=brief_id).select_for_update(of=("self",)).first()


def _wish(brief: Brief) -> BriefWish | None:
    hers = BriefWish.objects.filter(user=brief.user_id, organisation=brief.organisation_id)
    return hers.select_related("user", "organisation").first()


def _is_wanted(wish: BriefWish) -> bool:
    return wish.is_on and wish.is_written and belongs(wish)


def _rests(brief: Brief) -> bool:
    """Whether this model did not answer lately what briefs of the organisation ask."""
    since = timezone.now() - REST
    failed = Brief.objects.filter(writing=Writing.FAILED, asked_at__gt=since)
    failed = failed.filter(provider=brief.provider, model=brief.model)
    return failed.filter(organisation=brief.organisation_id).exists()


def _room_today(user: User) -> int:
    """Tokens that texts of her briefs may still take today, in the site's time zone, with all who share her
    place; held, so that of several at once each finds the ones before."""
    place = whose_place(user)
    User.objects.select_for_update(no_key=True).filter(pk=place).order_by().first()
    midnight = timezone.localtime().replace(hour=0, minute=0, second=0, microsecond=0)
    hers = Usage.objects.filter(user__in=sharing_place(place).values("pk"), purpose=PURPOSE)
    today = hers.filter(created_at__gte=midnight).order_by()
    used = today.aggregate(**{name: Sum(name, default=0) for name in Usage.TOKENS})
    return int(settings.AGENTSITE_BRIEF_TOKENS_PER_DAY - sum(used.values()))

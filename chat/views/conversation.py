"""The conversation itself: the page, and older pieces of it while one scrolls up."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from accounts.provider_labels import provider_label
from accounts.requests import SignedInRequest
from agents.switches import help_text, offered
from chat.attaching import attaching
from chat.modelpicker import in_short
from chat.presentation.frames import LINKED_EVENTS, PAGE_EVENTS, page
from conversations.actions.sharing import role_of, shares_of
from conversations.branches import counts
from conversations.checkpoints import files_follow
from conversations.kits import DEMO, choose_provider
from conversations.models import Conversation, Event, ShareRole
from harness.errors import AgentError, Invalid, TooMany
from harness.modelcards import card_for
from notices.waiting import mark_seen
from providers.table import KINDS
from reading.digits import number_of

from .lookup import find_conversation


@login_required
@require_safe
@never_cache
def show(request: SignedInRequest, uid: str) -> HttpResponse:
    """The newest units, or with `before` in the query those before that number. `at` names an event that
    is to be among them."""
    conversation = find_conversation(request.user, uid)
    before, since = _before(request), None
    if before is None and (linked := request.GET.get("at", "")):
        since = _place_of(request, conversation, linked)
        if since is not None and conversation.last_seq - since > LINKED_EVENTS:
            before = since + PAGE_EVENTS // 2
    return render_conversation(request, conversation, before=before, since=since)


@login_required
@require_safe
@never_cache
def older(request: SignedInRequest, uid: str) -> HttpResponse:
    """The units before `before` as bare elements, oldest first.

    `X-First-Seq` is the next `before`; `X-Has-Older` says whether it leads anywhere.
    """
    conversation = find_conversation(request.user, uid)
    before = _before(request)
    if before is None:
        raise Invalid(
            _("It is not said before which event."),
            field="before",
            hint=_("Give the number of the first event you have."),
        )
    shown = page(conversation, before=before, reader=request.user)
    return HttpResponse(
        "".join(shown.units),
        headers={
            "X-First-Seq": str(shown.first_seq),
            "X-Has-Older": "true" if shown.has_older else "false",
        },
    )


def render_refused(
    request: SignedInRequest, conversation: Conversation, text: str, problem: AgentError
) -> HttpResponse:
    """The page with what was typed still in the box, and why it was not taken."""
    response = render_conversation(request, conversation, draft=text, refusal=problem)
    if isinstance(problem, TooMany):
        response.status_code = 429
        response["Retry-After"] = str(problem.retry_after)
    return response


def render_conversation(
    request: SignedInRequest,
    conversation: Conversation,
    *,
    before: int | None = None,
    since: int | None = None,
    draft: str = "",
    refusal: AgentError | None = None,
    template: str = "chat/conversation.html",
    context: Mapping[str, Any] = MappingProxyType({}),
) -> HttpResponse:
    """The page, which counts as seen; with `refusal`, why the draft was not taken. Another `template` that
    extends it shows what `context` has beside it."""
    shown = page(conversation, before=before, since=since, reader=request.user)
    conversation = shown.conversation
    mark_seen(request.user, conversation)
    service = _service(conversation)
    features = conversation.features
    drawn = {
        **context,
        "conversation": conversation,
        "access": (access := role_of(request.user, conversation)),
        "may_write": access not in {"", ShareRole.VIEWER},
        "shares": shares_of(actor=request.user, conversation=conversation),
        "page": shown,
        "before": before,
        "draft": draft,
        "refusal": refusal,
        "message_characters": settings.AGENTSITE_MESSAGE_CHARACTERS,
        "service": service,
        "files_follow": files_follow(conversation),
        "origin": _origin(request, conversation),
        "attach": attaching(
            (), conversation.environment.upload_limit, sees=card_for(service["model"]).sees
        ),
        "switches": [
            {
                "name": name,
                "label": label,
                "help": help_text(name),
                "enabled": getattr(features, name),
            }
            for name, label in offered().items()
        ],
        "model_words": in_short(service["model"], conversation.config.effort),
        "switched_on": ", ".join(
            str(label) for name, label in offered().items() if getattr(features, name)
        ),
    }
    return render(request, template, drawn, status=422 if refusal else 200)


def _origin(request: SignedInRequest, conversation: Conversation) -> Conversation | None:
    """What it was forked from, for whoever may see that."""
    if conversation.origin_id is None:
        return None
    return Conversation.objects.visible_to(request.user).filter(pk=conversation.origin_id).first()


def _service(conversation: Conversation) -> dict[str, Any]:
    """Which model service the next answer comes from, or why none can be asked."""
    choice = choose_provider(conversation.config, conversation.owner, conversation.organisation)
    problem = choice.problem
    kind = KINDS.get(choice.provider)
    return {
        "label": provider_label(kind) if kind else choice.provider,
        "model": choice.model,
        "problem": problem.words if problem else "",
        "is_demo": choice.provider == DEMO,
    }


def _place_of(request: SignedInRequest, conversation: Conversation, event_uid: str) -> int | None:
    """Where a linked event stands; None, and a word about it, where it is not to be seen here."""
    uid = event_uid.replace("\0", "")
    event = Event.objects.filter(conversation=conversation, uid=uid).first()
    if event is None:
        messages.info(request, _("What the link leads to is not in this conversation."))
        return None
    if not counts(conversation)(event):
        messages.info(
            request,
            _(
                "What the link leads to stands on another branch. The arrows at a message lead there."
            ),
        )
        return None
    return int(event.seq)


def _before(request: SignedInRequest) -> int | None:
    text = request.GET.get("before", "")
    if not text:
        return None
    seq = number_of(text)
    if seq is None:
        raise Invalid(
            _("“before” is not the number of an event."),
            field="before",
            hint=_("Give a whole number above 0."),
        )
    return seq

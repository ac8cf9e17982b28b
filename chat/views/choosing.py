"""The model of the next answer: which may be picked, before a conversation begins and in it."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from accounts.requests import SignedInRequest
from chat.modelpicker import model_words, picker, wish_of
from conversations.actions.choosing import Wish, choose_model
from conversations.actions.conversations import find_agent
from conversations.actions.own import require_own
from conversations.models import Conversation
from harness.errors import Conflict, Invalid

from .answers import done
from .lookup import find_conversation


@login_required
@require_safe
@never_cache
def for_new(request: SignedInRequest) -> HttpResponse:
    """Those for a conversation with `agent`: a part of the form in which it begins."""
    wanted = request.GET.get("agent", "")
    agent = find_agent(actor=request.user, organisation=request.organisation, wanted=wanted)
    assert agent.current is not None, "on_offer() promises it"  # noqa: S101
    own = agent.current.config
    context = picker(request.user, request.organisation, own, own)
    return render(request, "chat/_model_choice.html", context)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def model(request: SignedInRequest, uid: str) -> HttpResponse:
    """The fold of a conversation, or without a script a page of its own; a POST chooses."""
    conversation = find_conversation(request.user, uid)
    require_own(request.user, conversation)
    problem: Invalid | Conflict | None = None
    if request.method == "POST":
        wish = wish_of(request.POST) or Wish()
        try:
            choose_model(actor=request.user, conversation=conversation, wish=wish)
        except (Invalid, Conflict) as refusal:
            problem = refusal
        else:
            chosen = find_conversation(request.user, uid)
            text = _("From the next message on: %(model)s.") % {"model": model_words(chosen)}
            return done(request, text, to=chosen.get_absolute_url(), event="model-chosen")
    return _fold(request, conversation, problem)


def _fold(
    request: SignedInRequest, conversation: Conversation, problem: Invalid | Conflict | None
) -> HttpResponse:
    own = conversation.agent_version.config
    context = {
        **picker(conversation.owner, conversation.organisation, own, conversation.config),
        "conversation": conversation,
        "problem": problem,
    }
    template = "chat/_model.html" if request.htmx else "chat/model.html"  # type: ignore[attr-defined]
    return render(request, template, context, status=422 if problem else 200)

"""What a model was sent, by source, for each request; and having older messages summarised."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from accounts.requests import SignedInRequest
from conversations.actions.compacting import FOCUS_LENGTH, request_compaction
from conversations.models import Conversation, Event
from harness.errors import Conflict, Invalid, TooMany
from keeping.contextplans import request_about, requests_of, usage_of

from .files import is_fragment
from .lookup import find_conversation, find_event


@login_required
@require_safe
@never_cache
def show(request: SignedInRequest, uid: str) -> HttpResponse:
    """The plan of the newest request; a page, or for htmx what goes into the dialog."""
    return _shown(request, find_conversation(request.user, uid))


@login_required
@require_safe
@never_cache
def of_event(request: SignedInRequest, event_uid: str) -> HttpResponse:
    """The same of the request that an event came of, or led to."""
    event = find_event(request.user, event_uid)
    conversation = find_conversation(request.user, event.conversation.uid)
    return _shown(request, conversation, event=event)


@login_required
@require_POST
def compact(request: SignedInRequest, uid: str) -> HttpResponse:
    """Refused, the page comes back with the words in the box."""
    conversation = find_conversation(request.user, uid)
    focus = request.POST.get("focus", "")
    try:
        request_compaction(actor=request.user, conversation=conversation, focus=focus)
    except (Invalid, Conflict, TooMany) as problem:
        return _shown(request, conversation, focus=focus, problem=problem)
    return redirect(conversation)


def _shown(
    request: SignedInRequest,
    conversation: Conversation,
    *,
    event: Event | None = None,
    focus: str = "",
    problem: Invalid | Conflict | TooMany | None = None,
) -> HttpResponse:
    requests = requests_of(conversation)
    newest = requests[0] if requests else None
    shown = request_about(event) if event is not None else newest
    writable = Conversation.objects.writable_by(request.user).filter(pk=conversation.pk)
    context = {
        "conversation": conversation,
        "requests": requests,
        "shown": shown,
        "usage": usage_of(conversation, shown) if shown else None,
        "may_compact": writable.exists(),
        "focus": focus,
        "focus_length": FOCUS_LENGTH,
        "problem": problem,
    }
    template = "chat/_context.html" if is_fragment(request) else "chat/context.html"
    response = render(request, template, context, status=422 if problem else 200)
    if isinstance(problem, TooMany):
        response.status_code = 429
        response["Retry-After"] = str(problem.retry_after)
    return response

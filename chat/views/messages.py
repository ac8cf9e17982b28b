"""What a person says, for a browser without script; with it, the socket does the same. What she decides on a
call without it, she does on the call's own page, which `approvals` has."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from accounts.requests import SignedInRequest
from chat.forms import as_typed
from conversations.actions import messages as actions
from conversations.actions.setaside import set_aside
from harness.errors import Conflict, Invalid, LimitReached, TooMany

from .conversation import render_refused
from .lookup import find_conversation


@login_required
@require_POST
def post(request: SignedInRequest, uid: str) -> HttpResponse:
    """Refused, the page comes back with what was typed still in the box."""
    conversation = find_conversation(request.user, uid)
    text = as_typed(request.POST.get("content", ""))
    try:
        actions.post_message(
            actor=request.user,
            conversation=conversation,
            text=text,
            key=request.POST.get("key") or None,
            interrupt=request.POST.get("interrupt") == "1",
        )
    except (Invalid, Conflict, TooMany) as problem:
        return render_refused(request, conversation, text, problem)
    return redirect(conversation)


@login_required
@require_POST
def stop(request: SignedInRequest, uid: str) -> HttpResponse:
    conversation = find_conversation(request.user, uid)
    if actions.stop(actor=request.user, conversation=conversation, holds_queue=True) is None:
        messages.info(request, _("There was nothing to stop."))
    return redirect(conversation)


@login_required
@require_POST
def withdraw(request: SignedInRequest, uid: str, message_uid: str) -> HttpResponse:
    conversation = find_conversation(request.user, uid)
    actions.withdraw_message(actor=request.user, conversation=conversation, message_uid=message_uid)
    return redirect(conversation)


@login_required
@require_POST
def edit(request: SignedInRequest, uid: str, message_uid: str) -> HttpResponse:
    """Refused, the page comes back with the new words in the box, so that they are not lost."""
    conversation = find_conversation(request.user, uid)
    text = as_typed(request.POST.get("content", ""))
    try:
        actions.edit_message(
            actor=request.user, conversation=conversation, message_uid=message_uid, text=text
        )
    except (Invalid, Conflict, LimitReached) as problem:
        return render_refused(request, conversation, text, problem)
    return redirect(conversation)


@login_required
@require_POST
def steer(request: SignedInRequest, uid: str, message_uid: str) -> HttpResponse:
    conversation = find_conversation(request.user, uid)
    actions.steer_message(actor=request.user, conversation=conversation, message_uid=message_uid)
    return redirect(conversation)


@login_required
@require_POST
def leave_out(request: SignedInRequest, uid: str, event_uid: str) -> HttpResponse:
    """Set aside what a model service refuses."""
    conversation = find_conversation(request.user, uid)
    set_aside(actor=request.user, conversation=conversation, event_uid=event_uid)
    return redirect(conversation)


@login_required
@require_POST
def retry(request: SignedInRequest, uid: str) -> HttpResponse:
    conversation = find_conversation(request.user, uid)
    actions.request_retry(actor=request.user, conversation=conversation)
    return redirect(conversation)

"""Who else may see a conversation: the dialog in which its owner says so."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from accounts.requests import SignedInRequest
from conversations.actions.sharing import (
    people_to_share_with,
    share_conversation,
    shares_of,
    unshare_conversation,
)
from conversations.models import Conversation, Link, ShareRole
from harness.errors import Conflict, Invalid, LimitReached

from .answers import done
from .lookup import find_conversation

MOST_OFFERED = 500
"""People of an organisation that a form lists."""


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def share(request: SignedInRequest, uid: str) -> HttpResponse:
    """A page of its own, or for htmx what goes into the dialog."""
    conversation = find_conversation(request.user, uid)
    refusal: Invalid | Conflict | LimitReached | None = None
    if request.method == "POST":
        try:
            share_conversation(
                actor=request.user,
                conversation=conversation,
                user_uid=request.POST.get("user", ""),
                role=request.POST.get("role", ""),
            )
        except (Invalid, Conflict, LimitReached) as problem:
            refusal = problem
        else:
            return done(request, _("Shared."), to=reverse("conversations:share", args=[uid]))
    is_owner = conversation.owner_id == request.user.pk
    people = (
        people_to_share_with(actor=request.user, conversation=conversation)[:MOST_OFFERED]
        if is_owner
        else ()
    )
    context = {
        "conversation": conversation,
        "is_owner": is_owner,
        "shares": shares_of(actor=request.user, conversation=conversation),
        "people": people,
        "roles": ShareRole.choices,
        "links": _links(request, conversation) if is_owner else 0,
        "refusal": refusal,
    }
    template = "chat/_share.html" if request.htmx else "chat/share.html"  # type: ignore[attr-defined]
    return render(request, template, context, status=422 if refusal else 200)


@login_required
@require_POST
def unshare(request: SignedInRequest, uid: str, share: str) -> HttpResponse:
    conversation = find_conversation(request.user, uid)
    unshare_conversation(actor=request.user, conversation=conversation, share_uid=share)
    text = _("No longer shared.")
    return done(request, text, to=reverse("conversations:share", args=[uid]))


def _links(request: SignedInRequest, conversation: Conversation) -> int:
    """How many links open it now that she may revoke."""
    return Link.objects.visible_to(request.user).alive().filter(conversation=conversation).count()

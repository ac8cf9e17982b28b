"""Links to a conversation as it stood: making one, the list of them, and the page that one opens."""

from __future__ import annotations

import time
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.views import redirect_to_login
from django.core.cache import cache
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts.addresses import neighbourhood
from accounts.requests import SignedInRequest
from chat.presentation.frozen import frozen
from conversations.actions.links import DAYS, find_link, make_link, require_reader, revoke_link
from conversations.actions.own import require_own
from conversations.models import Link
from harness.errors import Forbidden, Invalid, LimitReached, NotFound
from harness.redaction import redacted_text
from reading.digits import number_of
from reading.unseen import visible

from .lookup import find_conversation

USUAL_DAYS = 30
A_MINUTE = 60
"""How many pages of links one address opens in a minute: who guesses finds nothing sooner."""
LISTED = 200
POLICY = (
    "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none';"
    " frame-ancestors 'none'"
)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def link(request: SignedInRequest, uid: str) -> HttpResponse:
    """The form, and after it the address, which is shown this once."""
    conversation = find_conversation(request.user, uid)
    require_own(request.user, conversation)
    refusal: Invalid | Forbidden | LimitReached | None = None
    address = ""
    if request.method == "POST":
        try:
            made = make_link(
                actor=request.user,
                conversation=conversation,
                days=number_of(request.POST.get("days"), most=9_999) or 0,
                details=request.POST.get("details") == "1",
                members_only=request.POST.get("readers") != "everybody",
            )
        except (Invalid, Forbidden, LimitReached) as problem:
            refusal = problem
        else:
            place = reverse("conversations:shared-link", args=[made.secret])
            address = request.build_absolute_uri(place)
    context = {
        "conversation": conversation,
        "days": DAYS,
        "usual": USUAL_DAYS,
        "address": address,
        "refusal": refusal,
    }
    return render(request, "chat/link.html", context, status=422 if refusal else 200)


@login_required
@require_safe
@never_cache
def links(request: SignedInRequest) -> HttpResponse:
    """Those she made, and in organisations that she manages everybody's."""
    rows = Link.objects.visible_to(request.user).alive()
    rows = rows.filter(conversation__organisation=request.organisation)
    context = {"links": rows.select_related("conversation", "made_by")[:LISTED]}
    return render(request, "chat/links.html", context)


@login_required
@require_POST
def revoke(request: SignedInRequest, uid: str) -> HttpResponse:
    revoke_link(actor=request.user, link_uid=uid)
    messages.success(request, _("The link opens for nobody any more."))
    return redirect("conversations:links")


@require_safe
@never_cache
def shared(request: HttpRequest, token: str) -> HttpResponse:
    """What a link shows, with nothing of this site around it. Only one for members asks who is there."""
    if not _may_ask(request):
        said = _("Too many links were opened from here. Wait a minute.")
        return _slim("chat/shared_nothing.html", {"words": said}, status=429)
    try:
        found = find_link(token)
        if found.members_only:
            if not request.user.is_authenticated:
                return redirect_to_login(request.get_full_path())
            require_reader(actor=request.user, link=found)
    except NotFound as problem:
        return _slim("chat/shared_nothing.html", {"words": problem.message}, status=404)
    context = {
        "title": visible(redacted_text(found.title)),
        "at": found.created_at,
        "said": frozen(found),
    }
    return _slim("chat/shared.html", context)


def _slim(template: str, context: dict[str, Any], status: int = 200) -> HttpResponse:
    """Without what other pages are told of the site and the person."""
    response = HttpResponse(render_to_string(template, context), status=status)
    response["Content-Security-Policy"] = POLICY
    response["Referrer-Policy"] = "no-referrer"
    response["X-Robots-Tag"] = "noindex, nofollow, noarchive"
    if status == 429:
        response["Retry-After"] = "60"
    return response


def _may_ask(request: HttpRequest) -> bool:
    address = neighbourhood(request.META.get("REMOTE_ADDR", ""))
    key = f"links:{address}:{int(time.time()) // 60}"
    if cache.add(key, 1, timeout=120):
        return True
    try:
        return cache.incr(key) <= A_MINUTE
    except ValueError:  # it ran out in between
        return True

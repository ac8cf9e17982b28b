"""The tags of one conversation: a small page, or the dialog of the page one is on."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from accounts.requests import SignedInRequest
from harness.errors import Invalid
from keeping.actions.tags import SEPARATOR, tag_conversation
from keeping.tags import tags_in, tags_of

from .answers import done
from .lookup import find_conversation


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def tags(request: SignedInRequest, uid: str) -> HttpResponse:
    conversation = find_conversation(request.user, uid)
    problem: Invalid | None = None
    if request.method == "POST":
        text = request.POST.get("tags", "")
        try:
            tag_conversation(
                actor=request.user,
                conversation=conversation,
                words=text.split(SEPARATOR),
                replace=True,
            )
        except Invalid as refusal:
            problem = refusal
        else:
            return done(request, _("Tagged."), to=conversation.get_absolute_url())
    else:
        hers = tags_of(request.user, [conversation]).get(conversation.pk, [])
        text = f"{SEPARATOR} ".join(tag.word for tag in hers)
    context = {
        "conversation": conversation,
        "text": text,
        "problem": problem,
        "known": tags_in(request.user, conversation.organisation),
        "next": request.POST.get("next") or request.GET.get("next", ""),
    }
    template = "chat/_tags.html" if request.htmx else "chat/tags.html"  # type: ignore[attr-defined]
    return render(request, template, context, status=422 if problem else 200)

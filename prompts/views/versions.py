"""The pages of one version, compared and previewed, and of what a conversation was told."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from accounts.requests import SignedInRequest
from agents.versiondiff import lines_between
from chat.views.lookup import find_conversation
from conversations.models import Conversation
from prompts.previewing import preview
from prompts.using import told
from reading.digits import number_of

from .lookup import version_at

MOST_CONVERSATIONS = 30


@login_required
@require_safe
def show_version(request: SignedInRequest, uid: str, number: int) -> HttpResponse:
    """Its text; `against` names the number of another version, `conversation` one in which it is tried."""
    version = version_at(request.user, uid, number)
    prompt = version.prompt
    given = request.GET.get("against", "")
    chosen = number_of(given)
    others = prompt.versions.order_by("-number")
    before = None if chosen is None else others.filter(number=chosen).first()
    if before is None and not given:
        before = others.filter(number__lt=number).first()
    wanted = request.GET.get("conversation", "")
    conversation = find_conversation(request.user, wanted) if wanted else None
    mine = Conversation.objects.visible_to(request.user).listed_in(request.organisation)
    context = {
        "prompt": prompt,
        "version": version,
        "before": before,
        "changes": list(lines_between(before.text, version.text)) if before else [],
        "numbers": others.exclude(pk=version.pk).values_list("number", flat=True)[:200],
        "preview": preview(version, {}, conversation),
        "conversation": conversation,
        "conversations": mine.order_by("-id")[:MOST_CONVERSATIONS],
        "labels": version.labels.order_by("name"),
    }
    return render(request, "prompts/version.html", context)


@login_required
@require_safe
def show_told(request: SignedInRequest, uid: str) -> HttpResponse:
    """The texts that stand in its requests; `seq`: in one at that place of its log."""
    conversation = find_conversation(request.user, uid)
    seq = number_of(request.GET.get("seq"))
    context = {"conversation": conversation, "used": told(conversation, seq), "seq": seq}
    return render(request, "prompts/told.html", context)

"""What was learned by reading a conversation, and the switch for it. Everything is decided by the actions."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from accounts.current_organisation import require_shown_organisation
from accounts.requests import SignedInRequest
from conversations.models import Conversation
from harness.errors import NotFound
from memory.models import Memory
from recall.listing import as_rows

from .actions.switching import switch_learning
from .models import Learned


@login_required
@require_safe
@never_cache
def show_learned(request: SignedInRequest, uid: str) -> HttpResponse:
    """What is remembered of it; what was forgotten since is not told."""
    conversation = Conversation.objects.owned_by(request.user).filter(uid=uid).first()
    if conversation is None:
        raise NotFound(_("There is no such conversation."))
    learned = Learned.objects.visible_to(request.user).filter(conversation=conversation)
    seen = Memory.objects.visible_to(request.user).filter(uid__in=learned.values("memory_uid"))
    found = seen.select_related("store__organisation", "store__agent").order_by("-pk")
    context = {"conversation": conversation, "rows": as_rows(request.user, list(found[:200]))}
    template = "learning/_learned.html" if request.htmx else "learning/learned.html"  # type: ignore[attr-defined]
    return render(request, template, context)


@login_required
@require_POST
def switch(request: SignedInRequest) -> HttpResponse:
    require_shown_organisation(request)
    on = request.POST.get("on") == "true"
    switch_learning(actor=request.user, organisation=request.organisation, on=on)
    told = (
        _("Conversations are read once they rest.")
        if on
        else _("Conversations are not read any more for what is to be remembered.")
    )
    messages.success(request, told)
    return redirect("recall:memory")
